#include "tilewright/tune/measure.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "tilewright/base/process.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/text.h"
#include "tilewright/search/searcher.h"
#include "tilewright/tune/worker_process.h"

namespace tilewright::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStartSeconds = 60, kLoadSeconds = 600;
constexpr int kPollMilliseconds = 50;  ///< between looks at interrupt_requested

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// This program by its name: /proc/self/exe would be the name of the worker too.
std::string this_program() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string name(path, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return n > 0 && ::access(name.c_str(), X_OK) == 0 ? name : "/proc/self/exe";
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string ending_text(const Ending& ending) {
  std::string text = ending.signal != 0 ? signal_name(ending.signal)
                                        : fmt::format("exit status {}", ending.status);
  return ending.log.empty() ? text : fmt::format("{}: {}", text, ending.log);
}

Reading lost(const std::string& reason) { return {OutcomeKind::Lost, reason, 0, 0, 0, 0}; }

/// What the end of a worker means for the candidate it was running.
Reading reading_of(const Ending& ending) {
  Reading reading;
  const bool memory =
      ending.signal == SIGKILL || ending.log.find("out of memory") != ending.log.npos;
  reading.kind = memory ? OutcomeKind::OutOfMemory : OutcomeKind::Crash;
  reading.reason = ending_text(ending);
  return reading;
}

/// A worker with what it has been told and has not answered yet.
struct Slot {
  struct Pending {
    enum class Kind { Setup, Task, Forget, Run } kind;
    int64_t task = -1;
  };
  std::unique_ptr<WorkerProcess> process;
  std::deque<Pending> pending;
  std::set<int64_t> tasks;                   ///< it has been told of
  std::optional<Clock::time_point> running;  ///< since when time counts for the first pending job
  double used = 0;                           ///< before that. units: s
  bool started = false;                      ///< the job at the front has begun
  double limit = 0;                          ///< of a run. units: s

  bool busy() const { return !pending.empty() && pending.back().kind == Pending::Kind::Run; }
  double spent() const { return used + (running ? seconds_since(*running) : 0); }
  double allowed() const {
    switch (pending.front().kind) {
      case Pending::Kind::Setup:
        return kStartSeconds;
      case Pending::Kind::Run:
        return limit;
      default:
        return kLoadSeconds;
    }
  }
};

/// How a job ended: with a reply, or with the worker.
struct Event {
  size_t slot = 0;
  Slot::Pending job;
  std::optional<Reply> reply;
  Ending ending;
  bool timed_out = false;
  bool started = false;
};

/// The workers, and who is doing what.
class Pool {
 public:
  static Result<std::shared_ptr<Pool>> start(const MeasureOptions& options) {
    auto pool = std::make_shared<Pool>();
    pool->options_ = options;
    if (options.worker.empty()) pool->options_.worker = {this_program(), "worker"};
    pool->turn_ = TW_TRY(nameless_file("turn"));
    pool->results_ = TW_TRY(nameless_file("results"));
    pool->slots_.resize(static_cast<size_t>(std::max(1, options.workers)));
    for (size_t i = 0; i < pool->slots_.size(); ++i) TW_TRY_STATUS(pool->ready(i));
    return pool;
  }

  const MeasureOptions& options() const { return options_; }
  size_t size() const { return slots_.size(); }
  bool busy(size_t slot) const { return slots_[slot].busy(); }

  /// Knows `task` under the number it returns.
  int64_t add_task(const Task& task, int64_t result_bytes) {
    TaskJob job;
    job.task = next_task_++;
    job.func = print(task.func);
    job.target = task.target.name;
    job.threads = task.threads;
    job.place = results_end_;
    results_end_ += (result_bytes + 4096) / 4096 * 4096 + 4096;
    tasks_[job.task] = job;
    return job.task;
  }
  void remove_task(int64_t task);

  /// A worker that is being told of `task`, started anew if it has ended. errors: Tool, Io.
  Status load(size_t slot, int64_t task);
  /// `job` of a task it was told of. False if the worker is gone.
  bool submit(size_t slot, const Job& job, int64_t task, double limit);
  /// Waits a little; what has ended by then.
  std::vector<Event> wait();
  /// Ends every worker that runs a candidate.
  void stop();

 private:
  Status ready(size_t slot);
  bool tell(size_t slot, const Job& job, Slot::Pending pending);
  void hear(size_t slot, std::vector<Event>& events);
  void bury(size_t slot, bool timed_out, std::vector<Event>& events);

  MeasureOptions options_;
  OwnedFile turn_, results_;
  std::vector<Slot> slots_;
  std::map<int64_t, TaskJob> tasks_;
  int64_t next_task_ = 0, results_end_ = 0;
};

Status Pool::ready(size_t index) {
  Slot& slot = slots_[index];
  if (slot.process) return {};
  slot = {};
  slot.process = TW_TRY(WorkerProcess::start(options_.worker, turn_.get(), results_.get()));
  SetupJob setup;
  setup.worker = static_cast<int64_t>(index);
  setup.workers = static_cast<int64_t>(slots_.size());
  setup.seconds_per_reading = options_.seconds_per_reading;
  setup.readings = options_.readings;
  setup.limit_seconds = options_.limit_seconds;
  setup.memory_bytes = options_.memory_bytes;
  tell(index, setup, {Slot::Pending::Kind::Setup, -1});
  return {};
}

bool Pool::tell(size_t index, const Job& job, Slot::Pending pending) {
  Slot& slot = slots_[index];
  slot.pending.push_back(pending);
  if (slot.pending.size() == 1 && pending.kind != Slot::Pending::Kind::Run)
    slot.running = Clock::now();
  return slot.process->send(job);
}

Status Pool::load(size_t index, int64_t task) {
  TW_TRY_STATUS(ready(index));
  Slot& slot = slots_[index];
  if (!slot.tasks.insert(task).second) return {};
  tell(index, tasks_.at(task), {Slot::Pending::Kind::Task, task});
  return {};
}

bool Pool::submit(size_t index, const Job& job, int64_t task, double limit) {
  slots_[index].limit = limit;
  return tell(index, job, {Slot::Pending::Kind::Run, task});
}

void Pool::remove_task(int64_t task) {
  tasks_.erase(task);
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].process && slots_[i].tasks.erase(task) > 0)
      tell(i, ForgetJob{task}, {Slot::Pending::Kind::Forget, task});
}

