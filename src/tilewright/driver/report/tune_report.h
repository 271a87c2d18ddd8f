// The HTML page of a tuning run.
#pragma once

#include <string>

#include "tilewright/driver/tuning/tune_run.h"

namespace tilewright::driver {

/// One self-contained file: per kernel the best so far over time and over trials, what failed and
/// why, how well the model ranked, the winner beside the machine's limits, its trace and its loops.
/// requires: a run that has decided. errors: Io.
Status write_tune_report(const std::string& path, const TuneRun& run);

}  // namespace tilewright::driver
