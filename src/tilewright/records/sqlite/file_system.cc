#include "tilewright/records/sqlite/file_system.h"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <filesystem>

namespace tilewright::records {
namespace {

struct Shared {
  int64_t kind;
  const char* name;
};
/// source: linux/magic.h and the headers of each file system.
constexpr Shared kShared[] = {
    {0x6969, "NFS"},      {0x517b, "SMB"},        {0xff534d42, "SMB"},  {0xfe534d42, "SMB"},
    {0x65735546, "FUSE"}, {0x0bd00bd0, "Lustre"}, {0x00c36400, "Ceph"}, {0x47504653, "GPFS"},
};

}  // namespace

int64_t file_system_of(const std::string& path) {
  struct statfs found{};
  if (::statfs(path.c_str(), &found) != 0) return 0;
  return static_cast<uint32_t>(found.f_type);  // some are negative as a long of 32 bits
}

Status check_file_system(const std::string& path, FileSystemOf kind_of) {
  if (path == ":memory:") return {};
  std::error_code ignored;
  std::filesystem::path there = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::exists(there, ignored) && there.has_relative_path())
    there = there.parent_path();
  const int64_t kind = kind_of(there);
  for (const Shared& one : kShared)
    if (one.kind == kind)
      return fail(ErrorKind::Io,
                  fmt::format("the record store {} is on a network file system", path),
                  fmt::format("{} does not keep the locks of SQLite, so two machines would damage "
                              "the file",
                              one.name),
                  "--store postgresql://HOST/DATABASE is for several machines (tilewright fleet "
                  "init); --store sqlite:FILE names a file on a local disk");
  return {};
}

}  // namespace tilewright::records
