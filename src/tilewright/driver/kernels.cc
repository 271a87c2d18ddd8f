#include "tilewright/driver/kernels.h"

#include "tilewright/lower/lower.h"
#include "tilewright/tune/default_schedule.h"

namespace tilewright::driver {

Result<ScheduledKernel> schedule_and_lower(const Func& func, const KernelOptions& options) {
  ScheduledKernel kernel;
  if (options.trace != nullptr) {
    kernel.trace = *options.trace;
  } else if (options.scheduled) {
    tune::ScheduleChoice choice = tune::choose_schedule(func, options.target, options.threads);
    kernel.trace = std::move(choice.trace);
    kernel.decision = std::move(choice.decision);
  }
  kernel.scheduled = TW_TRY(schedule::replay(func, kernel.trace));
  kernel.lowered = TW_TRY(lower::run_pipeline(kernel.scheduled, options.target));
  return kernel;
}

}  // namespace tilewright::driver
