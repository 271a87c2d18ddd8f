// The arithmetic of the DPU, bit by bit (docs/dpu.md). Internal.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tilewright/accel/dpu/isa.h"

namespace tilewright::dpu {

/// DPU_ROUND of value / 2^shift: to the nearest, ties up, saturated to 8 bits. `shift` can be
/// negative.
int8_t round_shifted(int64_t value, int shift);

/// What a CONV makes of an exact sum: (2*acc + floor(2*b*2^shift_bias)) / 2^(shift_cut + 1), then
/// the activation, then DPU_ROUND.
struct ConvRounding {
  int shift_cut = 0, shift_bias = 0, act_type = kNone, fp_out = 0;
};
int8_t round_conv(const ConvRounding& rounding, int64_t acc, int32_t bias);

/// The same in 64 bits, where no intermediate value needs more: of bias b it is
/// (clamp(2*acc + bias term) * factor + half) >> shift, saturated.
struct NarrowRounding {
  int shift = 1;
  int64_t half = 0;
  int64_t factor_below_zero = 1;  ///< of negative values, and 2^shift_above_zero of the others
  int shift_above_zero = 0;
  int64_t low = 0, high = 0;  ///< what the activation cuts off
};
/// requires: sums of at most 32 bits.
std::optional<NarrowRounding> narrow(const ConvRounding& rounding);
/// floor(2*b*2^shift_bias), if `narrow` may take it.
std::optional<int64_t> narrow_bias(const ConvRounding& rounding, int32_t bias);
int8_t round_narrow(const NarrowRounding& rounding, int32_t acc, int64_t bias_term);

/// DPU_ROUND(act(u * 2^shift_write / 4)), for all sums u of one or two operands: table[u + kMost].
class ElewTable {
 public:
  explicit ElewTable(const ElewInit& init);
  /// floor(4 * a / 2^shift): what is summed up.
  static int term(int8_t a, int shift) { return int{a} * 4 >> (shift < 31 ? shift : 31); }
  int8_t operator[](int sum) const { return table_[static_cast<size_t>(sum + kMost)]; }

 private:
  static constexpr int kMost = 2 * 4 * 128;
  std::array<int8_t, 2 * kMost + 1> table_{};
};

}  // namespace tilewright::dpu
