#include "tilewright/measure/measurer.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "tilewright/base/available_cpus.h"
#include "tilewright/base/process.h"
#include "tilewright/hw/target.h"
#include "tilewright/measure/worker_pool.h"
#include "tilewright/search/searcher.h"

namespace tilewright::measure {
namespace {

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

/// Bytes that the results of `func` take. errors: Unsupported.
Result<int64_t> result_bytes(const Func& func) {
  if (!func.scalars.empty())
    return fail(ErrorKind::Unsupported,
                fmt::format("{} has sizes known only at run time", func.name));
  int64_t bytes = 0;
  for (const Param& param : func.params) {
    const int64_t span = TW_TRY(span_of(param));
    if (param.mode != ParamMode::In && param.mode != ParamMode::Const)
      bytes += storage_bytes(param.buffer.dtype(), span);
  }
  return bytes;
}

Status runs_here(const Task& task) {
  // The worker finds a device, or says what is missing.
  if (task.target.kind != hw::TargetKind::Cpu || !task.device.id.empty()) return {};
  const hw::CpuTarget& target = task.cpu();
  std::string why = hw::why_not_here(target);
  if (why.empty()) return {};
  return fail(ErrorKind::Device, fmt::format("this machine cannot run code for {}", target.name),
              std::move(why));
}

/// Waits for the end of the one job that `slot` has of `kind`. errors:
/// Interrupted, also where the job could have ended meanwhile.
Result<PoolEvent> outcome_of(WorkerPool& pool, size_t slot, PendingJob::Kind kind) {
  while (!pool.interrupted())
    for (PoolEvent& event : pool.wait())
      if (event.slot == slot && event.job.kind == kind) return std::move(event);
  pool.stop();
  return fail(ErrorKind::Interrupted, "interrupted");
}

class PooledEvaluator final : public AnchoredEvaluator {
 public:
  PooledEvaluator(std::shared_ptr<WorkerPool> pool, int64_t task)
      : pool_(std::move(pool)), task_(task) {}
  ~PooledEvaluator() override { pool_->remove_task(task_); }
  PooledEvaluator(const PooledEvaluator&) = delete;
  PooledEvaluator& operator=(const PooledEvaluator&) = delete;

  std::vector<Reading> evaluate(const std::vector<Candidate>& candidates) override;
  std::vector<Reading> evaluate_each(const CandidateSource& next) override;
  std::vector<Reading> evaluate_beside(const Anchor& anchor,
                                       const std::vector<Candidate>& candidates,
                                       const OnReading& told) override;

  /// Lets every worker load the task; waits for the first. errors: as
  /// Measurer::evaluator.
  Status load();

 private:
  /// What candidates are measured beside. It changes seldom: each change
  /// carries the error of one measurement over to all later costs.
  struct Beside {
    int64_t id = -1;
    std::string trace;
    double cost = 0;
    bool given = false;  ///< by the caller: it stays
  };
  /// What becomes of one batch.
  struct Batch {
    explicit Batch(const CandidateSource& source) : next(source) {}
    const CandidateSource& next;
    bool ended = false;  ///< `next` has no more
    std::vector<Candidate> candidates;
    std::vector<Reading> readings;
    std::deque<size_t> waiting;
    std::map<size_t, size_t> running;  ///< candidate by slot
    std::vector<int> losses;           ///< workers that ended before they began with it
  };
  bool fill(Batch& batch);
  void dispatch(Batch& batch);
  void settle(Batch& batch, const PoolEvent& event);
  bool judge(Batch& batch, size_t index, const PoolEvent& event);
  void tell(const Batch& batch, size_t index) const {
    if (told_) told_(index, batch.readings[index]);
  }

