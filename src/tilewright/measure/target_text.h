// Targets as text: a job says itself what it is compiled for, so that a worker needs to know no
// target by name. A line of JSON, as jobs are.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/hw/target.h"

namespace tilewright::measure {

/// Without the rates of a CPU: they decide schedules, and a job has its schedule.
std::string print_target(const hw::CpuTarget& target);
std::string print_target(const hw::GpuTarget& target);
/// errors: Parse, with the member that is missing or of another type.
Result<hw::CpuTarget> parse_cpu_target(std::string_view text);
Result<hw::GpuTarget> parse_gpu_target(std::string_view text);

}  // namespace tilewright::measure
