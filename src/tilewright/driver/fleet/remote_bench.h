// `bench --worker`: times on devices of the fleet, one row per device.
#pragma once

#include <string>

#include "tilewright/driver/fleet/remote.h"

namespace tilewright::driver {

/// Each subject on each worker, for `seconds` after a warm-up there.
/// errors: those of compiling and of the fleet.
Result<int> bench_remotely(const SubjectOptions& options, const WorkerChoice& choice,
                           double seconds, const std::string& command, bool as_json);

}  // namespace tilewright::driver
