#include "tilewright/fleet/pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tilewright::fleet {
namespace {

Status open_pipe(OwnedFd& read, OwnedFd& write) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorKind::Io, "no pipe can be made", std::strerror(errno));
  read = OwnedFd(ends[0]);
  write = OwnedFd(ends[1]);
  return {};
}

}  // namespace

Result<RunnerPipes> RunnerPipes::create() {
  RunnerPipes pipes;
  TW_TRY_STATUS(open_pipe(pipes.input, pipes.to));
  TW_TRY_STATUS(open_pipe(pipes.from, pipes.answers));
  return pipes;
}

}  // namespace tilewright::fleet
