// Contractions that dot-product instructions compute: sums over groups of bytes or bf16 that lie
// side by side in both operands, and windows of one channel each over neighbouring pixels.
#pragma once

#include <optional>

#include "tilewright/cost/tile_space.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/schedule/step.h"

namespace tilewright::rules {

/// The default schedule of `func` with its contraction in dot products of `target`; declines if it
/// has none that they compute. A group of elements takes the place of one: the Func without the
/// axis inside the groups is scheduled as any other, and that schedule is replayed with the group
/// and the lanes as one instruction.
/// Of windows, taps of a row make the groups, and the instruction takes whole pixels.
///   requires: the weights are a parameter `w[.., lane, group]` that nobody else reads.
/// `point`: what to do with the contraction of groups, instead of the model's choice.
Answer<schedule::Trace> dot_trace(const Func& func, const hw::CpuTarget& target, int threads,
                                  const cost::TilePoint* point = nullptr);

/// `func` with one element in place of each group: what its schedule is chosen for. Absent where
/// `dot_trace` declines, and for windows.
std::optional<Func> dot_groups(const Func& func, const hw::CpuTarget& target);

}  // namespace tilewright::rules
