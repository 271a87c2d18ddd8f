// The worker processes, and who is doing what.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tilewright/base/process.h"
#include "tilewright/measure/measurer.h"
#include "tilewright/measure/worker_process.h"

namespace tilewright::measure {

/// Limits for what is no candidate: starting a worker, loading a task.
inline constexpr double kStartSeconds = 60, kLoadSeconds = 600;

/// One thing that a worker has been told.
struct PendingJob {
  enum class Kind { Setup, Task, Forget, Run } kind;
  int64_t task = -1;
};

/// A worker with what it has been told and has not answered yet.
struct WorkerSlot {
  std::unique_ptr<WorkerProcess> process;
  std::deque<PendingJob> pending;
  std::set<int64_t> tasks;  ///< it has been told of
  std::optional<std::chrono::steady_clock::time_point>
      running;           ///< since when time counts for the first pending job
  double used = 0;       ///< before that. units: s
  bool started = false;  ///< the job at the front has begun
  double limit = 0;      ///< of a run. units: s

  bool busy() const { return !pending.empty() && pending.back().kind == PendingJob::Kind::Run; }
  double spent() const;
  double allowed() const;
};

/// How a job ended: with a reply, or with the worker.
struct PoolEvent {
  size_t slot = 0;
  PendingJob job;
  std::optional<Reply> reply;
  Ending ending;
  bool timed_out = false;
  bool started = false;
};

/// The workers, and who is doing what; each is started anew when it dies.
class WorkerPool {
 public:
  /// errors: Tool, Io.
  static Result<std::shared_ptr<WorkerPool>> start(const MeasureOptions& options);

  const MeasureOptions& options() const { return options_; }
  size_t size() const { return slots_.size(); }
  bool busy(size_t slot) const { return slots_[slot].busy(); }
  /// Whether whoever waits for results wants them no longer.
  bool interrupted() const { return interrupt_requested || (options_.stop && options_.stop()); }

  /// Knows `task` under the number it returns.
  int64_t add_task(const Task& task, int64_t result_bytes);
  /// A number under which it knows the same kernel; absent: none.
  std::optional<int64_t> find_task(const Task& task) const;
  void remove_task(int64_t task);

  /// A worker that is being told of `task`, started anew if it has ended. errors: Tool, Io.
  Status load(size_t slot, int64_t task);
  /// `job` of a task it was told of. False if the worker is gone.
  bool submit(size_t slot, const Job& job, int64_t task, double limit);
  /// Waits a little; what has ended by then.
  std::vector<PoolEvent> wait();
  /// Ends every worker that runs a candidate.
  void stop();

 private:
  Status ready(size_t slot);
  bool tell(size_t slot, const Job& job, PendingJob pending);
  void hear(size_t slot, std::vector<PoolEvent>& events);
  void bury(size_t slot, bool timed_out, std::vector<PoolEvent>& events);

  MeasureOptions options_;
  OwnedFile turn_, results_;
  std::vector<WorkerSlot> slots_;
  std::map<int64_t, TaskJob> tasks_;
  int64_t next_task_ = 0, results_end_ = 0;
};

}  // namespace tilewright::measure
