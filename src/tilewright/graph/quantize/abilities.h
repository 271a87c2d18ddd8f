// What the target of quantisation computes itself.
#pragma once

namespace tilewright::graph {

/// How average pools are computed.
enum class Averages {
  Depthwise,  ///< as convolutions with one kernel per channel
  Pool,       ///< AveragePoolFixed
  Dense,      ///< AveragePoolFixed as a convolution can be: factors fit 8 bits, padding counts;
              ///< those with one result as Pool
};

/// What is not there is rewritten into convolutions. The default is an accelerator that multiplies
/// tiles and adds to their sums, like VTA.
struct IntegerAbilities {
  /// Every scale is a power of two, and sums become 8-bit numbers before anything is added to them
  /// (RequantizeFixed, EltwiseFixed). false: Requantize, with residuals and multipliers.
  bool fixed_point = false;
  /// LeakyRelu of a slope near tensor::kLeakySlope is an activation. requires: fixed_point.
  bool leaky_relu = false;
  bool first_convolutions = false;       ///< of few channels; false: Im2Col or SpaceToDepth first
  bool transposed_convolutions = false;  ///< false: one convolution and DepthToSpace
  Averages averages = Averages::Depthwise;
  /// Sums that need no multiplier are rounded to the nearest with ties to even (half_even of
  /// Requantize); false: by half a unit in the bias, ties up. requires: not fixed_point, and no
  /// wide outputs.
  bool half_even = false;
};

/// Slopes of LeakyRelu that may be taken for kLeakySlope differ by no more.
inline constexpr double kSlopeTolerance = 0.002;

}  // namespace tilewright::graph
