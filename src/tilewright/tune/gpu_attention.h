// Attention in one kernel of a GPU.
#pragma once

#include "tilewright/hw/gpu_target.h"
#include "tilewright/tune/draft.h"

namespace tilewright::tune {

/// Schedules attention: a block takes some queries of one head. Tiles of keys and values pass
/// through shared memory; all scores of the block stay there, from the first product to the second.
/// False, with nothing changed, for other programs.
bool schedule_gpu_attention(Draft& draft, const hw::GpuTarget& target);

}  // namespace tilewright::tune
