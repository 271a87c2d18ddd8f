// How a Winograd convolution runs best: how its tiles and filters are cut up, and how long it
// takes.
#pragma once

#include <cstdint>

#include "tilewright/cost/prediction.h"
#include "tilewright/hw/target.h"

namespace tilewright::cost {

/// F(m x m, 3 x 3) of stride 1 on blocked channels; sizes of the output.
struct WinogradShape {
  int64_t batch = 1, channels = 0, filters = 0, height = 0, width = 0, m = 4;
};

/// The image is done in strips of tiles; in each strip the input is transformed, then, for groups
/// of filter blocks, come products and inverse transforms.
struct WinogradPlan {
  int64_t strip_rows = 1, strip_columns = 1;  ///< of tiles; they divide the image's
  int64_t group = 1;                          ///< filter blocks of a vector's width
  int64_t tile_rows = 1, tile_columns = 1;    ///< register tile: tiles x filter blocks
  bool by_filters = false;  ///< workers share a strip and divide the groups; else divide strips
  Prediction time;
};

/// The fastest plan by a model of the machine. requires: positive sizes.
/// source: the order of loops and what stays in which cache: specs/performance.md 1.2.
WinogradPlan plan_winograd(const WinogradShape& shape, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::cost
