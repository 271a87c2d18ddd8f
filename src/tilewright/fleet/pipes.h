// The two pipes to a program that is talked to through its stdin and stdout.
#pragma once

#include "tilewright/base/result.h"
#include "tilewright/fleet/confine/owned_fd.h"

namespace tilewright::fleet {

/// Pipes and no socket: a shell whose stdin is a socket believes that sshd has started it, and
/// reads ~/.bashrc.
struct RunnerPipes {
  OwnedFd to, from;        ///< of this process
  OwnedFd input, answers;  ///< the program's

  /// errors: Io.
  static Result<RunnerPipes> create();
};

}  // namespace tilewright::fleet
