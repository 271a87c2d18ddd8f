// The schedules of one kernel for a GPU as spaces: what the rule for its largest reduction leaves
// open. All other blocks are scheduled by the rules.
#pragma once

#include <memory>
#include <optional>

#include "tilewright/rules/gpu/tile_choice.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// Ours: tiles of matrix instructions, rounds in flight and parts of the terms; or how the two
/// sides of a sum of products are shared out, steps, rounds in flight, parts; or threads that share
/// the terms of a sum; or a thread for each result. Ranked by the model of the device. Null for
/// Funcs without a reduction, and for recurrences.
std::unique_ptr<ScheduleSpace> constructive_gpu_space(const Func& func,
                                                      const hw::GpuTarget& target);

/// FlexTensor's for GPUs: threads and elements per thread of every axis of the result, steps of
/// every loop over terms, each on its own. Null where no sum of products is found.
/// source: FlexTensor paper, section 4.2.
std::unique_ptr<ScheduleSpace> tiling_gpu_space(const Func& func, const hw::GpuTarget& target);

/// Why the rule takes the tile that it takes for the largest sum of products of a kernel.
struct GpuDecision {
  rules::GpuTileTable::Choice chosen;
  std::optional<rules::GpuTileTable::Choice> runner_up;  ///< the fastest that was not chosen
  int64_t candidates = 0;                                ///< tiles that the model compared
};
/// Absent where no sum of products gets a tile.
std::optional<GpuDecision> gpu_decision(const Func& func, const hw::GpuTarget& target);

}  // namespace tilewright::tune
