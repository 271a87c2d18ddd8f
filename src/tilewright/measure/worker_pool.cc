// Telling workers what to do, and noticing how that ends. A worker has a queue of what it was told;
// its answers come in the same order. Example: `load` queues a task, `submit` a measurement behind
// it; `wait` polls all sockets and returns an event for each job that has ended, by an answer, by
// the end of the process, or because its time is up (then the process is killed). A measurement's
// time counts only while the worker says `run`: waiting for its turn does not.
#include "tilewright/measure/worker_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/stopwatch.h"
#include "tilewright/ir/text.h"
#include "tilewright/measure/target_text.h"

namespace tilewright::measure {
namespace {

constexpr int kPollMilliseconds = 50;  ///< between looks at interrupt_requested

/// This program by its name: /proc/self/exe would be the name of the worker too.
std::string this_program() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string name(path, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return n > 0 && ::access(name.c_str(), X_OK) == 0 ? name : "/proc/self/exe";
}

/// What workers are told of a task, but for its number and place.
TaskJob job_of(const Task& task) {
  TaskJob job;
  job.func = print(task.func);
  job.target = print_target(task.target);
  job.device = task.device.id;
  job.threads = task.threads;
  return job;
}

}  // namespace

double WorkerSlot::spent() const { return used + (running ? seconds_since(*running) : 0); }

double WorkerSlot::allowed() const {
  switch (pending.front().kind) {
    case PendingJob::Kind::Setup:
      return kStartSeconds;
    case PendingJob::Kind::Run:
      return limit;
    default:
      return kLoadSeconds;
  }
}

Result<std::shared_ptr<WorkerPool>> WorkerPool::start(const MeasureOptions& options) {
  auto pool = std::make_shared<WorkerPool>();
  pool->options_ = options;
  if (options.worker.empty()) pool->options_.worker = {this_program(), "measure-child"};
  if (!options.start) pool->options_.start = start_unconfined;
  pool->turn_ = TW_TRY(nameless_file("turn"));
  pool->results_ = TW_TRY(nameless_file("results"));
  pool->slots_.resize(static_cast<size_t>(std::max(1, options.workers)));
  for (size_t i = 0; i < pool->slots_.size(); ++i) TW_TRY_STATUS(pool->ready(i));
  return pool;
}

int64_t WorkerPool::add_task(const Task& task, int64_t result_bytes) {
  TaskJob job = job_of(task);
  job.task = next_task_++;
  job.place = results_end_;
  results_end_ += (result_bytes + 4096) / 4096 * 4096 + 4096;
  tasks_[job.task] = job;
  return job.task;
}

std::optional<int64_t> WorkerPool::find_task(const Task& task) const {
  const TaskJob wanted = job_of(task);
  for (const auto& [number, job] : tasks_)
    if (job.func == wanted.func && job.target == wanted.target && job.device == wanted.device &&
        job.threads == wanted.threads)
      return number;
  return std::nullopt;
}

Status WorkerPool::ready(size_t index) {
  WorkerSlot& slot = slots_[index];
  if (slot.process) return {};
  slot = {};
  slot.process =
      TW_TRY(WorkerProcess::start(options_.start, options_.worker, turn_.get(), results_.get()));
  SetupJob setup;
  setup.worker = static_cast<int64_t>(index);
  setup.workers = static_cast<int64_t>(slots_.size());
  setup.seconds_per_reading = options_.seconds_per_reading;
  setup.readings = options_.readings;
  setup.limit_seconds = options_.limit_seconds;
  setup.memory_bytes = options_.memory_bytes;
  tell(index, setup, {PendingJob::Kind::Setup, -1});
  return {};
}

bool WorkerPool::tell(size_t index, const Job& job, PendingJob pending) {
  WorkerSlot& slot = slots_[index];
  slot.pending.push_back(pending);
  if (slot.pending.size() == 1 && pending.kind != PendingJob::Kind::Run)
    slot.running = SteadyClock::now();
  return slot.process->send(job);
}

Status WorkerPool::load(size_t index, int64_t task) {
  TW_TRY_STATUS(ready(index));
  WorkerSlot& slot = slots_[index];
  if (!slot.tasks.insert(task).second) return {};
  tell(index, tasks_.at(task), {PendingJob::Kind::Task, task});
  return {};
}

bool WorkerPool::submit(size_t index, const Job& job, int64_t task, double limit) {
  slots_[index].limit = limit;
  return tell(index, job, {PendingJob::Kind::Run, task});
}

void WorkerPool::remove_task(int64_t task) {
  tasks_.erase(task);
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].process && slots_[i].tasks.erase(task) > 0)
      tell(i, ForgetJob{task}, {PendingJob::Kind::Forget, task});
}

/// The worker is gone, or has to go: so are the jobs it had.
void WorkerPool::bury(size_t index, bool timed_out, std::vector<PoolEvent>& events) {
  WorkerSlot& slot = slots_[index];
  const Ending ending = slot.process->end();
  slot.process.reset();
  for (size_t i = 0; i < slot.pending.size(); ++i)
    events.push_back({index, slot.pending[i], std::nullopt, ending, timed_out && i == 0,
                      slot.started && i == 0});
  slot = {};
}

void WorkerPool::hear(size_t index, std::vector<PoolEvent>& events) {
  WorkerSlot& slot = slots_[index];
  bool gone = false;
  for (const Reply& reply : slot.process->receive(gone)) {
    if (slot.pending.empty()) break;
    if (reply.state == "wait" && slot.running) {
      slot.used = slot.spent();
      slot.running.reset();
    } else if (reply.state == "run") {
      slot.running = SteadyClock::now();
      slot.started = true;
    } else if (reply.state == "ready" || reply.state == "done") {
      events.push_back({index, slot.pending.front(), reply, {}, false, true});
      slot.pending.pop_front();
      slot.used = 0;
      slot.started = false;
      slot.running.reset();
      if (!slot.pending.empty() && slot.pending.front().kind != PendingJob::Kind::Run)
        slot.running = SteadyClock::now();
      // These workers end themselves: their memory is not to be trusted.
      const bool leaves = reply.outcome == to_string(OutcomeKind::WrongResult) ||
                          reply.outcome == to_string(OutcomeKind::OutOfMemory);
      gone |= leaves;
    }
  }
  if (gone) return bury(index, false, events);
  if (!slot.pending.empty() && slot.spent() > slot.allowed()) bury(index, true, events);
}

std::vector<PoolEvent> WorkerPool::wait() {
  std::vector<pollfd> files;
  double left = kPollMilliseconds * 1e-3;
  for (const WorkerSlot& slot : slots_) {
    if (!slot.process) continue;
    files.push_back({slot.process->socket(), POLLIN, 0});
    if (slot.running && !slot.pending.empty()) left = std::min(left, slot.allowed() - slot.spent());
  }
  ::poll(files.data(), files.size(), std::max(0, static_cast<int>(std::ceil(left * 1e3))));
  std::vector<PoolEvent> events;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].process) hear(i, events);
  return events;
}

void WorkerPool::stop() {
  std::vector<PoolEvent> ignored;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].process && !slots_[i].pending.empty()) bury(i, false, ignored);
}

}  // namespace tilewright::measure
