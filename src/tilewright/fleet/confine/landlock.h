// The files that a program may reach, told to the kernel (Landlock, Linux 5.13 and newer).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::fleet {

/// The version of the kernel's interface; 0: none, or it is turned off.
int landlock_version();

/// What a ruleset of a version can forbid, as the bits of its three words.
struct LandlockScope {
  uint64_t files = 0;    ///< LANDLOCK_ACCESS_FS_...
  uint64_t network = 0;  ///< LANDLOCK_ACCESS_NET_...
  uint64_t scoped = 0;   ///< LANDLOCK_SCOPE_...
};
LandlockScope landlock_scope(int version);

struct LandlockPaths {
  std::vector<std::string> readable;  ///< files and folders; programs there may be started
  std::vector<std::string> writable;  ///< folders: files are made, written and removed there
  std::vector<std::string> devices;
};

/// A descriptor for landlock_restrict_self: nothing but the paths is reached, no port, no signal
/// sent to others. errors: Device (no Landlock), Io (a path cannot be opened).
Result<int> landlock_ruleset(const LandlockPaths& paths);

}  // namespace tilewright::fleet
