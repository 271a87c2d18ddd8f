// A folder with a package and its inputs, run: see run.cc.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright::runner {

/// Runs what lies in `folder` and leaves outputs and result.json there. Returns the exit status: 0,
/// or what enum tw_code has for the error that result.json and stderr tell. errors: Io (result.json
/// cannot be written).
Result<int> run_folder(const std::string& folder);

}  // namespace tilewright::runner
