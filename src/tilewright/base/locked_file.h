// Locks between processes, as files: whoever ends, in whatever way, holds none any more.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "tilewright/base/result.h"

namespace tilewright {

enum class LockKind {
  Shared,    ///< beside others of this kind
  Exclusive  ///< alone
};

/// Held until it is destroyed.
class LockedFile {
 public:
  /// Absent if others hold it in a way that excludes this. The file is made, and stays. errors: Io.
  static Result<std::optional<LockedFile>> try_lock(const std::string& path, LockKind kind);
  LockedFile(LockedFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  LockedFile& operator=(LockedFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~LockedFile();

 private:
  explicit LockedFile(int file) : file_(file) {}
  int file_;
};

}  // namespace tilewright
