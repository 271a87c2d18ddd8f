// The rule for sums over neighbouring channels (LRN): what they read is made for all channels of a
// strip of rows at a time, where channels of a pixel lie side by side.
#pragma once

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Schedules a sum that reads across channel blocks what one element-wise block makes for it.
/// Declines, with nothing changed, where there is none.
Answer<Done> schedule_channel_windows(Draft& draft, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::rules
