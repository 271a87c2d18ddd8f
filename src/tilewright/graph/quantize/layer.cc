// The numbers of one layer. Scales that are powers of two need a shift only:
//
//   x = 2^-5 qx, w = 2^-7 qw, y = 2^-4 qy:  the sum counts in 2^-12, qy = (sum + bias + 2^7) >> 8
//
// Other scales take a multiplier: qy = (sum * m + bias) >> s with m = round(sx sw / sy * 2^s), for
// the largest s that 32 bits allow.
#include "tilewright/graph/quantize/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/graph/quantize/scale.h"

namespace tilewright::graph {
namespace {

constexpr double kRange = 2147483647.0;  ///< sums must stay within 32 bits

/// What the sum of one output channel can reach, without its bias.
std::vector<double> sum_bounds(const Array& weight) {
  const int64_t outs = weight.shape()[0], inner = weight.size() / outs;
  std::vector<double> bounds(static_cast<size_t>(outs), 0);
  const auto w = weight.as<int8_t>();
  for (int64_t i = 0; i < weight.size(); ++i)
    bounds[static_cast<size_t>(i / inner)] += 128.0 * std::abs(w[static_cast<size_t>(i)]);
  return bounds;
}

double scale_of(const std::vector<double>& scales, size_t channel) {
  return scales.size() == 1 ? scales[0] : scales[channel];
}

Array rounded_weight(const LayerSpec& spec) {
  const Array& w = spec.weight;
  const int64_t inner = w.size() / w.shape()[0];
  Array q(DType::I8, w.shape());
  const auto from = w.as<float>();
  const auto to = q.as<int8_t>();
  for (int64_t i = 0; i < w.size(); ++i) {
    const double scale = scale_of(spec.weight_scale, static_cast<size_t>(i / inner));
    to[static_cast<size_t>(i)] = static_cast<int8_t>(
        std::clamp(round_even(from[static_cast<size_t>(i)] / scale), -127.0, 127.0));
  }
  return q;
}

/// Rounds a few weights of each filter to their other neighbour so that the filter's answer to the
/// mean input is right: inputs of a layer differ more in strength than in direction, and the
/// nearest integers alone make an error that grows with that strength.
void balance(const LayerSpec& spec, Array& rounded) {
  if (spec.mean.empty()) return;
  const Shape& shape = rounded.shape();
  const int64_t ins = shape[1], taps = shape[2] * shape[3], outs_per_group = shape[0] / spec.groups;
  const auto exact = spec.weight.as<float>();
  const auto integer = rounded.as<int8_t>();
  struct Flip {
    double residue;  ///< distance to the nearest integer, with sign
    double effect;   ///< of the flip on the sum, in steps
    size_t at;
  };
  std::vector<Flip> flips;
  for (int64_t o = 0; o < shape[0]; ++o) {
    const double scale = scale_of(spec.weight_scale, static_cast<size_t>(o));
    const int64_t first_channel = o / outs_per_group * ins;
    double error = 0;
    flips.clear();
    for (int64_t k = 0; k < ins * taps; ++k) {
      const auto at = static_cast<size_t>(o * ins * taps + k);
      // With one channel its strength is a common factor, and equal filters stay equal.
      const double mean = ins == 1 ? 1 : spec.mean[static_cast<size_t>(first_channel + k / taps)];
      const double residue = exact[at] / scale - integer[at];
      error += residue * mean;
      const bool room = std::abs(integer[at]) < 127;
      if (room && std::fabs(residue) > 0.25)
        flips.push_back({residue, residue > 0 ? mean : -mean, at});
    }
    std::sort(flips.begin(), flips.end(), [](const Flip& a, const Flip& b) {
      return std::fabs(a.residue) > std::fabs(b.residue);
    });
    for (const Flip& flip : flips) {
      if (std::fabs(error - flip.effect) >= std::fabs(error)) continue;
      error -= flip.effect;
      integer[flip.at] = static_cast<int8_t>(integer[flip.at] + (flip.residue > 0 ? 1 : -1));
    }
  }
}

/// Biases with what the rounded weights take from the mean of the sum.
std::vector<double> corrected_bias(const LayerSpec& spec, const Array& rounded) {
  const Shape& shape = rounded.shape();
  std::vector<double> bias = spec.bias;
  bias.resize(static_cast<size_t>(shape[0]), 0);
  if (spec.mean.empty()) return bias;
  const auto exact = spec.weight.as<float>();
  const auto integer = rounded.as<int8_t>();
  const int64_t ins = shape[1], taps = shape[2] * shape[3], outs_per_group = shape[0] / spec.groups;
  for (int64_t o = 0; o < shape[0]; ++o) {
    const double scale = scale_of(spec.weight_scale, static_cast<size_t>(o));
    for (int64_t k = 0; k < ins * taps; ++k) {
      const auto at = static_cast<size_t>(o * ins * taps + k);
      const int64_t channel = o / outs_per_group * ins + k / taps;
      bias[static_cast<size_t>(o)] +=
          (exact[at] - integer[at] * scale) * spec.mean[static_cast<size_t>(channel)];
    }
  }
  return bias;
}

Array as_bias(const std::vector<double>& values) {
  Array array(DType::I32, {1, static_cast<int64_t>(values.size()), 1, 1});
  for (size_t c = 0; c < values.size(); ++c)
    array.set_int(static_cast<int64_t>(c), static_cast<int64_t>(values[c]));
  return array;
}

/// Moves a part of the shift in front of the residual, which then needs fewer bits.
void split_shift(LayerNumbers& n) {
  n.pre_shift = std::min(std::max<int64_t>(0, n.residual_shift - kCheapResidualShift), n.shift);
  n.shift -= n.pre_shift;
  n.residual_shift -= n.pre_shift;
}

/// All scales are powers of two in the right order: one shift, no multiplier.
bool shift_form(const LayerSpec& spec, const std::vector<double>& bias, LayerNumbers& out) {
  for (const double scale : spec.weight_scale)
    if (scale != spec.weight_scale[0]) return false;
  const double unit = spec.x_scale * spec.weight_scale[0];
  const auto shift = exact_log2(spec.y_scale / unit);
  if (!shift || *shift < (spec.fixed_point ? -24 : 0) || *shift > 30) return false;
  double residual = 0;
  if (spec.residual_scale) {
    const auto up = exact_log2(*spec.residual_scale / unit);
    if (!up || *up < 0 || *up > kMaxResidualShift) return false;
    out.residual_shift = *up;
    residual = std::ldexp(128.0, *up);
  }
  const bool rounds = *shift > 0 && !spec.fixed_point && !spec.half_even;
  const double half = rounds ? std::ldexp(1.0, *shift - 1) : 0;
  const std::vector<double> bounds = sum_bounds(out.weight);
  std::vector<double> values;
  for (size_t c = 0; c < bias.size(); ++c) {
    // Half a unit goes to the unit below: QDQ models keep sums off ties with it.
    values.push_back(std::ceil(bias[c] / unit - 0.5) + half);
    if (bounds[c] + std::fabs(values[c]) + residual > kRange) return false;
  }
  out.shift = *shift;
  out.bias = as_bias(values);
  out.half_even = spec.half_even;
  if (!spec.fixed_point && !spec.half_even) split_shift(out);
  return true;
}

/// The largest s in [0, 30] for which `fits(s)`; -1 if there is none. requires: monotone.
template <class F>
int largest_shift(const F& fits) {
  int s = -1;
  while (s < 30 && fits(s + 1)) ++s;
  return s;
}

/// What fixed-point scaling has to do: result = factor * sum + offset, per channel, in output
/// units.
struct Scaling {
  std::vector<double> factor, bound;  ///< of sums: bound is the largest possible
  std::vector<double> offset;         ///< |bias| and residual
  double residual = 0;                ///< scale of the residual
};

/// sum >> pre, clipped to +-limit (0: not at all), times round(factor * 2^(shift + pre)), >> shift.
struct FixedPoint {
  int pre = 0, shift = -1;
  int64_t limit = 0;
  double error = 0;  ///< of the result, at most; units: of the output
};

/// The best shift for a given `pre`, if there is one. A clip keeps every sum whose result is not
/// clipped anyway; only limits of 16 bits exist.
std::optional<FixedPoint> fixed_point(const Scaling& scaling, int pre, bool clip) {
  double useful = 1;
  for (size_t c = 0; c < scaling.factor.size(); ++c)
    useful = std::max(useful, (129 + scaling.offset[c]) / scaling.factor[c]);
  const double limit = std::ceil(std::ldexp(useful, -pre));
  if (clip && limit > 32767) return std::nullopt;
  const auto fits = [&](int shift) {
    for (size_t c = 0; c < scaling.factor.size(); ++c) {
      const double all = std::ldexp(scaling.bound[c], -pre) + 1;
      const double sum =
          (clip ? std::min(limit, all) : all) * (std::ldexp(scaling.factor[c], shift + pre) + 1);
      if (sum + std::ldexp(scaling.offset[c] + 1, shift) > kRange) return false;
    }
    return std::ldexp(scaling.residual, shift) < 32767.0 * (1 << kMaxResidualShift);
  };
  FixedPoint form;
  form.pre = pre;
  form.shift = largest_shift(fits);
  if (form.shift < 0) return std::nullopt;
  form.limit = clip ? static_cast<int64_t>(limit) : 0;
  for (const double factor : scaling.factor) {
    const double cut = pre > 0 ? std::ldexp(factor, pre - 1) : 0;
    const double multiplier = std::ldexp(factor, form.shift + pre);
    if (multiplier < 1) return std::nullopt;
    const double rounded = std::fabs(round_even(multiplier) / multiplier - 1) * 128;
    form.error = std::max(form.error, cut + rounded);
  }
  return form;
}

std::optional<FixedPoint> best_fixed_point(const Scaling& scaling) {
  std::optional<FixedPoint> best;
  for (int pre = 0; pre <= 30; ++pre)
    for (const bool clip : {false, true}) {
      const auto form = fixed_point(scaling, pre, clip);
      if (form && (!best || form->error < best->error)) best = form;
    }
  return best;
}

bool multiplier_form(const LayerSpec& spec, const std::vector<double>& bias, LayerNumbers& out) {
  const size_t channels = bias.size();
  Scaling scaling;
  scaling.bound = sum_bounds(out.weight);
  scaling.residual = spec.residual_scale ? *spec.residual_scale / spec.y_scale : 0;
  for (size_t c = 0; c < channels; ++c) {
    scaling.factor.push_back(spec.x_scale * scale_of(spec.weight_scale, c) / spec.y_scale);
    scaling.offset.push_back(std::fabs(bias[c]) / spec.y_scale + 128 * scaling.residual);
    if (!(scaling.factor[c] > 0)) return false;
  }
  const auto form = best_fixed_point(scaling);
  if (!form) return false;
  const int s = form->shift, pre = form->pre;
  out.pre_shift = pre;
  out.limit = form->limit;
  out.shift = s;
  std::vector<double> values, multipliers;
  for (size_t c = 0; c < channels; ++c) {
    multipliers.push_back(round_even(std::ldexp(scaling.factor[c], s + pre)));
    // Half of what pre_shift cuts off on average, and the rounding of the last shift.
    const double half =
        (s > 0 ? std::ldexp(1.0, s - 1) : 0) + (pre > 0 ? std::floor(multipliers[c] / 2) : 0);
    values.push_back(round_even(std::ldexp(bias[c] / spec.y_scale, s) + half));
  }
  if (spec.residual_scale) {
    double rest = std::ldexp(scaling.residual, s);
    while (rest > 32767) rest /= 2, ++out.residual_shift;
    out.residual_multiplier = std::max<int64_t>(1, static_cast<int64_t>(round_even(rest)));
  }
  out.bias = as_bias(values);
  out.multiplier = as_bias(multipliers);
  return true;
}

}  // namespace

tensor::Attrs LayerNumbers::attrs() const {
  tensor::Attrs a;
  a.values = {{"shift", shift}, {"lo", lo}, {"hi", hi}};
  if (residual_shift != 0) a.values["residual_shift"] = residual_shift;
  if (residual_multiplier != 1) a.values["residual_multiplier"] = residual_multiplier;
  if (pre_shift != 0) a.values["pre_shift"] = pre_shift;
  if (limit != 0) a.values["limit"] = limit;
  if (half_even) a.values["half_even"] = int64_t{1};
  return a;
}

Result<LayerNumbers> layer_numbers(const LayerSpec& spec) {
  LayerNumbers out;
  out.weight = rounded_weight(spec);
  balance(spec, out.weight);
  const std::vector<double> bias = corrected_bias(spec, out.weight);
  const auto bound = [&](const std::optional<double>& limit, int64_t otherwise) {
    if (!limit) return otherwise;
    return static_cast<int64_t>(std::clamp(round_even(*limit / spec.y_scale), -128.0, 127.0));
  };
  out.lo = bound(spec.lo, -128);
  out.hi = std::max(out.lo, bound(spec.hi, 127));
  LayerNumbers other = out;
  if (shift_form(spec, bias, out)) return out;
  if (!spec.fixed_point && multiplier_form(spec, bias, other)) return other;
  return fail(ErrorKind::Unsupported, "the scales of this layer lie too far apart",
              fmt::format("input {:.3g}, weights {:.3g}, output {:.3g}", spec.x_scale,
                          spec.weight_scale[0], spec.y_scale));
}

std::optional<LowPart> low_part(const LayerNumbers& numbers, double y_scale) {
  const bool clips = numbers.lo != -128 || numbers.hi != 127;
  if (clips || numbers.multiplier || numbers.pre_shift > 0 || numbers.shift < 1 ||
      numbers.shift > kMaxResidualShift)
    return std::nullopt;
  LowPart low;
  LayerNumbers& n = low.numbers;
  n.weight = Array(DType::I8, numbers.weight.shape());
  for (int64_t i = 0; i < n.weight.size(); ++i) n.weight.set_int(i, -numbers.weight.get_int(i));
  n.residual_shift = numbers.shift;
  n.shift = std::max<int64_t>(0, numbers.shift - kCheapResidualShift);
  const int64_t half = int64_t{1} << (numbers.shift - 1);
  const int64_t own_half = n.shift > 0 ? int64_t{1} << (n.shift - 1) : 0;
  n.bias = Array(DType::I32, numbers.bias.shape());
  for (int64_t c = 0; c < n.bias.size(); ++c)
    n.bias.set_int(c, -(numbers.bias.get_int(c) - half) + own_half);
  low.scale = std::ldexp(y_scale, static_cast<int>(n.shift - numbers.shift));
  split_shift(n);
  return low;
}

}  // namespace tilewright::graph
