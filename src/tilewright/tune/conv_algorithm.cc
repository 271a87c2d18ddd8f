#include "tilewright/tune/conv_algorithm.h"

#include <algorithm>

#include "tilewright/cost/tile_space.h"
#include "tilewright/cost/winograd.h"

namespace tilewright::tune {
namespace {

/// A form with larger rounding errors must be faster by this factor.
constexpr double kMargin = 1.15;

/// The direct form on blocked channels.
cost::Contraction direct_form(const graph::Conv3x3& conv, int64_t lanes) {
  enum { kImage, kFilters, kRow, kColumn, kLane, kChannels, kTapY, kTapX, kChannel };
  const int64_t inputs = (conv.channels + lanes - 1) / lanes;
  const int64_t outputs = (conv.filters + lanes - 1) / lanes;
  cost::Contraction c;
  c.axes = {{"n", conv.batch, false}, {"ko", outputs, false}, {"h", conv.height, false},
            {"w", conv.width, false}, {"ki", lanes, false},   {"co", inputs, true},
            {"r", 3, true},           {"s", 3, true},         {"ci", lanes, true}};
  auto plain = [](int axis, int64_t extent) { return cost::Index{{{axis, 1, 1, 0}}, extent}; };
  auto window = [](int axis, int tap, int64_t extent) {
    return cost::Index{{{axis, 1, 1, 0}, {tap, 1, 1, 0}}, extent + 2};
  };
  cost::Operand input, weights, result;
  input.indices = {plain(kImage, conv.batch), plain(kChannels, inputs),
                   window(kRow, kTapY, conv.height), window(kColumn, kTapX, conv.width),
                   plain(kChannel, lanes)};
  weights.indices = {plain(kFilters, outputs), plain(kChannels, inputs), plain(kTapY, 3),
                     plain(kTapX, 3),          plain(kChannel, lanes),   plain(kLane, lanes)};
  weights.constant = true;
  result.indices = {plain(kImage, conv.batch), plain(kFilters, outputs), plain(kRow, conv.height),
                    plain(kColumn, conv.width), plain(kLane, lanes)};
  c.operands = {input, weights, result};
  c.lanes = kLane, c.columns = kFilters, c.rows = kColumn, c.plane = kRow;
  c.lane_count = static_cast<int>(lanes);
  return c;
}

}  // namespace

cost::Prediction predict_conv(const graph::Conv3x3& conv, int64_t m, const hw::CpuTarget& target,
                              int threads) {
  if (m > 0)
    return cost::plan_winograd(
               {conv.batch, conv.channels, conv.filters, conv.height, conv.width, m}, target,
               threads)
        .time;
  const cost::Contraction direct = direct_form(conv, std::max(target.lanes(32), 1));
  return cost::rank_points(direct, target, threads).front().time;
}

int64_t winograd_tile(const graph::Conv3x3& conv, const hw::CpuTarget& target, int threads) {
  int64_t best = 0;
  double best_time = predict_conv(conv, 0, target, threads).total() / kMargin;
  for (const int64_t m : {2, 4}) {
    const double time = predict_conv(conv, m, target, threads).total();
    if (time < best_time) best_time = time, best = m;
  }
  return best;
}

}  // namespace tilewright::tune
