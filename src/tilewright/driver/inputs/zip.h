// Zip archives in memory, as NumPy writes them: members stored or deflated.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::driver {

struct ZipMember {
  std::string name, bytes;
};

/// Whether `bytes` begin as an archive does.
bool is_zip(std::string_view bytes);

/// All members, in the order of the directory; `place` is for messages. errors: Parse (cut off,
/// damaged, sums that do not match), Unsupported (archives of 4 GB and more, encrypted members,
/// methods other than deflate); with the member.
Result<std::vector<ZipMember>> read_zip(std::string_view bytes, const std::string& place);

/// An archive of `members`, stored. requires: less than 4 GB.
std::string write_zip(const std::vector<ZipMember>& members);

}  // namespace tilewright::driver
