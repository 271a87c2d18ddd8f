// Where built models are kept.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright::vta::rtl {

/// $TILEWRIGHT_CACHE_DIR, $XDG_CACHE_HOME/tilewright or ~/.cache/tilewright, with /rtl; created.
/// errors: Io.
Result<std::string> cache_folder();

}  // namespace tilewright::vta::rtl
