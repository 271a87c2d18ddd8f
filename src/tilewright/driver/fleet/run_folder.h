// What a worker's child does with a folder: the package in it, run once or many times, its outputs
// and times written beside it. Packages for processors alone are run by `tilewright-runner`, which
// has the same contract (src/tilewright/runner); this one knows all devices.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright::driver {

/// Reads model.twm, job.json and inputs/; writes outputs/ and result.json. What is wrong with the
/// job is in result.json too. errors: Io (the folder cannot be written).
Status run_folder(const std::string& folder);

}  // namespace tilewright::driver
