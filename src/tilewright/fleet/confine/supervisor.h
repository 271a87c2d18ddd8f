// Watches a confined child from its start until nothing of it is left.
#pragma once

#include <functional>
#include <string>

#include "tilewright/fleet/confine/child.h"
#include "tilewright/fleet/confine/owned_fd.h"
#include "tilewright/fleet/confine/usage.h"
#include "tilewright/fleet/sandbox.h"

namespace tilewright::fleet {

class Supervisor {
 public:
  /// requires: `confined` and `stop` outlive it. errors: Io.
  static Result<Supervisor> create(SandboxKind kind, const Confined& confined,
                                   const std::function<bool()>& stop);

  int output() const { return output_write_.get(); }  ///< for the child: both streams
  int status() const { return status_write_.get(); }  ///< for bwrap: its reports
  const std::string& status_text() const { return status_text_; }

  /// Starts the child and sees it through. requires: called once. errors: Tool, Interrupted.
  Result<ToolResult> run(Child child);

 private:
  Supervisor(SandboxKind kind, const Confined& confined, const std::function<bool()>& stop)
      : kind_(kind), confined_(&confined), stop_(&stop) {}
  void wait(int milliseconds);
  void read_all();
  void find_first();
  void look_at_usage();
  void stop_it(int status, const std::string& why);
  bool has_ended() const;
  void end_all();

  SandboxKind kind_;
  const Confined* confined_;
  const std::function<bool()>* stop_;
  OwnedFd output_read_, output_write_, status_read_, status_write_;
  OwnedFd process_, first_;  ///< the child, and the first process of bwrap's namespace
  std::string output_, status_text_;
  pid_t pid_ = -1;
  int64_t bytes_before_ = 0;  ///< of the folder
  int stopped_status_ = 0;    ///< why it was stopped, as a status; 0: it was not
  std::string stopped_why_;
  int64_t peak_bytes_ = 0;
};

}  // namespace tilewright::fleet
