// The worker's side of measuring: one process that compiles, runs and times what it is told to.
#pragma once

#include <functional>

#include "tilewright/measure/device_kernel.h"
#include "tilewright/measure/tile_probe.h"

namespace tilewright::measure {

/// The back-end, handed in from above.
using CompileFor = std::function<Result<runtime::CompiledKernel>(const Func& lowered,
                                                                 const hw::CpuTarget& target)>;

/// Answers jobs on the files of measure_job.h until the other side closes them, or dies: then the
/// process ends at once, whatever it is running. `load` is needed for tasks of GPUs. Exit status.
int serve_worker(const CompileFor& compile, const LoadForDevice& load = {});

}  // namespace tilewright::measure