  std::shared_ptr<WorkerPool> pool_;
  int64_t task_;
  int64_t next_id_ = 0;
  std::map<size_t, int64_t> ids_;  ///< of the candidates that run, by slot
  Beside anchor_;
  OnReading told_;
  double best_ = search::kInvalid;
};

Status PooledEvaluator::load() {
  for (size_t slot = 0; slot < pool_->size(); ++slot) TW_TRY_STATUS(pool_->load(slot, task_));
  const PoolEvent event = TW_TRY(outcome_of(*pool_, 0, PendingJob::Kind::Task));
  const char* what = "the unscheduled program does not run";
  if (event.timed_out)
    return fail(ErrorKind::Tool, what, fmt::format("no result within {} s", kLoadSeconds));
  if (!event.reply) return fail(ErrorKind::Tool, what, ending_text(event.ending));
  if (event.reply->state != "ready") return fail(ErrorKind::Tool, what, event.reply->reason);
  return {};
}

/// Makes sure that a candidate waits; false if there are no more.
bool PooledEvaluator::fill(Batch& batch) {
  if (!batch.waiting.empty() || batch.ended) return !batch.waiting.empty();
  std::optional<Candidate> made = batch.next();
  batch.ended = !made;
  if (!made) return false;
  batch.waiting.push_back(batch.candidates.size());
  batch.candidates.push_back(*std::move(made));
  batch.readings.push_back(lost("interrupted"));
  batch.losses.push_back(0);
  return true;
}

/// Gives idle workers something to do. The first good candidate is measured
/// alone: it is the scale.
void PooledEvaluator::dispatch(Batch& batch) {
  for (size_t slot = 0; slot < pool_->size(); ++slot) {
    if (pool_->busy(slot)) continue;
    if (anchor_.id < 0 && !batch.running.empty()) return;
    if (!fill(batch)) return;
    const size_t index = batch.waiting.front();
    batch.waiting.pop_front();
    if (const Status status = pool_->load(slot, task_); !status) {
      batch.readings[index] = lost(status.error().what + ": " + status.error().why);
      tell(batch, index);
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
    job.elsewhere = anchor_.given;
    batch.running[slot] = index;
    pool_->submit(slot, job, task_, pool_->options().limit_seconds);
  }
}

void PooledEvaluator::settle(Batch& batch, const PoolEvent& event) {
  if (event.job.kind != PendingJob::Kind::Run) return;
  const auto found = batch.running.find(event.slot);
  if (found == batch.running.end()) return;
  const size_t index = found->second;
  batch.running.erase(found);
  if (judge(batch, index, event))
    tell(batch, index);
  else
    batch.waiting.push_front(index);
}

/// The reading of a candidate whose run has ended; false if it is to run again.
bool PooledEvaluator::judge(Batch& batch, size_t index, const PoolEvent& event) {
  constexpr int kAttempts = 3;
  constexpr double kMuchFaster = 0.5;
  Reading& reading = batch.readings[index];
  if (event.reply) {
    reading = reading_of(*event.reply);
    if (reading.kind != OutcomeKind::Ok) return true;
    best_ = std::min(best_, reading.cost);
    // By the clock too: beside a disturbed anchor everything looks fast.
    const double cost = std::max(reading.cost, reading.fastest);
    if (anchor_.given || (anchor_.id >= 0 && cost > kMuchFaster * anchor_.cost)) return true;
    anchor_ = {ids_[event.slot], schedule::print(batch.candidates[index].trace), reading.cost,
               false};
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
    return false;
  } else {
    reading = lost("no worker could begin with it: " + ending_text(event.ending));
  }
  return true;
}

std::vector<Reading> PooledEvaluator::evaluate_beside(const Anchor& anchor,
                                                      const std::vector<Candidate>& candidates,
                                                      const OnReading& told) {
  if (anchor.trace.empty()) {
    anchor_ = {};
    best_ = search::kInvalid;
  } else {
    // Under its number the workers know it, and have it as code.
    const bool known = anchor_.id >= 0 && anchor_.trace == anchor.trace;
    anchor_ = {known ? anchor_.id : next_id_++, anchor.trace, anchor.cost, true};
    best_ = anchor.best > 0 ? anchor.best : anchor.cost;
  }
  told_ = told;
  std::vector<Reading> readings = evaluate(candidates);
  told_ = {};
  anchor_.given = false;
  return readings;
}

std::vector<Reading> PooledEvaluator::evaluate(const std::vector<Candidate>& candidates) {
  size_t given = 0;
  std::vector<Reading> readings = evaluate_each([&]() -> std::optional<Candidate> {
    return given < candidates.size() ? std::optional(candidates[given++]) : std::nullopt;
  });
  readings.resize(candidates.size(), lost("interrupted"));
  return readings;
}

std::vector<Reading> PooledEvaluator::evaluate_each(const CandidateSource& next) {
  Batch batch(next);
  while (!pool_->interrupted()) {
    dispatch(batch);
    if (batch.running.empty()) break;
    fill(batch);  // while the workers have something to do
    for (const PoolEvent& event : pool_->wait()) settle(batch, event);
  }
  if (pool_->interrupted()) pool_->stop();
  return std::move(batch.readings);
}

class PooledMeasurer final : public LocalMeasurer {
 public:
  explicit PooledMeasurer(std::shared_ptr<WorkerPool> pool) : pool_(std::move(pool)) {}

  Result<std::unique_ptr<AnchoredEvaluator>> anchored(const Task& task) override {
    TW_TRY_STATUS(runs_here(task));
    const int64_t bytes = TW_TRY(result_bytes(task.func));
    auto made = std::make_unique<PooledEvaluator>(pool_, pool_->add_task(task, bytes));
    TW_TRY_STATUS(made->load());
    return std::unique_ptr<AnchoredEvaluator>(std::move(made));
  }

  Result<std::vector<double>> race(const Task& task, const std::vector<schedule::Trace>& traces,
                                   int rounds) override {
    TW_TRY_STATUS(runs_here(task));
    RaceJob job;
    // What an evaluator has loaded has its operands and right results already.
    const std::optional<int64_t> known = pool_->find_task(task);
    job.task = known ? *known : pool_->add_task(task, TW_TRY(result_bytes(task.func)));
    for (const schedule::Trace& trace : traces) job.traces.push_back(schedule::print(trace));
    job.rounds = rounds;
    const double limit = pool_->options().limit_seconds * static_cast<double>(traces.size() + 1);
    Result<std::vector<double>> ratios = run_race(job, limit);
    if (!known) pool_->remove_task(job.task);
    return ratios;
  }

 private:
  Result<std::vector<double>> run_race(const RaceJob& job, double limit) {
    TW_TRY_STATUS(pool_->load(0, job.task));
    pool_->submit(0, job, job.task, limit);
    const PoolEvent event = TW_TRY(outcome_of(*pool_, 0, PendingJob::Kind::Run));
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

  std::shared_ptr<WorkerPool> pool_;
};

}  // namespace

int processor_workers() { return usable_cpus() < 2 ? 1 : MeasureOptions().workers; }

std::vector<Raced> Measurer::races(const std::vector<Race>& races, int rounds,
                                   const std::function<bool()>& more) {
  std::vector<Raced> found(races.size());
  for (size_t i = 0; i < races.size() && (!more || more()); ++i)
    found[i] = race(*races[i].task, races[i].traces, rounds);
  return found;
}

Result<std::unique_ptr<Evaluator>> LocalMeasurer::evaluator(const Task& task) {
  return anchored(task).map([](auto made) { return std::unique_ptr<Evaluator>(std::move(made)); });
}

Result<std::unique_ptr<LocalMeasurer>> start_measurer(const MeasureOptions& options) {
  auto pool = TW_TRY(WorkerPool::start(options));
  // One worker that answers is enough to know that the program is one.
  const PoolEvent event = TW_TRY(outcome_of(*pool, 0, PendingJob::Kind::Setup));
  if (!event.reply)
    return fail(ErrorKind::Tool, "no worker starts",
                event.timed_out ? fmt::format("no answer within {} s", kStartSeconds)
                                : ending_text(event.ending));
  return std::make_unique<PooledMeasurer>(std::move(pool));
}

}  // namespace tilewright::measure
