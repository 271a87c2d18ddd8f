// NumPy's .npy format in memory; files: array.h.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/array.h"

namespace tilewright {

/// The array in the bytes of a .npy file; `place` is for messages. errors: Parse, Unsupported.
Result<Array> parse_npy(std::string_view file, const std::string& place);

}  // namespace tilewright
