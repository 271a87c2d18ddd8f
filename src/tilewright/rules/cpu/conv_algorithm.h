// Which algorithm computes a convolution fastest, by a model of the machine.
#pragma once

#include <vector>

#include "tilewright/cost/prediction.h"
#include "tilewright/hw/target.h"
#include "tilewright/tensor/conv2d_shape.h"

namespace tilewright::rules {

/// Time of one form. m = 0: the direct form; else Winograd with tiles of m outputs along each axis
/// with several taps.
cost::Prediction predict_conv(const tensor::Conv2dShape& conv, int64_t m,
                              const hw::CpuTarget& target, int threads);

/// The fastest direct form. Where the weights of one vector of filters leave L2, those of some
/// channels stay in it while all pixels pass; and the lines that a tile of few pixels reads of each
/// plain channel are then too many, where those of blocks are read whole. Taps in the padding are
/// left out where they are many, as with large dilations.
tensor::DirectForm direct_form(const tensor::Conv2dShape& conv, const hw::CpuTarget& target,
                               int threads);

/// Tiles m whose rounding errors are small enough for this window.
std::vector<int64_t> winograd_tiles(const tensor::Conv2dShape& conv);

/// The m of the fastest form; 0 unless a Winograd form is clearly faster.
int64_t winograd_tile(const tensor::Conv2dShape& conv, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::rules
