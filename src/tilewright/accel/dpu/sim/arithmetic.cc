#include "tilewright/accel/dpu/sim/arithmetic.h"

#include <algorithm>

namespace tilewright::dpu {
namespace {

__extension__ typedef __int128 Wide;

// A number that saturates whatever the activation does: leaky divides by ten.
constexpr int kSurelyLarge = 20;

/// DPU_ROUND(act(value / 2^shift)). requires: |shift| at most 64.
int8_t activate_and_round(Wide value, int shift, int act_type, int fp_out) {
  if (shift < 0) {
    value = std::clamp<Wide>(value, -(Wide{1} << kSurelyLarge), Wide{1} << kSurelyLarge);
    value *= Wide{1} << -shift;
    shift = 0;
  }
  const Wide large = Wide{1} << (shift + kSurelyLarge);
  value = std::clamp<Wide>(value, -large, large);
  if ((act_type == kRelu || act_type == kRelu6) && value < 0) value = 0;
  if (act_type == kRelu6) {
    // 6 * 2^fp_out against value / 2^shift, as integers.
    const int cap_shift = shift + fp_out;
    if (cap_shift < 0) {
      value *= Wide{1} << -cap_shift;
      shift -= cap_shift;
    }
    value = std::min(value, Wide{6} << std::max(cap_shift, 0));
  }
  if (act_type == kLeaky && value < 0) {
    value *= 26;
    shift += 8;
  }
  if (shift > 0) value = (value + (Wide{1} << (shift - 1))) >> shift;
  return static_cast<int8_t>(std::clamp<Wide>(value, -128, 127));
}

/// floor(2 * b * 2^shift).
Wide bias_term(int32_t bias, int shift) {
  const Wide doubled = Wide{2} * bias;
  return shift >= 0 ? doubled * (Wide{1} << shift) : doubled >> -shift;
}

}  // namespace

int8_t round_shifted(int64_t value, int shift) {
  return activate_and_round(value, shift, kNone, 0);
}

int8_t round_conv(const ConvRounding& rounding, int64_t acc, int32_t bias) {
  return activate_and_round(Wide{2} * acc + bias_term(bias, rounding.shift_bias),
                            rounding.shift_cut + 1, rounding.act_type, rounding.fp_out);
}

std::optional<NarrowRounding> narrow(const ConvRounding& rounding) {
  // 2*acc and the bias term together stay below 2^50, leaky needs five bits more.
  constexpr int64_t kAll = int64_t{1} << 50;
  const int shift = rounding.shift_cut + 1;
  if (shift < 1 || shift > 40) return std::nullopt;
  NarrowRounding out;
  out.shift = shift;
  out.low = -kAll;
  out.high = kAll;
  if (rounding.act_type == kRelu || rounding.act_type == kRelu6) out.low = 0;
  if (rounding.act_type == kRelu6) {
    const int cap_shift = shift + rounding.fp_out;
    if (cap_shift < 0) return std::nullopt;
    if (cap_shift < 47) out.high = int64_t{6} << cap_shift;
  }
  if (rounding.act_type == kLeaky) {
    out.factor_below_zero = 26;
    out.shift_above_zero = 8;
    out.shift += 8;
  }
  out.half = int64_t{1} << (out.shift - 1);
  return out;
}

std::optional<int64_t> narrow_bias(const ConvRounding& rounding, int32_t bias) {
  const Wide term = bias_term(bias, rounding.shift_bias);
  constexpr Wide kMost = Wide{1} << 48;
  if (term > kMost || term < -kMost) return std::nullopt;
  return static_cast<int64_t>(term);
}

int8_t round_narrow(const NarrowRounding& rounding, int32_t acc, int64_t bias_term) {
  const int64_t sum = std::clamp(2 * int64_t{acc} + bias_term, rounding.low, rounding.high);
  const int64_t scaled =
      sum < 0 ? sum * rounding.factor_below_zero : sum << rounding.shift_above_zero;
  return static_cast<int8_t>(
      std::clamp<int64_t>((scaled + rounding.half) >> rounding.shift, -128, 127));
}

ElewTable::ElewTable(const ElewInit& init) {
  for (int sum = -kMost; sum <= kMost; ++sum)
    table_[static_cast<size_t>(sum + kMost)] =
        activate_and_round(sum, 2 - init.shift_write, init.act_type, init.fp_out);
}

}  // namespace tilewright::dpu
