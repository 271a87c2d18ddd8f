// One convolution with what follows it, from real numbers to integers.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// The layer in real numbers: clip(conv(x, weight) + bias + residual, lo, hi).
struct LayerSpec {
  Array weight;              ///< f32 [o, i / groups, r, s]
  std::vector<double> bias;  ///< one per output channel, or empty
  int64_t groups = 1;
  double x_scale = 1, y_scale = 1;
  std::optional<double> residual_scale;
  std::vector<double> weight_scale;  ///< one, or one per output channel
  std::vector<double> mean;          ///< of each input channel; empty: biases stay as they are
  std::optional<double> lo, hi;      ///< of the activation
  /// For RequantizeFixed: one shift, of either sign, and biases without half a unit.
  bool fixed_point = false;
  bool half_even = false;  ///< Requantize rounds: biases without half a unit, one shift
};

/// ConvInteger's weight, Requantize's constants and attributes.
struct LayerNumbers {
  Array weight;                     ///< i8, shape of the spec's
  Array bias;                       ///< i32 [1, o, 1, 1]
  std::optional<Array> multiplier;  ///< the same; absent where a shift is enough
  int64_t shift = 0, residual_shift = 0, residual_multiplier = 1;
  int64_t pre_shift = 0, limit = 0;  ///< as Requantize has them
  int64_t lo = -128, hi = 127;
  bool half_even = false;  ///< as Requantize has it

  tensor::Attrs attrs() const;
};

inline constexpr int64_t kMaxResidualShift = 14;   ///< before pre_shift
inline constexpr int64_t kCheapResidualShift = 6;  ///< what a weight of 8 bits can do

/// errors: Unsupported if no shift and multiplier come near the layer's factor (scales that differ
/// by more than 2^15).
Result<LayerNumbers> layer_numbers(const LayerSpec& spec);

/// A second layer for the part of the sum that `numbers` rounds away: with the first result as
/// residual, real value = first * y_scale - second * scale. Nothing if the layer clips, has no
/// shift or takes a residual or multiplier.
struct LowPart {
  LayerNumbers numbers;
  double scale = 1;
};
std::optional<LowPart> low_part(const LayerNumbers& numbers, double y_scale);

}  // namespace tilewright::graph
