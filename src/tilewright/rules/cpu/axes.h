// Whether a kernel's axes are joined or split before it is scheduled.
#pragma once

#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::rules {

/// `func` with its axes joined (ir/join_axes.h) or split (ir/split_axes.h) where the tiles of its
/// largest sum of products are not slower by that: 49 pixels of a map are eight tiles of six and
/// one more, its seven rows of seven are not; the filters of one group are rows of a tile once they
/// have an axis of their own. `func` itself where neither changes it, there is no such sum, or the
/// model prefers the axes as they are (blocks of whole rows).
Func with_best_axes(const Func& func, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::rules
