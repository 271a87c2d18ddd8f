#include "tilewright/graph/quantize/scale.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tilewright::graph {
namespace {

constexpr int kMantissaBits = 4;
constexpr size_t kBins = size_t{1} << (8 + kMantissaBits);

size_t bin_of(float x) {
  return (std::bit_cast<uint32_t>(x) & 0x7fffffffU) >> (23 - kMantissaBits);
}

/// The middle of a bin.
double center_of(size_t bin) {
  const auto low = static_cast<uint32_t>(bin) << (23 - kMantissaBits);
  return std::bit_cast<float>(low | (1U << (22 - kMantissaBits)));
}

/// Squared error of one value |x| of unknown position within a step.
double error_of(double x, double step) {
  const double top = kInt8Max * step;
  if (x > top) return (x - top) * (x - top);
  if (x < step / 2) return x * x;
  return step * step / 12;
}

}  // namespace

double round_even(double x) { return std::nearbyint(x); }

std::optional<int> exact_log2(double x) {
  int exponent = 0;
  if (!(x > 0) || std::frexp(x, &exponent) != 0.5) return std::nullopt;
  return exponent - 1;
}

int covering_exponent(double magnitude) {
  if (!(magnitude > 0)) return -126;
  int e = static_cast<int>(std::ceil(std::log2(magnitude / kInt8Max)));
  // log2 may be off by a rounding at exact powers.
  while (std::ldexp(kInt8Max, e - 1) >= magnitude) --e;
  while (std::ldexp(kInt8Max, e) < magnitude) ++e;
  return std::max(e, -126);
}

void accumulate(Ranges& ranges, ValueId id, const Array& value) {
  if (value.dtype() != DType::F32) return;
  if (ranges.values.size() <= static_cast<size_t>(id))
    ranges.values.resize(static_cast<size_t>(id) + 1);
  Observed& seen = ranges.values[static_cast<size_t>(id)];
  seen.bins.resize(kBins);
  float lo = 0, hi = 0;
  for (const float x : value.as<float>()) {
    if (!std::isfinite(x)) continue;
    ++seen.bins[bin_of(x)];
    lo = std::min(lo, x), hi = std::max(hi, x);
  }
  seen.lo = std::min<double>(seen.lo, lo);
  seen.hi = std::max<double>(seen.hi, hi);
  seen.count += value.size();
  const Shape& shape = value.shape();
  if (shape.size() < 2 || value.size() == 0) return;
  const int64_t channels = shape[1], inner = value.size() / shape[0] / channels;
  seen.channel_sum.resize(static_cast<size_t>(channels));
  const auto data = value.as<float>();
  for (int64_t row = 0; row < shape[0] * channels; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < inner; ++i) {
      const float x = data[static_cast<size_t>(row * inner + i)];
      if (std::isfinite(x)) sum += x;
    }
    seen.channel_sum[static_cast<size_t>(row % channels)] += sum;
  }
}

void merge(Observed& a, const Observed& b) {
  a.lo = std::min(a.lo, b.lo);
  a.hi = std::max(a.hi, b.hi);
  a.count += b.count;
  if (!b.bins.empty()) a.bins.resize(kBins);
  for (size_t i = 0; i < b.bins.size(); ++i) a.bins[i] += b.bins[i];
  if (a.channel_sum.size() != b.channel_sum.size()) a.channel_sum.clear();
  for (size_t i = 0; i < a.channel_sum.size(); ++i) a.channel_sum[i] += b.channel_sum[i];
}

int best_exponent(const Observed& seen) {
  const int covering = covering_exponent(std::max(-seen.lo, seen.hi));
  int best = covering;
  double least = std::numeric_limits<double>::infinity();
  for (int e = covering; e > covering - 4; --e) {
    const double step = std::ldexp(1.0, e);
    double total = 0;
    for (size_t b = 0; b < seen.bins.size(); ++b)
      if (seen.bins[b] != 0)
        total += static_cast<double>(seen.bins[b]) * error_of(b == 0 ? 0 : center_of(b), step);
    if (total < least) least = total, best = e;
  }
  return best;
}

int best_exponent(std::span<const float> values) {
  float magnitude = 0;
  for (const float x : values) magnitude = std::max(magnitude, std::fabs(x));
  const int covering = covering_exponent(magnitude);
  int best = covering;
  double least = std::numeric_limits<double>::infinity();
  for (int e = covering; e > covering - 3; --e) {
    const double step = std::ldexp(1.0, e);
    double total = 0;
    for (const float x : values) {
      const double q = std::clamp(round_even(x / step), -127.0, 127.0);
      total += (x - q * step) * (x - q * step);
    }
    if (total < least) least = total, best = e;
  }
  return best;
}

}  // namespace tilewright::graph