/// The worker is gone, or has to go: so are the jobs it had.
void Pool::bury(size_t index, bool timed_out, std::vector<Event>& events) {
  Slot& slot = slots_[index];
  const Ending ending = slot.process->end();
  slot.process.reset();
  for (size_t i = 0; i < slot.pending.size(); ++i)
    events.push_back({index, slot.pending[i], std::nullopt, ending, timed_out && i == 0,
                      slot.started && i == 0});
  slot = {};
}

void Pool::hear(size_t index, std::vector<Event>& events) {
  Slot& slot = slots_[index];
  bool gone = false;
  for (const Reply& reply : slot.process->receive(gone)) {
    if (slot.pending.empty()) break;
    if (reply.state == "wait" && slot.running) {
      slot.used = slot.spent();
      slot.running.reset();
    } else if (reply.state == "run") {
      slot.running = Clock::now();
      slot.started = true;
    } else if (reply.state == "ready" || reply.state == "done") {
      events.push_back({index, slot.pending.front(), reply, {}, false, true});
      slot.pending.pop_front();
      slot.used = 0;
      slot.started = false;
      slot.running.reset();
      if (!slot.pending.empty() && slot.pending.front().kind != Slot::Pending::Kind::Run)
        slot.running = Clock::now();
      // These workers end themselves: their memory is not to be trusted.
      const bool leaves = reply.outcome == to_string(OutcomeKind::WrongResult) ||
                          reply.outcome == to_string(OutcomeKind::OutOfMemory);
      gone |= leaves;
    }
  }
  if (gone) return bury(index, false, events);
  if (!slot.pending.empty() && slot.spent() > slot.allowed()) bury(index, true, events);
}

std::vector<Event> Pool::wait() {
  std::vector<pollfd> files;
  double left = kPollMilliseconds * 1e-3;
  for (const Slot& slot : slots_) {
    if (!slot.process) continue;
    files.push_back({slot.process->socket(), POLLIN, 0});
    if (slot.running && !slot.pending.empty()) left = std::min(left, slot.allowed() - slot.spent());
  }
  ::poll(files.data(), files.size(), std::max(0, static_cast<int>(std::ceil(left * 1e3))));
  std::vector<Event> events;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].process) hear(i, events);
  return events;
}

void Pool::stop() {
  std::vector<Event> ignored;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].process && !slots_[i].pending.empty()) bury(i, false, ignored);
}

/// Bytes that the results of `func` take. errors: Unsupported.
Result<int64_t> result_bytes(const Func& func) {
  int64_t bytes = 0;
  for (const Param& param : func.params) {
    int64_t span = 1;
    for (size_t axis = 0; axis < param.buffer.shape().size(); ++axis) {
      const auto extent = as_int(param.buffer.shape()[axis]);
      if (!extent || !func.scalars.empty())
        return fail(ErrorKind::Unsupported,
                    fmt::format("{} has sizes known only at run time", func.name));
      span = param.strides.empty() ? span * *extent
                                   : span + (*extent - 1) * as_int(param.strides[axis]).value_or(0);
    }
    if (param.mode != ParamMode::In && param.mode != ParamMode::Const)
      bytes += storage_bytes(param.buffer.dtype(), span);
  }
  return bytes;
}

