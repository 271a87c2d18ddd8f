// A package that stays open for one run after the other: see serve.cc.
#pragma once

#include <string>

namespace tilewright::runner {

/// Serves the runs that come through descriptor 3, until it is closed. Returns the exit status: 0,
/// or TW_IO where what comes is no request.
int serve_folder(const std::string& folder);

/// The same through stdin and stdout, where the package comes first.
int serve_stream();

}  // namespace tilewright::runner
