// Scripts that start workers where another system decides what runs: Slurm, Kubernetes, systemd,
// or a shell on another machine. They start `tilewright worker`, never a job of that system per
// candidate: such systems are made for work of minutes to hours.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::driver {

/// `kind`: slurm, k8s, ssh or systemd. errors: Usage (another kind, with the nearest).
Result<std::string> launcher_script(const std::string& kind,
                                    const std::vector<std::string>& devices);

}  // namespace tilewright::driver
