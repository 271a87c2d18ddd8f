// Blobs that a worker keeps on its disk, so that a package it ran before need not travel again.
// Files named by their hash; those used least recently go when there are too many bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tilewright/base/result.h"

namespace tilewright::fleet {

/// Several workers may share a folder.
class BlobCache {
 public:
  /// `most_bytes`: what the folder may hold. errors: Io.
  static Result<BlobCache> open(const std::string& folder, int64_t most_bytes);

  /// The bytes of a blob: from the folder, where they still have that hash, else from `fetch`, and
  /// kept. `fetched` is told whether they had to be. A file that is as it was at the last look is
  /// not hashed again. errors: those of `fetch`.
  Result<std::string> get(const std::string& sha256,
                          const std::function<Result<std::string>()>& fetch,
                          bool* fetched = nullptr) const;
  /// The same at the end of a file, which may not be there yet. Nothing waits for the disk. errors:
  /// those of `fetch`; Io.
  Status append(const std::string& sha256, const std::string& path,
                const std::function<Result<std::string>()>& fetch) const;
  /// Removes what was used least recently until at most `most_bytes` are left.
  void trim() const;

 private:
  BlobCache(std::string folder, int64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  /// Files whose bytes were seen to have their hash, and their states then.
  struct Seen {
    std::mutex mutex;
    std::map<std::string, std::array<int64_t, 4>> states;
  };
  bool is_as_seen(const std::string& path) const;
  void see(const std::string& path) const;

  std::string folder_;
  int64_t most_bytes_;
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};

}  // namespace tilewright::fleet
