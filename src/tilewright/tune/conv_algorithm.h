// Which algorithm computes a convolution fastest, by a model of the machine.
#pragma once

#include "tilewright/cost/prediction.h"
#include "tilewright/graph/passes.h"
#include "tilewright/hw/target.h"

namespace tilewright::tune {

/// Time of one form. m = 0: the direct form; else Winograd F(m x m, 3 x 3).
cost::Prediction predict_conv(const graph::Conv3x3& conv, int64_t m, const hw::CpuTarget& target,
                              int threads);

/// The m of the fastest form; 0 unless a Winograd form is clearly faster.
int64_t winograd_tile(const graph::Conv3x3& conv, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::tune
