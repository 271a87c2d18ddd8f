// Long sums with few results on a GPU: blocks of their own for parts of the terms, then a kernel
// that adds up (split-K).
#pragma once

#include <string>

#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {

/// Splits the reduction that `tile` is for into tile.splits parts, or into fewer of equal length.
/// Returns the block of partial sums, which `tile` is changed to fit: it has an axis of parts in
/// front of the result's and is written back by a block of its own; the reduction itself adds the
/// parts up, in order. Empty, with some steps taken, where it does not apply (a float sum in exact
/// math).
std::string split_gpu_sum(Draft& draft, GpuTile& tile);

/// The same for the product `name` in mma.splits parts: each is a product of its own.
std::string split_gpu_mma(Draft& draft, const std::string& name, GpuMma& mma,
                          const hw::GpuTarget& target);

}  // namespace tilewright::rules
