// tune, for accelerators that plan whole launches.
#pragma once

#include <string>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/tuning/tune_run.h"

namespace tilewright::driver {

/// Searches, writes records and the package, and reports. `report`: an HTML page, or empty.
Result<int> tune_launches(const TuneSettings& settings, const std::string& report,
                          const VerbContext& context);

}  // namespace tilewright::driver
