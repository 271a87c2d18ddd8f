// Operators of a workload file as layers of spatial accelerators.
#pragma once

#include <string>
#include <vector>

#include "tilewright/cost/spatial/layer.h"

namespace tilewright::bench {

struct Operator {
  std::string id;
  std::vector<cost::SpatialLayer> layers;  ///< MTTKRP: two products
};

/// The operators whose suite begins with `suites`. Convolutions and products have weights, which
/// lie packed; tensors of the others come at run time.
std::vector<Operator> operators_of(const std::string& workload_file, const std::string& suites);

}  // namespace tilewright::bench
