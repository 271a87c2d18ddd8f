// NumPy's .npz archives: several named arrays in one file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tilewright/base/array.h"

namespace tilewright::driver {

/// All arrays by name (without `.npy`). errors: Io, Parse, Unsupported, with the member.
Result<std::map<std::string, Array>> read_npz(const std::string& path);
/// The same from the bytes of an archive; `place` is for messages.
Result<std::map<std::string, Array>> parse_npz(std::string_view bytes, const std::string& place);

/// The arrays as an archive that numpy.load reads. errors: Unsupported (NumPy has no such type),
/// Capacity (4 GB and more).
Result<std::string> npz_bytes(const std::map<std::string, Array>& arrays);

}  // namespace tilewright::driver
