#include "tilewright/fleet/confine/landlock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

// The numbers are the same on all processors. Headers older than the kernel lack most of this.
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#endif

namespace tilewright::fleet {
namespace {

// Bits of a ruleset, in the order in which versions brought them.
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3,
                   kRemoveFolder = 1 << 4, kRemoveFile = 1 << 5, kMakeFolder = 1 << 7,
                   kMakeFile = 1 << 8, kRefer = 1 << 13, kTruncate = 1 << 14, kIoctl = 1 << 15;
constexpr uint64_t kOfVersion1 = (1 << 13) - 1;
constexpr uint64_t kOnFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctl;

constexpr uint64_t kReading = kExecute | kReadFile | kReadFolder;
/// Links and pipes are not among it: who reads the folder later would follow them. Files may move
/// from one folder in it to another (kRefer): compilers rename what they have finished.
constexpr uint64_t kWriting = kReadFile | kReadFolder | kWriteFile | kTruncate | kMakeFile |
                              kMakeFolder | kRemoveFile | kRemoveFolder | kRefer;
constexpr uint64_t kDevice = kReadFile | kWriteFile | kIoctl;

struct RulesetAttributes {
  uint64_t files, network, scoped;
};
struct [[gnu::packed]] PathRule {
  uint64_t allowed;
  int32_t folder;
};
constexpr uint32_t kVersionQuery = 1;  // LANDLOCK_CREATE_RULESET_VERSION
constexpr int kPathBeneath = 1;        // LANDLOCK_RULE_PATH_BENEATH

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// Allows `access` to a path, as far as it applies there.
Status allow(int ruleset, const std::string& path, uint64_t access) {
  const Descriptor place{::open(path.c_str(), O_PATH | O_CLOEXEC)};
  struct stat info{};
  if (place.fd < 0 || ::fstat(place.fd, &info) != 0)
    return fail(ErrorKind::Io, fmt::format("cannot open '{}'", path), std::strerror(errno));
  const PathRule rule{S_ISDIR(info.st_mode) ? access : access & kOnFiles, place.fd};
  if (::syscall(__NR_landlock_add_rule, ruleset, kPathBeneath, &rule, 0) != 0)
    return fail(ErrorKind::Device, fmt::format("Landlock refuses a rule for '{}'", path),
                std::strerror(errno));
  return {};
}

}  // namespace

int landlock_version() {
  const long version = ::syscall(__NR_landlock_create_ruleset, nullptr, 0, kVersionQuery);
  return version > 0 ? static_cast<int>(version) : 0;
}

LandlockScope landlock_scope(int version) {
  LandlockScope scope;
  scope.files = kOfVersion1;
  if (version >= 2) scope.files |= kRefer;
  if (version >= 3) scope.files |= kTruncate;
  if (version >= 4) scope.network = 3;  // bind and connect, TCP
  if (version >= 5) scope.files |= kIoctl;
  if (version >= 6) scope.scoped = 3;  // abstract sockets and signals
  return scope;
}

Result<int> landlock_ruleset(const LandlockPaths& paths) {
  const int version = landlock_version();
  if (version == 0)
    return fail(ErrorKind::Device, "this kernel has no Landlock", std::strerror(errno),
                "Linux 5.13 or newer, with `landlock` in the boot option lsm=");
  const LandlockScope scope = landlock_scope(version);
  const RulesetAttributes attributes{scope.files, scope.network, scope.scoped};
  // An older kernel accepts the words that it knows, and no more.
  const size_t known = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  Descriptor ruleset{
      static_cast<int>(::syscall(__NR_landlock_create_ruleset, &attributes, known, 0))};
  if (ruleset.fd < 0)
    return fail(ErrorKind::Device, "Landlock makes no ruleset", std::strerror(errno));
  const auto allow_all = [&](const std::vector<std::string>& list, uint64_t access) -> Status {
    for (const std::string& path : list)
      TW_TRY_STATUS(allow(ruleset.fd, path, access & scope.files));
    return {};
  };
  TW_TRY_STATUS(allow_all(paths.readable, kReading));
  TW_TRY_STATUS(allow_all(paths.writable, kWriting));
  TW_TRY_STATUS(allow_all(paths.devices, kDevice));
  return std::exchange(ruleset.fd, -1);
}

}  // namespace tilewright::fleet
