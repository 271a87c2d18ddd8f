// NumPy's .npz archives: several named arrays in one file.
#pragma once

#include <map>
#include <string>

#include "tilewright/base/array.h"

namespace tilewright::driver {

/// All arrays by name (without `.npy`). errors: Io, Parse, with the member; Unsupported in builds
/// without libzip.
Result<std::map<std::string, Array>> read_npz(const std::string& path);

}  // namespace tilewright::driver
