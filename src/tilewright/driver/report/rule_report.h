// Which rule scheduled a kernel, and why those before it declined: for `explain`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/compile/kernel_report.h"
#include "tilewright/hw/targets.h"

namespace tilewright::driver {

/// Members of the kernel's entry: `rule`, `declined`, `sums`; `recorded`, where a record of tuning
/// decided. Empty where neither did (-O 0).
nlohmann::ordered_json rules_json(const compile::KernelReport& kernel);
/// The same for people.
std::string rules_text(const compile::KernelReport& kernel);

/// All rules of the back-end of `target`, in the order in which they are asked.
nlohmann::ordered_json rule_list_json(const hw::Target& target);
std::string rule_list_text(const hw::Target& target);

}  // namespace tilewright::driver
