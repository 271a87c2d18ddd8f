// The command line of bwrap that confines a program.
#pragma once

#include <string>
#include <vector>

#include "tilewright/fleet/sandbox.h"

namespace tilewright::fleet {

/// Folders of programs and libraries as this system has them: /usr, and /lib and the like where
/// they are folders of their own.
std::vector<std::string> system_folders();

/// argv of bwrap; the program's own follows. `program`: what argv[0] leads to. bwrap reports
/// through descriptor `status` and reads the filter of calls from `filter`.
std::vector<std::string> bubblewrap_command(const Confined& confined, const std::string& program,
                                            const std::vector<std::string>& environment, int status,
                                            int filter);

/// What bwrap has reported so far.
struct BubblewrapStatus {
  int first = -1;      ///< process 1 of the namespace, by its number outside; -1: none yet
  bool ended = false;  ///< the program has, whatever with
};
BubblewrapStatus parse_status(const std::string& text);

}  // namespace tilewright::fleet