Status runs_here(const hw::CpuTarget& target) {
  const Result<hw::CpuTarget> known = hw::find_target(target.name);
  if (!known || known->cpu != target.cpu || known->features != target.features)
    return fail(ErrorKind::Device, fmt::format("target '{}' is unknown to workers", target.name),
                "they find targets by name");
  const std::vector<std::string> missing = hw::missing_features(target);
  if (target.triple != hw::host().triple || !missing.empty())
    return fail(ErrorKind::Device, fmt::format("this machine cannot run code for {}", target.name),
                missing.empty() ? target.triple : "it lacks " + missing.front());
  return {};
}

/// Waits for the end of the one job that `slot` has of `kind`. errors: Interrupted.
Result<Event> outcome_of(Pool& pool, size_t slot, Slot::Pending::Kind kind) {
  for (;;) {
    for (Event& event : pool.wait())
      if (event.slot == slot && event.job.kind == kind) return std::move(event);
    if (interrupt_requested) {
      pool.stop();
      return fail(ErrorKind::Interrupted, "interrupted");
    }
  }
}

class PooledEvaluator final : public Evaluator {
 public:
  PooledEvaluator(std::shared_ptr<Pool> pool, int64_t task) : pool_(std::move(pool)), task_(task) {}
  ~PooledEvaluator() override { pool_->remove_task(task_); }
  PooledEvaluator(const PooledEvaluator&) = delete;
  PooledEvaluator& operator=(const PooledEvaluator&) = delete;

  std::vector<Reading> evaluate(const std::vector<Candidate>& candidates) override;

  /// Lets every worker load the task; waits for the first. errors: as Measurer::evaluator.
  Status load();

 private:
  /// What candidates are measured beside. It changes seldom: each change carries the error of one
  /// measurement over to all later costs.
  struct Anchor {
    int64_t id = -1;
    std::string trace;
    double cost = 0;
  };
  /// What becomes of one batch.
  struct Batch {
    const std::vector<Candidate>& candidates;
    std::vector<Reading> readings;
    std::deque<size_t> waiting;
    std::map<size_t, size_t> running;  ///< candidate by slot
    std::vector<int> losses;           ///< workers that ended before they began with it
  };
  void dispatch(Batch& batch);
  void settle(Batch& batch, const Event& event);

  std::shared_ptr<Pool> pool_;
  int64_t task_;
  int64_t next_id_ = 0;
  std::map<size_t, int64_t> ids_;  ///< of the candidates that run, by slot
  Anchor anchor_;
  double best_ = search::kInvalid;
};

Status PooledEvaluator::load() {
  for (size_t slot = 0; slot < pool_->size(); ++slot) TW_TRY_STATUS(pool_->load(slot, task_));
  const Event event = TW_TRY(outcome_of(*pool_, 0, Slot::Pending::Kind::Task));
  const char* what = "the unscheduled program does not run";
  if (event.timed_out)
    return fail(ErrorKind::Tool, what, fmt::format("no result within {} s", kLoadSeconds));
  if (!event.reply) return fail(ErrorKind::Tool, what, ending_text(event.ending));
  if (event.reply->state != "ready") return fail(ErrorKind::Tool, what, event.reply->reason);
  return {};
}

/// Gives idle workers something to do. The first good candidate is measured alone: it is the scale.
void PooledEvaluator::dispatch(Batch& batch) {
  for (size_t slot = 0; slot < pool_->size() && !batch.waiting.empty(); ++slot) {
    if (pool_->busy(slot)) continue;
    if (anchor_.id < 0 && !batch.running.empty()) return;
    const size_t index = batch.waiting.front();
    batch.waiting.pop_front();
    if (const Status status = pool_->load(slot, task_); !status) {
      batch.readings[index] = lost(status.error().what + ": " + status.error().why);
      continue;
    }
    MeasureJob job;
    job.task = task_;
    job.candidate = ids_[slot] = next_id_++;
    job.trace = schedule::print(batch.candidates[index].trace);
    job.anchor = anchor_.id;
    job.anchor_trace = anchor_.trace;
    job.anchor_cost = anchor_.cost;
    job.best_cost = anchor_.id < 0 ? 0 : best_;
    batch.running[slot] = index;
    pool_->submit(slot, job, task_, pool_->options().limit_seconds);
  }
}

