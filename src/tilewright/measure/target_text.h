// Targets as text: a job says itself what it is compiled for, so that a worker needs to know no
// target by name. A line of JSON, as jobs are.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/hw/targets.h"

namespace tilewright::measure {

/// A CPU or a GPU. Without the rates of a CPU: they decide schedules, and a job has its schedule.
std::string print_target(const hw::Target& target);
/// errors: Parse, with the member that is missing or of another type.
Result<hw::Target> parse_target(std::string_view text);

}  // namespace tilewright::measure
