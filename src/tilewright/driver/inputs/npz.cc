#include "tilewright/driver/inputs/npz.h"

#include <fmt/format.h>

#include "tilewright/base/file.h"
#include "tilewright/base/npy.h"
#include "tilewright/driver/inputs/zip.h"

namespace tilewright::driver {

Result<std::map<std::string, Array>> read_npz(const std::string& path) {
  return parse_npz(TW_TRY(read_file(path)), path);
}

Result<std::map<std::string, Array>> parse_npz(std::string_view bytes, const std::string& place) {
  if (!is_zip(bytes))
    return fail(ErrorKind::Parse, fmt::format("'{}' is no .npz archive", place),
                "it does not begin as one", "numpy.savez(FILE, NAME=ARRAY) writes such files");
  std::map<std::string, Array> arrays;
  for (const ZipMember& member : TW_TRY(read_zip(bytes, place))) {
    std::string name = member.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] = TW_TRY(parse_npy(member.bytes, place + ":" + name));
  }
  return arrays;
}

Result<std::string> npz_bytes(const std::map<std::string, Array>& arrays) {
  std::vector<ZipMember> members;
  size_t total = 0;
  for (const auto& [name, array] : arrays) {
    members.push_back({name + ".npy", TW_TRY(npy_bytes(array))});
    total += members.back().bytes.size() + 2 * name.size() + 100;
  }
  if (total >= UINT32_MAX)
    return fail(ErrorKind::Capacity, "the outputs have 4 GB or more, too much for one .npz", {},
                "write a .npy file for each");
  return write_zip(members);
}

}  // namespace tilewright::driver
