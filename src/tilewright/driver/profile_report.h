// The time of every step beside what the machine would allow, for people and machines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/driver/limits.h"
#include "tilewright/runtime/executor.h"

namespace tilewright::driver {

/// One array entry per step, in program order, then the object of the total.
/// requires: one limit per step.
nlohmann::ordered_json profile_json(const std::vector<runtime::StepProfile>& steps,
                                    const std::vector<StepLimit>& limits);
/// The same as a table; the last row sums up.
std::string profile_table(const std::vector<runtime::StepProfile>& steps,
                          const std::vector<StepLimit>& limits);

}  // namespace tilewright::driver
