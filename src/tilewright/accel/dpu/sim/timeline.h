// A launch as pictures: which unit did what, and when.
#pragma once

#include <string>

#include "tilewright/accel/dpu/device.h"

namespace tilewright::dpu {

/// A trace for ui.perfetto.dev (Chrome JSON): a row per unit, instructions and what they waited
/// for, and a row with the run's spans (layers). 1 cycle = 1 us on its axis.
/// requires: a report with the times of `run`.
std::string perfetto_trace(const Run& run, const Config& config, const LaunchReport& report);

/// One page: four lanes in the colours of the DPUV3INT8 paper, layers above, milliseconds below.
/// Details show under the mouse, the wheel zooms. What is too narrow to be seen is drawn together.
/// requires: as perfetto_trace.
std::string timeline_svg(const Run& run, const Config& config, const LaunchReport& report);

}  // namespace tilewright::dpu
