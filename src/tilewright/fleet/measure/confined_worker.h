// Measuring processes that are confined: what they compile and run is of a submitter's making.
#pragma once

#include "tilewright/fleet/sandbox.h"
#include "tilewright/measure/running_worker.h"

namespace tilewright::fleet {

/// Starts workers in a sandbox, each with the limits and files of `confined`, in a folder of its
/// own; its argv, folder and descriptors are set here.
measure::StartWorker confined_workers(SandboxKind kind, Confined confined);

}  // namespace tilewright::fleet
