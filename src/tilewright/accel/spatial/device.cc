#include "tilewright/accel/spatial/device.h"

#include <fmt/format.h>

namespace tilewright::spatial {
namespace {

/// What the host needs is no part of it.
bool same_hardware(const Design& a, Design b) {
  b.name = a.name;
  b.host = a.host;
  return a == b;
}

}  // namespace

Result<LaunchReport> execute(Device& device, const Program& program, const LaunchOptions& options,
                             const accel::AfterRun& after_run) {
  if (!same_hardware(device.design(), program.design))
    return fail(
        ErrorKind::Invalid,
        fmt::format("the program is for other hardware than device '{}' has", device.name()),
        fmt::format("the program is for '{}', the device is '{}'", program.design.name,
                    device.design().name));
  TW_TRY_STATUS(accel::write_image(device, program));
  return accel::launch_runs(device, program, options, after_run);
}

}  // namespace tilewright::spatial
