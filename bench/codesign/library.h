// A convolution as a library of matrix products runs it: the host writes the rows of the product
// (im2col), the accelerator multiplies them by the weights with tiles by a fixed rule.
#pragma once

#include "tilewright/cost/spatial/model.h"

namespace tilewright::bench {

struct LibraryCost {
  double accelerator = 0;  ///< units: cycles
  int64_t host_bytes = 0;  ///< read and written to make the rows; 0: the image is the matrix
  cost::SpatialMapping mapping;
  double cycles(double host_bytes_per_cycle) const {
    return accelerator + static_cast<double>(host_bytes) / host_bytes_per_cycle;
  }
};

/// requires: a convolution of one image whose second factor is the weights, a gemm unit, a tile
/// that fits.
LibraryCost library_cost(const spatial::Design& design, const cost::SpatialLayer& conv);

}  // namespace tilewright::bench
