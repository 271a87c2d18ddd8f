// Why a tuning run ended.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/driver/tuning/tune_run.h"

namespace tilewright::driver {

/// For JSON: `trials`, `time`, `stall`, `exhausted`, `interrupted`.
std::string_view stop_name(search::Stop stop);
/// For people, to follow `stopped because`. `all`: what there was to try, as `every way`.
std::string why_stopped(search::Stop stop, const TuneSettings& settings, const std::string& all);

}  // namespace tilewright::driver
