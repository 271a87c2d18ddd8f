// Measuring processes that are confined: what they compile and run is of a submitter's making.
#pragma once

#include "tilewright/fleet/open_package.h"
#include "tilewright/fleet/sandbox.h"
#include "tilewright/measure/running_worker.h"

namespace tilewright::fleet {

/// Starts workers in a sandbox, each with the limits and files of `confined`, in a folder of its
/// own; its argv, folder and descriptors are set here. `runner`: what each of them has started for
/// it through a door (runner_door.h); empty: it has none.
measure::StartWorker confined_workers(SandboxKind kind, Confined confined, OpenChild runner = {});

}  // namespace tilewright::fleet
