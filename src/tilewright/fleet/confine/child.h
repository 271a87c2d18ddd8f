// The last steps before a confined program begins, taken between fork and exec.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/fleet/confine/seccomp.h"

namespace tilewright::fleet {

struct Child {
  std::vector<std::string> argv, environment;  ///< argv[0] is a path
  std::string folder;                          ///< where it starts
  std::optional<uid_t> user;                   ///< becomes it, and a group of that number
  std::vector<std::pair<int, rlim_t>> limits;  ///< RLIMIT_..., soft and hard
  int output = -1;                             ///< both streams
  int input = -1, answers = -1;                ///< stdin and stdout; -1: none, and `output`
  /// Descriptors that it gets, as 3, 4, ...; all others are closed.
  std::vector<int> descriptors;
  bool no_new_privileges = true;
  int ruleset = -1;  ///< of Landlock
  CallFilter filter;
};

/// Starts it in a session and process group of its own, which is its process number; it dies with
/// this thread. errors: Tool, with the step that failed.
Result<pid_t> start_child(Child child);

/// Limits of `processes` in all, of `user` or of this one beside what he has, and the others.
std::vector<std::pair<int, rlim_t>> limits_of(double seconds, int64_t memory_bytes,
                                              int64_t file_bytes, int64_t processes);
/// Processes and threads of a user now.
int64_t tasks_of(uid_t user);
/// A user that nobody is, for one child; absent if this process may not change users.
std::optional<uid_t> unused_user();

}  // namespace tilewright::fleet
