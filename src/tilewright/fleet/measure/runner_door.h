// A confined process gets programs started for it that it may not start itself.
//
// A process that measures candidates for `runner:CMD` runs code of strangers and sees no network.
// CMD may be `ssh`, which needs one, or an emulator, which needs a sandbox of its own. So the
// worker starts CMD beside that process, and hands the ends of its pipes through a socket (the
// door) that the process was given: it cannot choose what is started, only how often.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "tilewright/base/result.h"
#include "tilewright/fleet/confine/owned_fd.h"
#include "tilewright/fleet/open_package.h"

namespace tilewright::fleet {

/// Which descriptor of a measuring process the door is: behind those of measure/job.h.
inline constexpr int kDoorFile = 6;

/// The worker's side, with a thread of its own. What it has started ends with it.
class RunnerDoor {
 public:
  /// errors: Io.
  static Result<std::unique_ptr<RunnerDoor>> create(OpenChild child);
  ~RunnerDoor();
  RunnerDoor(const RunnerDoor&) = delete;
  RunnerDoor& operator=(const RunnerDoor&) = delete;

  /// What the confined process is given; close_there once it has it.
  int there() const { return there_.get(); }
  void close_there() { there_.reset(); }

 private:
  /// Of programs that run at once: an anchor, a candidate, what it follows. The oldest one ends
  /// where more are asked for.
  static constexpr size_t kMostAtOnce = 8;
  struct Started {
    int id;
    std::unique_ptr<ConfinedProcess> process;
  };

  explicit RunnerDoor(OpenChild child) : child_(std::move(child)) {}
  void serve();
  void start_one();
  std::string end_of(int id);

  OpenChild child_;
  OwnedFd here_, there_;
  std::deque<Started> started_;
  int last_id_ = 0;
  std::thread thread_;
};

/// The confined process's side.
struct DoorRunner {
  int id;
  RunnerLink link;
};
/// One more program. errors: Device (it cannot be started, with the reason; the door is closed).
Result<DoorRunner> ask_for_runner(int door);
/// How one has ended, in words; waits some seconds for its end.
std::string ask_how_it_ended(int door, int id);

}  // namespace tilewright::fleet
