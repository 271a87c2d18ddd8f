// Devices `runner:CMD`: machines without a compiler, which CMD reaches, and what CMD may do here.
//
// CMD is chosen by whoever starts the worker, so it is trusted; what it is given is not. An
// emulator runs the code of packages on this machine, so it is confined like that code. `ssh` only
// carries them to another one: it needs a network, the user's keys and his configuration, and is
// confined by none. Which of both CMD is, its first word says.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::driver {

/// Whether a device is `runner:CMD`.
bool is_runner(const std::string& device);
/// The words of CMD. requires: is_runner(device).
std::vector<std::string> runner_command(const std::string& device);
/// Whether CMD carries packages to another machine: it begins with `ssh`, or a path that ends so.
bool leads_elsewhere(const std::vector<std::string>& command);

/// `ssh:BOARD` or `ssh:USER@BOARD` as the `runner:ssh ... tilewright-runner` that it stands for;
/// another device as it is. errors: Usage (no name of a host).
Result<std::string> as_runner(const std::string& device);

}  // namespace tilewright::driver
