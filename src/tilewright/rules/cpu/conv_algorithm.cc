// Which form of a convolution is fastest: direct on channel blocks, direct on plain rows, direct in
// several sums over some channels each, without taps in the padding, or Winograd. Each form is
// written as a contraction, and the tile that the model ranks first gives its time; copies that a
// form needs around it are added. A form with larger rounding errors, or with more steps, must be
// faster by a margin of 3 to 10 %.
#include "tilewright/rules/cpu/conv_algorithm.h"

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/cost/tile_space.h"
#include "tilewright/cost/winograd.h"
#include "tilewright/tensor/winograd.h"

namespace tilewright::rules {
namespace {

/// A form with larger rounding errors must be faster by this factor than those with smaller ones.
constexpr double kMargin = 1.03;
/// Tiles and points at most, where both axes are transformed and where one is: errors are about
/// those of F(4x4, 3x3), 1e-5 of the largest value.
constexpr int64_t kTileOfTwo = 4, kTileOfOne = 6, kPointsOfTwo = 8, kPointsOfOne = 10;

/// Parts of a direct form at most.
constexpr int64_t kMostParts = 64;
/// Weights of one vector of filters leave room for pixels if L2 holds so many times their bytes.
constexpr int64_t kRoom = 4;
/// The direct form is cut into sums only where that is faster by this factor.
constexpr double kPartsMargin = 1.1;
/// Taps in the padding are left out only where that is faster by this factor.
constexpr double kSkipMargin = 1.1;

/// The direct form on `inputs` blocks of `block` channels; with `skip`, without taps in the
/// padding.
cost::Contraction contraction_of(const tensor::Conv2dShape& conv, int64_t inputs, int64_t block,
                                 int64_t lanes, bool skip = false) {
  enum { kImage, kFilters, kRow, kColumn, kLane, kChannels, kTapY, kTapX, kChannel };
  const int64_t outputs = ceil_div(conv.filters, lanes);
  cost::Contraction c;
  c.axes = {{"n", conv.batch, false}, {"ko", outputs, false},   {"h", conv.height, false},
            {"w", conv.width, false}, {"ki", lanes, false},     {"co", inputs, true},
            {"r", conv.taps_h, true}, {"s", conv.taps_w, true}, {"ci", block, true}};
  auto plain = [](int axis, int64_t extent) { return cost::Index{{{axis, 1, 1, 0}}, extent}; };
  // Without taps in the padding, the input is read as it lies: no larger copy is made of it.
  auto window = [&](int axis, int tap, int64_t extent, int64_t taps, int64_t dilation) {
    const int64_t whole = axis == kRow ? conv.input_h : conv.input_w;
    return cost::Index{{{axis, 1, 1, 0}, {tap, dilation, 1, 0}},
                       skip ? whole : extent + (taps - 1) * dilation};
  };
  cost::Operand input, weights, result;
  input.indices = {plain(kImage, conv.batch), plain(kChannels, inputs),
                   window(kRow, kTapY, conv.height, conv.taps_h, conv.dilation_h),
                   window(kColumn, kTapX, conv.width, conv.taps_w, conv.dilation_w),
                   plain(kChannel, block)};
  weights.indices = {plain(kFilters, outputs),  plain(kChannels, inputs), plain(kTapY, conv.taps_h),
                     plain(kTapX, conv.taps_w), plain(kChannel, block),   plain(kLane, lanes)};
  weights.constant = true;
  result.indices = {plain(kImage, conv.batch), plain(kFilters, outputs), plain(kRow, conv.height),
                    plain(kColumn, conv.width), plain(kLane, lanes)};
  c.operands = {input, weights, result};
  c.lanes = kLane, c.columns = kFilters, c.rows = kColumn, c.plane = kRow;
  c.lane_count = static_cast<int>(lanes);
  if (skip)
    c.insides = {{kRow, kTapY, 1, conv.dilation_h, conv.pad_h, conv.input_h},
                 {kColumn, kTapX, 1, conv.dilation_w, conv.pad_w, conv.input_w}};
  return c;
}

/// ns to read and write `bytes` by all threads, as a kernel that only moves them does.
double moving(double bytes, const hw::CpuTarget& target, int threads) {
  const hw::CpuRates rates = target.rates_or_assumed();
  const bool near = bytes <= cost::kFill * static_cast<double>(target.l3_bytes);
  return bytes / (near ? rates.l3 : rates.dram).of(std::max(threads, 1));
}

double pixels(const tensor::Conv2dShape& conv) {
  return static_cast<double>(conv.batch * conv.height * conv.width);
}

/// The direct form as `parts` sums over as many channels each.
cost::Prediction predict_parts(const tensor::Conv2dShape& conv, const tensor::DirectForm& form,
                               const hw::CpuTarget& target, int threads) {
  const int64_t parts = form.parts;
  const int64_t lanes = std::max(target.lanes(32), 1);
  const int64_t blocks = ceil_div(conv.channels, lanes);
  cost::Prediction time =
      cost::rank_points(contraction_of(conv, blocks / parts, lanes, lanes, form.skip), target,
                        threads)
          .front()
          .time;
  if (parts == 1) return time;
  for (double* each :
       {&time.compute, &time.l1, &time.l2, &time.l3, &time.dram, &time.pack, &time.join})
    *each *= static_cast<double>(parts);
  // Each part but the first reads the sums so far.
  const double sums = 4 * pixels(conv) * static_cast<double>(conv.filters);
  time.pack += static_cast<double>(parts - 1) * moving(2 * sums, target, threads);
  return time;
}

/// What takes apart and puts together the phases of a dilated convolution.
double phases_time(const tensor::Conv2dShape& conv, const hw::CpuTarget& target, int threads) {
  const tensor::Conv2dShape phases = conv.phases();
  const double fetched = static_cast<double>(phases.batch * (phases.height + phases.taps_h - 1) *
                                             (phases.width + phases.taps_w - 1));
  // Each reads what the next one writes; a line that is written is fetched before.
  const double input = static_cast<double>(conv.channels) * (pixels(conv) + 2 * fetched);
  const double output = static_cast<double>(conv.filters) * (pixels(phases) + 2 * pixels(conv));
  return moving(4 * (input + output), target, threads) + 2 * target.rates_or_assumed().fork_join_ns;
}

/// The fastest form that multiplies all taps.
tensor::DirectForm padded_form(const tensor::Conv2dShape& conv, const hw::CpuTarget& target,
                               int threads) {
  const int64_t lanes = std::max(target.lanes(32), 1), blocks = ceil_div(conv.channels, lanes);
  tensor::DirectForm best;
  // Weights of a vector of filters that leave room in L2 for the pixels they meet stay there.
  if (kRoom * conv.channels * conv.taps_h * conv.taps_w * lanes * 4 <= target.l2_bytes) return best;
  double best_time = predict_parts(conv, best, target, threads).total();
  const double input = 4 * pixels(conv) * static_cast<double>(conv.channels);
  const double rows =
      cost::rank_points(contraction_of(conv, conv.channels, 1, lanes), target, threads)
          .front()
          .time.total();
  best.rows = rows <= kMargin * (best_time + moving(3 * input, target, threads));
  for (int64_t parts = 2; parts <= std::min(blocks, kMostParts); ++parts) {
    if (blocks % parts != 0) continue;
    const double time = predict_parts(conv, {.parts = parts}, target, threads).total();
    if ((best.parts == 1 ? kPartsMargin : 1) * time < best_time)
      best_time = time, best.parts = parts;
  }
  return best;
}

}  // namespace

tensor::DirectForm direct_form(const tensor::Conv2dShape& conv, const hw::CpuTarget& target,
                               int threads) {
  const tensor::DirectForm padded = padded_form(conv, target, threads);
  if (conv.input_h == 0 || (conv.pad_h == 0 && conv.pad_w == 0)) return padded;
  // As many sums as without: which terms are added first is no matter of the padding.
  const tensor::DirectForm skipping{padded.parts, false, true};
  // Plain channels are copied into blocks: rows without padding begin where they like.
  const double copy =
      padded.rows ? moving(12 * pixels(conv) * static_cast<double>(conv.channels), target, threads)
                  : 0;
  const double time = copy + predict_parts(conv, skipping, target, threads).total();
  const bool faster = kSkipMargin * time < predict_parts(conv, padded, target, threads).total();
  return faster ? skipping : padded;
}

cost::Prediction predict_conv(const tensor::Conv2dShape& conv, int64_t m,
                              const hw::CpuTarget& target, int threads) {
  if (m == 0) return predict_parts(conv, direct_form(conv, target, threads), target, threads);
  const tensor::Conv2dShape phases = conv.phases();
  cost::WinogradShape shape{phases.batch,  phases.channels, phases.filters,
                            phases.height, phases.width,    m,
                            phases.taps_h, phases.taps_w};
  shape.width =
      tensor::winograd_columns(shape.height, shape.width, shape.tile_w()) * shape.tile_w();
  cost::Prediction time = cost::plan_winograd(shape, target, threads).time;
  if (conv.dilation_h > 1 || conv.dilation_w > 1) time.pack += phases_time(conv, target, threads);
  return time;
}

std::vector<int64_t> winograd_tiles(const tensor::Conv2dShape& conv) {
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

int64_t winograd_tile(const tensor::Conv2dShape& conv, const hw::CpuTarget& target, int threads) {
  int64_t best = 0;
  double best_time = predict_conv(conv, 0, target, threads).total();
  for (const int64_t m : winograd_tiles(conv)) {
    const double time = predict_conv(conv, m, target, threads).total();
    if (kMargin * time < best_time) best_time = time, best = m;
  }
  return best;
}

}  // namespace tilewright::rules
