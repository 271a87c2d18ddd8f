// The folder that a confined program writes: before, while and after it runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tilewright/base/result.h"

namespace tilewright::fleet {

/// Makes `user` its owner, with all in it; absent: only looks. errors: Io (none, not allowed),
/// Invalid (a file in it has a second name elsewhere, under which it would be written).
Status hand_over(const std::string& folder, std::optional<uid_t> user);

struct FolderUsage {
  int64_t bytes = 0, files = 0;  ///< folders count as files
  bool too_deep = false;         ///< folders in folders in folders: not all were counted
};
/// Counts until there are more than `most_files`.
FolderUsage folder_usage(const std::string& folder, int64_t most_files);

/// Folders that a child has locked its own user out of can be read and removed again.
void unlock_folders(const std::string& folder);

}  // namespace tilewright::fleet
