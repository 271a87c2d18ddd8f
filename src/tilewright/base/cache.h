// The user's cache: files that can be deleted at any time and are made again.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright {

/// $TILEWRIGHT_CACHE_DIR, $XDG_CACHE_HOME/tilewright or ~/.cache/tilewright, with /`part`; created.
/// errors: Io.
Result<std::string> cache_folder(const std::string& part);

}  // namespace tilewright
