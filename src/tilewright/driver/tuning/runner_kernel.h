// One scheduled kernel on a machine without a compiler, for measuring.
//
// The kernel is compiled here into a package of one step. `CMD --serve -`, which the worker starts
// beside this process (fleet/measure/runner_door.h), takes it through its stdin, keeps it open,
// runs it as often as it is told, and says how long each run took by the clock of the machine that
// it is on: qemu-aarch64 on this machine, or a board behind ssh.
#pragma once

#include <memory>
#include <string>

#include "tilewright/measure/device_kernel.h"

namespace tilewright::driver {

/// Compiles a scheduled Func for the processor behind a device `runner:CMD`, and starts CMD with
/// it. For workers (measure/device_kernel.h). errors: what lowering and code generation report;
/// Unsupported (a part of a larger buffer, an operand that is changed in place, bf16, which no .npy
/// file holds); Device (CMD does not start, or this is no process of a fleet's worker).
Result<std::unique_ptr<measure::DeviceKernel>> load_runner_kernel(const Func& scheduled,
                                                                  const hw::Target& target,
                                                                  int threads,
                                                                  const std::string& device);

}  // namespace tilewright::driver
