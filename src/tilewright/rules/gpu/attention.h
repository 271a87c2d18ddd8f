// Attention in one kernel of a GPU.
#pragma once

#include <string>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Schedules attention: a block takes some queries of one head. Tiles of keys and values pass
/// through shared memory; all scores of the block stay there, from the first product to the second.
/// The name of a block in its kernel; declines, with nothing changed, for other programs.
Answer<std::string> schedule_gpu_attention(Draft& draft, const hw::GpuTarget& target);

/// Queries of a block, at most, if attention `func` had so many keys; 0 where their scores do not
/// fit the shared memory of `target`, or `func` is no attention.
int64_t gpu_attention_rows(const Func& func, int64_t keys, const hw::GpuTarget& target);

}  // namespace tilewright::rules
