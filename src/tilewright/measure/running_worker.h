// How a process of workers starts and ends, for whoever confines it.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::measure {

/// How a process ended.
struct Ending {
  int signal = 0;  ///< 0: it ended by itself
  int status = 0;
  std::string log;  ///< the last line it wrote to stderr
};

/// A process that was started. Killed and waited for when destroyed: no zombie stays.
class RunningWorker {
 public:
  virtual ~RunningWorker() = default;
  /// Kills it if it still runs. `leaving`: it has closed its side, so it is about to end by itself,
  /// which tells more than a signal of ours.
  virtual Ending end(bool leaving) = 0;
};

/// Starts a program that has `files` as descriptors 3, 4 and 5 (job.h). Once this returns, only the
/// program has copies of them. errors: Tool, Io.
using StartWorker = std::function<Result<std::unique_ptr<RunningWorker>>(
    const std::vector<std::string>& argv, const std::array<int, 3>& files)>;

/// As this user, in a process group of its own, so that Ctrl-C reaches the parent alone.
Result<std::unique_ptr<RunningWorker>> start_unconfined(const std::vector<std::string>& argv,
                                                        const std::array<int, 3>& files);

}  // namespace tilewright::measure
