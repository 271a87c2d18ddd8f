#include "tilewright/tune/conv_algorithm.h"

#include <algorithm>

#include "tilewright/cost/tile_space.h"
#include "tilewright/cost/winograd.h"
#include "tilewright/tensor/winograd.h"

namespace tilewright::tune {
namespace {

/// A form with larger rounding errors must be faster by this factor than those with smaller ones.
constexpr double kMargin = 1.03;
/// Tiles and points at most, where both axes are transformed and where one is: errors are about
/// those of F(4x4, 3x3), 1e-5 of the largest value.
constexpr int64_t kTileOfTwo = 4, kTileOfOne = 6, kPointsOfTwo = 8, kPointsOfOne = 10;

/// The direct form on blocked channels.
cost::Contraction direct_form(const graph::PlaneConv& conv, int64_t lanes) {
  enum { kImage, kFilters, kRow, kColumn, kLane, kChannels, kTapY, kTapX, kChannel };
  const int64_t inputs = (conv.channels + lanes - 1) / lanes;
  const int64_t outputs = (conv.filters + lanes - 1) / lanes;
  cost::Contraction c;
  c.axes = {{"n", conv.batch, false}, {"ko", outputs, false},   {"h", conv.height, false},
            {"w", conv.width, false}, {"ki", lanes, false},     {"co", inputs, true},
            {"r", conv.taps_h, true}, {"s", conv.taps_w, true}, {"ci", lanes, true}};
  auto plain = [](int axis, int64_t extent) { return cost::Index{{{axis, 1, 1, 0}}, extent}; };
  auto window = [](int axis, int tap, int64_t extent, int64_t taps) {
    return cost::Index{{{axis, 1, 1, 0}, {tap, 1, 1, 0}}, extent + taps - 1};
  };
  cost::Operand input, weights, result;
  input.indices = {plain(kImage, conv.batch), plain(kChannels, inputs),
                   window(kRow, kTapY, conv.height, conv.taps_h),
                   window(kColumn, kTapX, conv.width, conv.taps_w), plain(kChannel, lanes)};
  weights.indices = {plain(kFilters, outputs),  plain(kChannels, inputs), plain(kTapY, conv.taps_h),
                     plain(kTapX, conv.taps_w), plain(kChannel, lanes),   plain(kLane, lanes)};
  weights.constant = true;
  result.indices = {plain(kImage, conv.batch), plain(kFilters, outputs), plain(kRow, conv.height),
                    plain(kColumn, conv.width), plain(kLane, lanes)};
  c.operands = {input, weights, result};
  c.lanes = kLane, c.columns = kFilters, c.rows = kColumn, c.plane = kRow;
  c.lane_count = static_cast<int>(lanes);
  return c;
}

}  // namespace

cost::Prediction predict_conv(const graph::PlaneConv& conv, int64_t m, const hw::CpuTarget& target,
                              int threads) {
  if (m > 0) {
    cost::WinogradShape shape{conv.batch, conv.channels, conv.filters, conv.height, conv.width,
                              m,          conv.taps_h,   conv.taps_w};
    shape.width =
        tensor::winograd_columns(conv.height, conv.width, shape.tile_w()) * shape.tile_w();
    return cost::plan_winograd(shape, target, threads).time;
  }
  const cost::Contraction direct = direct_form(conv, std::max(target.lanes(32), 1));
  return cost::rank_points(direct, target, threads).front().time;
}

std::vector<int64_t> winograd_tiles(const graph::PlaneConv& conv) {
  const bool both = conv.taps_h > 1 && conv.taps_w > 1;
  std::vector<int64_t> tiles;
  for (int64_t m = 2; m <= (both ? kTileOfTwo : kTileOfOne); ++m) {
    const auto fits = [&](int64_t taps) {
      if (taps > 1 && m + taps - 1 > (both ? kPointsOfTwo : kPointsOfOne)) return false;
      return tensor::winograd_tables(taps == 1 ? 1 : m, taps) != nullptr;
    };
    if (fits(conv.taps_h) && fits(conv.taps_w)) tiles.push_back(m);
  }
  return tiles;
}

int64_t winograd_tile(const graph::PlaneConv& conv, const hw::CpuTarget& target, int threads) {
  int64_t best = 0;
  double best_time = predict_conv(conv, 0, target, threads).total();
  for (const int64_t m : winograd_tiles(conv)) {
    const double time = predict_conv(conv, m, target, threads).total();
    if (kMargin * time < best_time) best_time = time, best = m;
  }
  return best;
}

}  // namespace tilewright::tune
