#include "tilewright/fleet/blob_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "tilewright/base/file.h"

namespace tilewright::fleet {
namespace fs = std::filesystem;

namespace {

/// What changes when somebody writes to a file or puts another one in its place: its number, size,
/// and when it was changed last, which nobody can set.
std::array<int64_t, 4> state_of(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {static_cast<int64_t>(found.st_ino), static_cast<int64_t>(found.st_size),
          static_cast<int64_t>(found.st_ctim.tv_sec), static_cast<int64_t>(found.st_ctim.tv_nsec)};
}

Status append_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.flush()) return {};
  return fail(ErrorKind::Io, fmt::format("cannot write {}", path), std::strerror(errno));
}

}  // namespace

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
    if (kept && (is_as_seen(path) || sha256(*kept) == sha)) {
      fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // used just now
      see(path);
      return kept;
    }
    fs::remove(path, ignored);
  }
  std::string bytes = TW_TRY(fetch());
  if (fetched != nullptr) *fetched = true;
  // A full disk costs the next job time, not this one its result.
  if (static_cast<int64_t>(bytes.size()) <= most_bytes_ && write_file(path, bytes)) {
    see(path);
    trim();
  }
  return bytes;
}

Status BlobCache::append(const std::string& sha, const std::string& path,
                         const std::function<Result<std::string>()>& fetch) const {
  const std::string kept = folder_ + "/" + sha;
  if (is_as_seen(kept))
    if (const Result<MappedFile> mapped = map_file(kept)) {
      const std::string_view bytes(mapped->bytes.data(), mapped->bytes.size());
      std::error_code ignored;
      fs::last_write_time(kept, fs::file_time_type::clock::now(), ignored);  // used just now
      see(kept);
      return append_bytes(path, bytes);
    }
  return append_bytes(path, TW_TRY(get(sha, fetch)));
}

bool BlobCache::is_as_seen(const std::string& path) const {
  const std::lock_guard<std::mutex> lock(seen_->mutex);
  const auto found = seen_->states.find(path);
  return found != seen_->states.end() && found->second == state_of(path);
}

void BlobCache::see(const std::string& path) const {
  const std::lock_guard<std::mutex> lock(seen_->mutex);
  seen_->states[path] = state_of(path);
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
