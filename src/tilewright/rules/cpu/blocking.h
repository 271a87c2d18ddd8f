// The rule for windows of single channels whose operand comes as plain rows: a strip of rows at a
// time is brought into channel blocks and stays in cache until the window has read it.
#pragma once

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Schedules the copy into channel blocks, the windowed sum behind it and what finishes it as one
/// nest. Declines, with nothing changed, where the draft holds no such pair or no strip fits the
/// cache.
Answer<Done> schedule_blocking(Draft& draft, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::rules
