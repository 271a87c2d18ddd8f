// Values of options that have a unit: `90s`, `10m`, `20%`, `4G`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tilewright/base/result.h"

namespace tilewright::driver {

/// A positive number and the unit behind it. `example`: a value that would do. errors: Usage.
Result<std::pair<double, std::string>> parse_amount(const std::string& option,
                                                    const std::string& text,
                                                    const std::string& example);

/// `90s`, `10m`, `1.5h`, `500ms`; a plain number is seconds. errors: Usage.
Result<double> parse_seconds(const std::string& option, const std::string& text,
                             const std::string& example = "90s");

/// `500M`, `4G`, in units of 2^20 and 2^30. errors: Usage.
Result<int64_t> parse_bytes(const std::string& option, const std::string& text);

}  // namespace tilewright::driver
