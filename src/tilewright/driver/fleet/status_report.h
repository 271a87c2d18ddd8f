// What `fleet` prints of the JSON that the store answers with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/base/result.h"

namespace tilewright::driver {

/// Tables of devices, queues and runs. errors: Package (another form than expected).
Result<std::string> status_text(const nlohmann::json& status);
/// One line per event.
std::string events_text(const nlohmann::json& events);
/// Any answer: a line per member.
std::string answer_text(const nlohmann::json& answer);

}  // namespace tilewright::driver
