// How a Winograd convolution runs best: how its tiles and filters are cut up, and how long it
// takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/cost/prediction.h"
#include "tilewright/hw/target.h"

namespace tilewright::cost {

/// A convolution of stride 1 on blocked channels, with tiles of `m` outputs along each axis of the
/// window that has several taps; sizes of the output.
struct WinogradShape {
  int64_t batch = 1, channels = 0, filters = 0, height = 0, width = 0, m = 4;
  int64_t taps_h = 3, taps_w = 3;
  bool shared = true;  ///< all images of the batch use the same filters

  int64_t tile_h() const { return taps_h == 1 ? 1 : m; }
  int64_t tile_w() const { return taps_w == 1 ? 1 : m; }
  int64_t points_h() const { return tile_h() + taps_h - 1; }
  int64_t points_w() const { return tile_w() + taps_w - 1; }
};

/// Tiles that are done together; they divide the batch and the image. Several images make one strip
/// only where it takes them whole: then weights are read once for all of them.
struct WinogradStrip {
  int64_t images = 1, rows = 1, columns = 1;
  int64_t tiles() const { return images * rows * columns; }
  friend bool operator==(const WinogradStrip&, const WinogradStrip&) = default;
};

/// The batch is done in strips of tiles; in each strip the input is transformed, then, for groups
/// of filter blocks, come products and inverse transforms.
struct WinogradPlan {
  WinogradStrip strip;
  int64_t group = 1;                        ///< filter blocks of a vector's width
  int64_t tile_rows = 1, tile_columns = 1;  ///< register tile: tiles x filter blocks
  /// Workers divide the groups of each strip, and where that is even, transform its input each for
  /// itself; else they divide the strips.
  bool by_filters = false;
  Prediction time;
};

/// The fastest plan by a model of the machine. requires: positive sizes.
/// source: the order of loops and what stays in which cache: docs/cpu.md.
WinogradPlan plan_winograd(const WinogradShape& shape, const hw::CpuTarget& target, int threads);

/// `4x14`: rows and columns of tiles; `8 of 4x14`: of several images.
std::string describe(const WinogradStrip& strip);

/// How the batch and the filters may be cut.
struct WinogradCuts {
  std::vector<WinogradStrip> strips;
  std::vector<int64_t> groups;
};
WinogradCuts winograd_cuts(const WinogradShape& shape, const hw::CpuTarget& target);

/// The plan with the cuts and the division among workers of `cuts`, and of the register tiles that
/// fit them the fastest but `slower`; its time by the model.
WinogradPlan winograd_plan_at(const WinogradShape& shape, const WinogradPlan& cuts, size_t slower,
                              const hw::CpuTarget& target, int threads);

}  // namespace tilewright::cost
