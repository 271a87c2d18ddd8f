// Which algorithm computes a convolution fastest, by a model of the machine.
#pragma once

#include "tilewright/graph/passes.h"
#include "tilewright/hw/target.h"

namespace tilewright::tune {

/// Predicted time of one form; units: vector multiply-adds of one core.
struct ConvTime {
  double multiply = 0;   ///< products, at the rate register tiles reach
  double transform = 0;  ///< of inputs and outputs
  double memory = 0;     ///< streaming the weights, if they do not stay in cache
  double total() const { return (multiply > memory ? multiply : memory) + transform; }
};

/// m = 0: the direct form; else Winograd F(m x m, 3 x 3).
ConvTime predict_conv(const graph::Conv3x3& conv, int64_t m, const hw::CpuTarget& target,
                      int threads);

/// The m of the fastest form; 0 unless a Winograd form is clearly faster.
int64_t winograd_tile(const graph::Conv3x3& conv, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::tune
