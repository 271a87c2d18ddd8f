#include "tilewright/tune/conv_algorithm.h"

#include <algorithm>

#include "tilewright/tune/machine_rates.h"

namespace tilewright::tune {
namespace {

/// Part of the peak that register tiles reach.
constexpr double kTileRate = 0.95;
/// A form with larger rounding errors must be faster by this factor.
constexpr double kMargin = 1.15;
/// Rows of a register tile: how many products one read of a weight serves.
constexpr int64_t kTileRows = 14;

double ceil_div(int64_t a, int64_t b) { return static_cast<double>((a + b - 1) / b); }

}  // namespace

ConvTime predict_conv(const graph::Conv3x3& conv, int64_t m, const hw::CpuTarget& target,
                      int threads) {
  const double lanes = target.lanes(32), workers = std::max(threads, 1);
  const auto channels = static_cast<double>(conv.channels);
  const auto filters = static_cast<double>(conv.filters);
  const double products = channels * filters / lanes, batch = static_cast<double>(conv.batch);
  ConvTime time;
  double weight_bytes = 0, pixels = 0;
  if (m == 0) {
    pixels = batch * static_cast<double>(conv.height * conv.width);
    time.multiply = 9 * products * pixels / kTileRate / workers;
    weight_bytes = 9 * channels * filters * 4;
  } else {
    const double n = static_cast<double>(m) + 2, points = n * n;
    pixels = batch * ceil_div(conv.height, m) * ceil_div(conv.width, m);
    time.multiply = points * products * pixels / kTileRate / workers;
    // One-sided sums twice (about n / 2 terms each), loads and stores of every point.
    const double per_point = n + 3;
    time.transform = pixels * points * per_point * (channels + filters) / lanes / workers;
    weight_bytes = points * channels * filters * 4;
  }
  // Weights beyond L2 are read once for each group of tiles, by every worker its part.
  const double passes = std::max(1.0, pixels / kTileRows / 8);
  const double l2 = static_cast<double>(target.l2_bytes), l3 = static_cast<double>(target.l3_bytes);
  if (weight_bytes > l3 / 2)
    time.memory = weight_bytes / kBytesFromDram / workers;
  else if (weight_bytes > l2 / 2)
    time.memory = std::min(passes, 4.0) * weight_bytes / kBytesFromL3 / workers;
  return time;
}

int64_t winograd_tile(const graph::Conv3x3& conv, const hw::CpuTarget& target, int threads) {
  const double direct = predict_conv(conv, 0, target, threads).total();
  int64_t best = 0;
  double best_time = direct / kMargin;
  for (const int64_t m : {2, 4}) {
    const double time = predict_conv(conv, m, target, threads).total();
    if (time < best_time) best_time = time, best = m;
  }
  return best;
}

}  // namespace tilewright::tune
