// NumPy's .npy format in memory; files: array.h.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/array.h"

namespace tilewright {

/// The array in the bytes of a .npy file; `place` is for messages. errors: Parse, Unsupported.
/// Arrays in Fortran order are turned to row-major ones.
Result<Array> parse_npy(std::string_view file, const std::string& place);

/// `array` as a .npy file. errors: Unsupported (NumPy has no such type).
Result<std::string> npy_bytes(const Array& array);

}  // namespace tilewright
