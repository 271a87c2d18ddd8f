#include "tilewright/compile/cpu/kernels.h"

#include "tilewright/lower/lower.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::compile {

Result<ScheduledKernel> schedule_and_lower(const Func& func, const KernelOptions& options) {
  ScheduledKernel kernel;
  if (options.trace != nullptr) {
    kernel.trace = *options.trace;
  } else if (options.scheduled) {
    rules::ScheduleChoice choice = rules::choose_schedule(func, options.target, options.threads);
    kernel.trace = std::move(choice.trace);
    kernel.rules = std::move(choice.rules);
    kernel.decision = std::move(choice.decision);
  }
  kernel.scheduled = TW_TRY(schedule::replay(func, kernel.trace));
  kernel.lowered = TW_TRY(lower::run_pipeline(kernel.scheduled, "cpu"));
  return kernel;
}

}  // namespace tilewright::compile
