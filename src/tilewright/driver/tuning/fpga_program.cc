#include "tilewright/driver/tuning/fpga_program.h"

#include <fmt/format.h>

#include "tilewright/driver/console.h"
#include "tilewright/ir/walk.h"
#include "tilewright/tune/fpga/schedule.h"

namespace tilewright::driver {

FpgaProgram scheduled_for_fpga(const Func& func, const hw::FpgaDevice& device) {
  bool cut = false;
  walk(func.body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    cut |= loop != nullptr && find_mark(loop->marks, MarkKind::Pipeline) != nullptr;
  });
  if (cut) return {func, ""};
  const auto best = tune::best_fpga_schedule(func, device);
  if (!best) {
    say(fmt::format("note: {} is not scheduled: {}{}", func.name, best.error().what,
                    best.error().why.empty() ? "" : ", " + best.error().why));
    return {func, ""};
  }
  say(fmt::format("schedule: {}; {:.4g} ms by the model, bound by {}", to_string(best->design),
                  best->time.cycles / device.clock_mhz * 1e-3, best->time.bound));
  return {best->func, print(best->trace)};
}

}  // namespace tilewright::driver
