// A launch as pictures: which unit did what, and when.
#pragma once

#include <string>

#include "tilewright/accel/common/run_trace.h"
#include "tilewright/accel/dpu/device.h"

namespace tilewright::dpu {

/// A row per unit with instructions and what they waited for, and one with the run's spans
/// (layers). requires: a report with the times of `run`.
accel::RunTrace run_trace(const Run& run, const Config& config, const LaunchReport& report);

/// One page: four lanes in the colours of the DPUV3INT8 paper, layers above, milliseconds below.
/// Details show under the mouse, the wheel zooms. What is too narrow to be seen is drawn together.
/// requires: as run_trace.
std::string timeline_svg(const Run& run, const Config& config, const LaunchReport& report);

}  // namespace tilewright::dpu
