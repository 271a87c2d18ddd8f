#include "tilewright/fleet/kept_caches.h"

#include <algorithm>
#include <filesystem>

#include "tilewright/fleet/confine/folder.h"

namespace tilewright::fleet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "/.cache";
constexpr size_t kLogins = 4;
/// Of one login. PoCL has 2 MB in 130 files for a ResNet-18; a job's folder may have 10 000 files.
constexpr int64_t kMostBytes = 256 << 20, kMostFiles = 5000;

}  // namespace

void KeptCaches::give(const std::string& login, const std::string& folder) {
  const auto of_login = [&](const auto& one) { return one.first == login; };
  const auto kept = std::find_if(kept_.begin(), kept_.end(), of_login);
  if (kept == kept_.end()) return;
  std::error_code error;  // a child without a cache is slower, and that is all
  fs::rename(kept->second.path() + kName, folder + kName, error);
  kept_.erase(kept);
}

void KeptCaches::take(const std::string& login, const std::string& folder) {
  const std::string left = folder + kName;
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(left, error))) return;
  const FolderUsage usage = folder_usage(left, kMostFiles);
  if (usage.bytes > kMostBytes || usage.files > kMostFiles || usage.too_deep) return;
  if (!hand_over(left, std::nullopt)) return;  // who gets it next could not be given it
  Result<TemporaryFolder> place = TemporaryFolder::create();
  if (!place) return;
  fs::rename(left, place->path() + kName, error);
  if (error) return;
  if (kept_.size() == kLogins) kept_.pop_front();
  kept_.emplace_back(login, std::move(*place));
}

}  // namespace tilewright::fleet
