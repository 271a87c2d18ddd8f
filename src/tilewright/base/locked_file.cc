#include "tilewright/base/locked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tilewright {

Result<std::optional<LockedFile>> LockedFile::try_lock(const std::string& path, LockKind kind) {
  LockedFile file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  const auto refused = [&] {
    return fail(ErrorKind::Io, fmt::format("'{}' cannot be locked", path), std::strerror(errno));
  };
  if (file.file_ < 0) return refused();
  const int operation = kind == LockKind::Shared ? LOCK_SH : LOCK_EX;
  while (::flock(file.file_, operation | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) return refused();
  }
  return std::optional(std::move(file));
}

LockedFile::~LockedFile() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace tilewright
