#include "tilewright/fleet/blob_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "tilewright/base/file.h"

namespace tilewright::fleet {
namespace fs = std::filesystem;

Result<BlobCache> BlobCache::open(const std::string& folder, int64_t most_bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorKind::Io, fmt::format("cannot make the folder {}", folder), error.message(),
                "--cache names another");
  return BlobCache(folder, most_bytes);
}

Result<std::string> BlobCache::get(const std::string& sha,
                                   const std::function<Result<std::string>()>& fetch,
                                   bool* fetched) const {
  const fs::path path = fs::path(folder_) / sha;
  if (fetched != nullptr) *fetched = false;
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    Result<std::string> kept = read_file(path);
    if (kept && sha256(*kept) == sha) {
      fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // used just now
      return kept;
    }
    fs::remove(path, ignored);
  }
  std::string bytes = TW_TRY(fetch());
  if (fetched != nullptr) *fetched = true;
  // A full disk costs the next job time, not this one its result.
  if (static_cast<int64_t>(bytes.size()) <= most_bytes_ && write_file(path, bytes)) trim();
  return bytes;
}

void BlobCache::trim() const {
  struct Kept {
    fs::file_time_type used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<Kept> files;
  int64_t sum = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    std::error_code gone;  // another worker may remove what is listed here
    if (!entry.is_regular_file(gone)) continue;
    const auto bytes = static_cast<int64_t>(entry.file_size(gone));
    const auto used = entry.last_write_time(gone);
    if (gone) continue;
    files.push_back({used, bytes, entry.path()});
    sum += bytes;
  }
  std::sort(files.begin(), files.end(),
            [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& file : files) {
    if (sum <= most_bytes_) break;
    fs::remove(file.path, error);
    sum -= file.bytes;
  }
}

}  // namespace tilewright::fleet
