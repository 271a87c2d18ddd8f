// The system calls that a confined program may make, as a filter for the kernel.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <vector>

namespace tilewright::fleet {

struct CallRules {
  /// The program shares the numbers of processes with everybody: it may name none but itself, and
  /// stays in its process group, which is how it is ended.
  bool shares_pids = false;
  /// It may start further processes; threads it always may.
  bool starts_processes = false;
};

/// A program for SECCOMP_SET_MODE_FILTER. What no computation needs ends the process by SIGSYS;
/// what libraries try and can do without gives an error.
struct CallFilter {
  std::vector<sock_filter> code;
  /// Instructions whose constant becomes the number of the process, before it is installed there.
  std::vector<size_t> own_pid;
};
/// Empty code where there is no filter for this processor.
CallFilter call_filter(const CallRules& rules);

}  // namespace tilewright::fleet
