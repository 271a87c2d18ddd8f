// One kernel from tensor form to lowered form: schedule, then the lowering pipeline.
#pragma once

#include "tilewright/cost/decision.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/schedule/step.h"

namespace tilewright::compile {

struct KernelOptions {
  hw::CpuTarget target = hw::host();
  int threads = 1;
  bool scheduled = true;  ///< false: loops as written (-O0)
  /// Instead of the rules' schedule; must outlive the call.
  const schedule::Trace* trace = nullptr;
};

struct ScheduledKernel {
  schedule::Trace trace;
  rules::RuleReport rules;      ///< whose it is, where a rule chose it
  cost::RuleDecision decision;  ///< why that one
  Func scheduled;
  Func lowered;
};

/// errors: NotApplicable (`trace` does not fit), what a lowering pass reports.
Result<ScheduledKernel> schedule_and_lower(const Func& func, const KernelOptions& options);

}  // namespace tilewright::compile
