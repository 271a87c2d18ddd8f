// What confined processes use, seen from outside: the kernel's own limits are per process and per
// file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::fleet {

/// Processes that belong to a child.
struct Family {
  pid_t first = -1;     ///< the child itself, or the first process of its namespace
  bool inside = false;  ///< the program is a child of `first`
  bool grows = false;   ///< it may start others: all of its session or namespace are looked for
};
std::vector<pid_t> members_of(const Family& family);

struct Usage {
  int64_t memory_bytes = 0;  ///< resident
  int64_t hidden_bytes = 0;  ///< of open files that have no name: removed ones, files in memory
};
/// Ended processes use nothing.
Usage usage_of(const std::vector<pid_t>& processes);

}  // namespace tilewright::fleet
