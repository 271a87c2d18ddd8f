#include "tilewright/accel/vta/device.h"

#include <fmt/format.h>

namespace tilewright::vta {

Status check_design(const Device& device, const Program& program) {
  if (same_architecture(device.config(), program.config)) return {};
  return fail(ErrorKind::Invalid,
              fmt::format("the program is for another design than device '{}' has", device.name()),
              fmt::format("the program is for {}, the device is {}", label(program.config),
                          label(device.config())));
}

Result<LaunchReport> execute(Device& device, const Program& program, const LaunchOptions& options,
                             const accel::AfterRun& after_run) {
  TW_TRY_STATUS(check_design(device, program));
  TW_TRY_STATUS(accel::write_image(device, program));
  return accel::launch_runs(device, program, options, after_run);
}

}  // namespace tilewright::vta
