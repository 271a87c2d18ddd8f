// Schedules of state over time: blocks with a scan iteration, such as the steps of an LSTM.
#pragma once

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Inside the loop over time: lanes along the innermost axis, small loops around it unrolled,
/// buffers of one iteration in registers, the outermost loops on threads.
void schedule_scans(Draft& draft, const hw::CpuTarget& target, int threads);

/// Whether there are such blocks; else why not.
Answer<Done> find_scans(const Func& func);

}  // namespace tilewright::rules