void PooledEvaluator::settle(Batch& batch, const Event& event) {
  constexpr int kAttempts = 3;
  constexpr double kMuchFaster = 0.5;
  if (event.job.kind != Slot::Pending::Kind::Run) return;
  const auto found = batch.running.find(event.slot);
  if (found == batch.running.end()) return;
  const size_t index = found->second;
  batch.running.erase(found);
  Reading& reading = batch.readings[index];
  if (event.reply) {
    reading = reading_of(*event.reply);
    if (reading.kind != OutcomeKind::Ok) return;
    best_ = std::min(best_, reading.cost);
    // By the clock too: beside a disturbed anchor everything looks fast.
    const double cost = std::max(reading.cost, event.reply->fastest);
    if (anchor_.id >= 0 && cost > kMuchFaster * anchor_.cost) return;
    anchor_ = {ids_[event.slot], schedule::print(batch.candidates[index].trace), reading.cost};
  } else if (event.timed_out) {
    reading = {OutcomeKind::Timeout,
               fmt::format("no result within {} s", pool_->options().limit_seconds),
               0,
               0,
               0,
               0};
  } else if (event.started) {
    reading = reading_of(event.ending);
  } else if (++batch.losses[index] < kAttempts) {
    batch.waiting.push_front(index);
  } else {
    reading = lost("no worker could begin with it: " + ending_text(event.ending));
  }
}

std::vector<Reading> PooledEvaluator::evaluate(const std::vector<Candidate>& candidates) {
  Batch batch{candidates,
              std::vector<Reading>(candidates.size(), lost("interrupted")),
              {},
              {},
              std::vector<int>(candidates.size(), 0)};
  for (size_t i = 0; i < candidates.size(); ++i) batch.waiting.push_back(i);
  while (!interrupt_requested) {
    dispatch(batch);
    if (batch.running.empty()) break;
    for (const Event& event : pool_->wait()) settle(batch, event);
  }
  if (interrupt_requested) pool_->stop();
  return std::move(batch.readings);
}

class PooledMeasurer final : public Measurer {
 public:
  explicit PooledMeasurer(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}

  Result<std::unique_ptr<Evaluator>> evaluator(const Task& task) override {
    TW_TRY_STATUS(runs_here(task.target));
    const int64_t bytes = TW_TRY(result_bytes(task.func));
    auto made = std::make_unique<PooledEvaluator>(pool_, pool_->add_task(task, bytes));
    TW_TRY_STATUS(made->load());
    return std::unique_ptr<Evaluator>(std::move(made));
  }

  Result<std::vector<double>> race(const Task& task, const std::vector<schedule::Trace>& traces,
                                   int rounds) override {
    TW_TRY_STATUS(runs_here(task.target));
    RaceJob job;
    job.task = pool_->add_task(task, TW_TRY(result_bytes(task.func)));
    for (const schedule::Trace& trace : traces) job.traces.push_back(schedule::print(trace));
    job.rounds = rounds;
    const double limit = pool_->options().limit_seconds * static_cast<double>(traces.size() + 1);
    Result<std::vector<double>> ratios = run_race(job, limit);
    pool_->remove_task(job.task);
    return ratios;
  }

 private:
  Result<std::vector<double>> run_race(const RaceJob& job, double limit) {
    TW_TRY_STATUS(pool_->load(0, job.task));
    pool_->submit(0, job, job.task, limit);
    const Event event = TW_TRY(outcome_of(*pool_, 0, Slot::Pending::Kind::Run));
    const char* what = "schedules could not be compared";
    if (event.timed_out)
      return fail(ErrorKind::Tool, what, fmt::format("no result within {} s", limit));
    if (!event.reply) return fail(ErrorKind::Tool, what, ending_text(event.ending));
    std::vector<double> ratios = event.reply->ratios;
    if (ratios.size() != job.traces.size() || (!ratios.empty() && ratios[0] < 0))
      return fail(ErrorKind::Tool, what, event.reply->reason);
    for (double& ratio : ratios)
      if (ratio < 0) ratio = search::kInvalid;
    return ratios;
  }

  std::shared_ptr<Pool> pool_;
};

}  // namespace

Result<std::unique_ptr<Measurer>> start_measurer(const MeasureOptions& options) {
  auto pool = TW_TRY(Pool::start(options));
  // One worker that answers is enough to know that the program is one.
  const Event event = TW_TRY(outcome_of(*pool, 0, Slot::Pending::Kind::Setup));
  if (!event.reply)
    return fail(ErrorKind::Tool, "no worker starts",
                event.timed_out ? fmt::format("no answer within {} s", kStartSeconds)
                                : ending_text(event.ending));
  return std::make_unique<PooledMeasurer>(std::move(pool));
}

}  // namespace tilewright::tune
