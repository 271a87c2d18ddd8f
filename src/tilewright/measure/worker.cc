// A worker process: a thread reads jobs from the socket, the main thread does one after the other.
//
//   setup              limits, and which CPU is this worker's own
//   task 3             parse the Func, make operands, know the right results
//   measure 3, trace   schedule, compile, one call that is checked, then readings
//
// While one worker measures, the others compile: a lock on a file is taken exclusively to measure
// and shared to compile where there are too few CPUs for both. A candidate's readings alternate
// with those of the anchor, an older candidate: with an anchor known to take 100 us that now takes
// 110, a candidate that takes 220 costs 200. Whatever kills the process (a crash, memory, an
// endless loop) ends this worker alone, and its parent counts it as the candidate's outcome.
#include "tilewright/measure/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "tilewright/base/available_cpus.h"
#include "tilewright/base/statistics.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/measure/measured_task.h"

namespace tilewright::measure {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

void write_all(int file, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(file, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(0);  // nobody listens any more
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

void send(const Reply& reply) {
  const std::string line = to_line(reply);
  write_all(kJobsFile, line.data(), line.size());
}

void send_state(const char* state) {
  Reply reply;
  reply.state = state;
  send(reply);
}

/// Lines that arrive, read by a thread of its own: it notices the end even while a kernel runs.
class Inbox {
 public:
  Inbox() {
    std::thread([this] { read(); }).detach();
  }
  std::string next() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !lines_.empty(); });
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }

 private:
  [[noreturn]] void read() {
    std::string text;
    char chunk[1 << 14];
    for (;;) {
      const ssize_t n = ::read(kJobsFile, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) ::_exit(0);
      text.append(chunk, static_cast<size_t>(n));
      for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        const std::lock_guard lock(mutex_);
        lines_.push_back(text.substr(0, end));
        text.erase(0, end + 1);
        arrived_.notify_one();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> lines_;
};

/// A lock that workers share: opened anew, since locks belong to what was opened.
class FileLock {
 public:
  explicit FileLock(int file)
      : file_(::open(fmt::format("/proc/self/fd/{}", file).c_str(), O_RDWR | O_CLOEXEC)) {}
  ~FileLock() { ::close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  int file() const { return file_; }
  /// Time spent waiting does not count.
  void take(int operation) {
    if (::flock(file_, operation | LOCK_NB) == 0) return;
    send_state("wait");
    while (::flock(file_, operation) != 0 && errno == EINTR) {
    }
    send_state("run");
  }
  void release() { ::flock(file_, LOCK_UN); }

 private:
  int file_;
};

/// A lock for the rest of a scope.
class Hold {
 public:
  Hold(FileLock& lock, int operation) : lock_(lock) { lock_.take(operation); }
  ~Hold() { lock_.release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  FileLock& lock_;
};

/// This thread keeps to `cpus`.
void keep_to(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

/// Address space in use.
int64_t address_space() {
  int64_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * ::sysconf(_SC_PAGESIZE);
}

void limit_address_space(rlim_t bytes) {
  rlimit limit;
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  ::setrlimit(RLIMIT_AS, &limit);
}

Reply failed(const Failure& failure) {
  return reply_of({failure.kind, failure.reason, 0, 0, 0, 0});
}

/// A reading beside one of the anchor. units: ns.
struct Timing {
  double anchor, time;
  double cost;  ///< the time, had the anchor taken what it costs
};
bool cheaper(const Timing& a, const Timing& b) { return a.cost < b.cost; }

/// What is ready in case memory ends: making a reply then would need some.
std::string out_of_memory_reply;

[[noreturn]] void leave_without_memory() {
  write_all(kJobsFile, out_of_memory_reply.data(), out_of_memory_reply.size());
  ::_exit(0);
}

class Worker {
 public:
  Worker(const CompileFor& compile, const LoadForDevice& load) : compile_(compile), load_(load) {}

  void serve() {
    for (;;) {
      const Result<Job> job = parse_job(inbox_.next());
      if (!job) ::_exit(1);
      try {
        std::visit([this](const auto& one) { act(one); }, *job);
      } catch (const std::bad_alloc&) {
        leave_without_memory();
      }
    }
  }

 private:
  void act(const SetupJob& job);
  void act(const TaskJob& job);
  void act(const MeasureJob& job);
  void act(const RaceJob& job);
  void act(const ForgetJob& job) {
    if (last_task_ == job.task) drop_kernels();
    tasks_.erase(job.task);
    send_state("ready");
  }

  Attempt<std::vector<Array>> shared_reference(MeasuredTask& task, int64_t place);
  MeasuredTask* find(int64_t task);
  void drop_kernels();
  bool crowded(const MeasuredTask& task) const;
  Attempt<BuiltKernel> build_checked(MeasuredTask& task, const std::string& trace, double& call);
  Reply measure(MeasuredTask& task, const MeasureJob& job);
  Attempt<bool> prepare_anchor(MeasuredTask& task, const MeasureJob& job);
  std::vector<Timing> timings_of(MeasuredTask& task, const BuiltKernel& kernel,
                                 const MeasureJob& job);
  Reply time_beside(MeasuredTask& task, BuiltKernel& kernel, const MeasureJob& job);

  const CompileFor& compile_;
  const LoadForDevice& load_;
  Inbox inbox_;
  FileLock turn_{kTurnFile}, results_{kResultsFile};
  SetupJob setup_;
  std::vector<int> cpus_ = allowed_cpus();
  SharedThreads threads_;
  std::map<int64_t, std::unique_ptr<MeasuredTask>> tasks_;
  SteadyClock::time_point begin_;  ///< of the job
  /// The last good candidate and the anchor, of the last task: the one may become the other.
  int64_t last_task_ = -1, last_id_ = -1, anchor_id_ = -1;
  BuiltKernel last_, anchor_;
  double usual_ = kNever;  ///< least reading of the anchor. units: ns
};

void Worker::act(const SetupJob& job) {
  setup_ = job;
  Reading reading;
  reading.kind = OutcomeKind::OutOfMemory;
  reading.reason =
      fmt::format("it needs more than {} MiB beyond its operands", job.memory_bytes >> 20);
  out_of_memory_reply = to_line(reply_of(reading));
  std::set_new_handler(leave_without_memory);
  send_state("ready");
}

void Worker::drop_kernels() {
  last_ = anchor_ = {};
  usual_ = kNever;
  last_task_ = last_id_ = anchor_id_ = -1;
}

/// Whether others would be disturbed, or disturb, if this worker compiled while one measures.
bool Worker::crowded(const MeasuredTask& task) const {
  return task.threads() + setup_.workers - 1 > static_cast<int64_t>(cpus_.size());
}

/// The right results: computed by the first worker that asks, read by the others.
Attempt<std::vector<Array>> Worker::shared_reference(MeasuredTask& task, int64_t place) {
  const Hold hold(results_, LOCK_EX);
  const int file = results_.file();
  std::vector<Array> results = task.blank_results();
  int64_t known = 0;
  off_t at = place + static_cast<off_t>(sizeof known);
  if (::pread(file, &known, sizeof known, place) == sizeof known && known == 1) {
    for (Array& array : results)
      for (int64_t done = 0; done < array.bytes();) {
        const ssize_t n = ::pread(file, static_cast<char*>(array.data()) + done,
                                  static_cast<size_t>(array.bytes() - done), at);
        if (n <= 0) return tl::unexpected<Failure>({OutcomeKind::Lost, "reference lost"});
        done += n;
        at += n;
      }
    return results;
  }
  auto computed = task.reference();
  if (!computed) return computed;
  for (const Array& array : *computed)
    for (int64_t done = 0; done < array.bytes();) {
      const ssize_t n = ::pwrite(file, static_cast<const char*>(array.data()) + done,
                                 static_cast<size_t>(array.bytes() - done), at);
      if (n <= 0) return computed;  // the others compute it too
      done += n;
      at += n;
    }
  known = 1;
  if (::pwrite(file, &known, sizeof known, place) < 0) return computed;
  return computed;
}

void Worker::act(const TaskJob& job) {
  limit_address_space(RLIM_INFINITY);
  keep_to(cpus_);
  const auto refuse = [](const std::string& reason) { send(failed({OutcomeKind::Lost, reason})); };
  auto task = MeasuredTask::create(job, threads_, compile_, load_);
  if (!task) return refuse(one_line(task.error()));
  auto results = shared_reference(**task, job.place);
  if (!results) return refuse(results.error().reason);
  (*task)->set_reference(*std::move(results));
  tasks_[job.task] = *std::move(task);
  // Drivers of GPUs reserve more addresses than any limit allows.
  if (job.device.empty())
    limit_address_space(static_cast<rlim_t>(address_space() + setup_.memory_bytes));
  send_state("ready");
}

/// `call`: how long the first call took. units: ns.
Attempt<BuiltKernel> Worker::build_checked(MeasuredTask& task, const std::string& trace,
                                           double& call) {
  std::optional<Hold> hold;
  if (crowded(task)) hold.emplace(turn_, LOCK_SH);
  Attempt<BuiltKernel> kernel = task.build(trace);
  if (!kernel) return kernel;
  // Calls of all processes share a GPU: none runs beside another's readings.
  if (task.on_device() && !hold) hold.emplace(turn_, LOCK_SH);
  const Attempt<double> time = task.checked_call(*kernel);
  if (!time) return tl::unexpected(time.error());
  call = *time;
  return kernel;
}

/// Null, with a reply, for a task that could not be loaded.
MeasuredTask* Worker::find(int64_t task) {
  begin_ = SteadyClock::now();
  send_state("run");
  const auto found = tasks_.find(task);
  if (found != tasks_.end()) return found->second.get();
  send(failed({OutcomeKind::Lost, "the task could not be loaded"}));
  return nullptr;
}

void Worker::act(const MeasureJob& job) {
  MeasuredTask* const found = find(job.task);
  if (found == nullptr) return;
  MeasuredTask& task = *found;
  if (last_task_ != job.task) drop_kernels();
  last_task_ = job.task;
  const auto own = static_cast<size_t>(setup_.worker) % cpus_.size();
  keep_to(task.threads() > 1 ? cpus_ : std::vector<int>{cpus_[own]});
  const Reply reply = measure(task, job);
  send(reply);
  // A kernel that computes something else may have written anywhere.
  if (reply.outcome == to_string(OutcomeKind::WrongResult)) ::_exit(0);
}

Reply Worker::measure(MeasuredTask& task, const MeasureJob& job) {
  constexpr double kHopeless = 4, kLong = 10e6;  ///< times the best; ns
  if (const auto ready = prepare_anchor(task, job); !ready) return failed(ready.error());
  double call = 0;
  Attempt<BuiltKernel> kernel = build_checked(task, job.trace, call);
  if (!kernel) return failed(kernel.error());
  if (job.anchor >= 0 && call > kLong && call > kHopeless * job.best_cost)
    return reply_of({OutcomeKind::Ok, "", call, call, 0, 1});
  const Reply reply = time_beside(task, *kernel, job);
  last_ = *std::move(kernel);
  last_id_ = job.candidate;
  return reply;
}

/// Makes anchor_ the kernel that `job` compares with, if it has one.
Attempt<bool> Worker::prepare_anchor(MeasuredTask& task, const MeasureJob& job) {
  if (job.anchor < 0 || job.anchor == anchor_id_) return true;
  anchor_id_ = -1;
  usual_ = kNever;
  if (job.anchor == last_id_) {
    anchor_ = std::move(last_);
    last_id_ = -1;
  } else {
    double call = 0;
    Attempt<BuiltKernel> kernel = build_checked(task, job.anchor_trace, call);
    if (!kernel) return tl::unexpected(kernel.error());
    task.set_calls(*kernel, setup_.seconds_per_reading);
    anchor_ = *std::move(kernel);
  }
  anchor_id_ = job.anchor;
  return true;
}

/// Readings in turn with the anchor's, as costs: what slows both down does not count. Where even
/// the anchor is slow, somebody else was at work: such a pair is taken again.
std::vector<Timing> Worker::timings_of(MeasuredTask& task, const BuiltKernel& kernel,
                                       const MeasureJob& job) {
  constexpr double kWorse = 1.15, kFarWorse = 2, kBehind = 1.04, kFarOff = 1.5;
  /// Few are enough where calls are long, and of what is behind the best in all of them.
  constexpr size_t kAttempts = 3, kFew = 3;
  constexpr double kLong = 0.02;  ///< units: s
  const bool alone = job.anchor < 0;
  const auto wanted = static_cast<size_t>(setup_.readings);
  std::vector<Timing> good, disturbed;
  double calmest = kNever, shortest = kNever;
  while (good.size() < wanted && good.size() + disturbed.size() < kAttempts * wanted) {
    const auto begin = SteadyClock::now();
    const double anchor = alone ? 1 : task.reading(anchor_);
    const double time = task.reading(kernel);
    const Timing timing{anchor, time, alone ? time : time * job.anchor_cost / anchor};
    if (!alone) usual_ = std::min({usual_, anchor, job.elsewhere ? anchor : job.anchor_cost});
    calmest = std::min(calmest, anchor);
    (anchor > kFarOff * usual_ ? disturbed : good).push_back(timing);
    const double length = seconds_since(begin);
    if (seconds_since(begin_) + length > setup_.limit_seconds / 2) break;
    shortest = std::min(shortest, length);
    const bool is_long = kernel.calls == 1 && shortest > kLong;
    if (is_long && good.size() >= kFew) break;
    if (alone || good.empty()) continue;
    const double least = std::min_element(good.begin(), good.end(), cheaper)->cost / job.best_cost;
    if (good.size() > 1 ? least > kWorse : least > kFarWorse && is_long) break;
    if (good.size() >= kFew && least > kBehind) break;
  }
  if (!good.empty()) return good;
  std::erase_if(disturbed, [&](const Timing& t) { return t.anchor > kFarOff * calmest; });
  return disturbed;
}

Reply Worker::time_beside(MeasuredTask& task, BuiltKernel& kernel, const MeasureJob& job) {
  const Hold hold(turn_, LOCK_EX);
  if (task.threads() > 1) keep_to({cpus_[0]});
  task.set_calls(kernel, setup_.seconds_per_reading);
  const std::vector<Timing> timings = timings_of(task, kernel, job);
  if (task.threads() > 1) keep_to(cpus_);
  std::vector<double> costs;
  Reply reply;
  reply.fastest = kNever;
  for (const Timing& timing : timings) {
    costs.push_back(timing.cost);
    reply.fastest = std::min(reply.fastest, timing.time);
  }
  reply.state = "done";
  reply.outcome = to_string(OutcomeKind::Ok);
  reply.cost = median(costs);
  reply.least = *std::min_element(costs.begin(), costs.end());
  reply.spread = middle_half(costs) / reply.cost;
  reply.readings = static_cast<int64_t>(costs.size());
  return reply;
}

void Worker::act(const RaceJob& job) {
  MeasuredTask* const found = find(job.task);
  if (found == nullptr) return;
  MeasuredTask& task = *found;
  drop_kernels();
  keep_to(cpus_);
  Reply reply;
  reply.state = "done";
  reply.outcome = to_string(OutcomeKind::Ok);
  std::vector<std::optional<BuiltKernel>> kernels;
  for (const std::string& trace : job.traces) {
    double call = 0;
    Attempt<BuiltKernel> kernel = build_checked(task, trace, call);
    kernels.emplace_back();
    if (kernel)
      kernels.back() = *std::move(kernel);
    else
      reply.reason += kernel.error().reason + "\n";
  }
  const Hold hold(turn_, LOCK_EX);
  keep_to({cpus_[0]});
  for (auto& kernel : kernels)
    if (kernel) task.set_calls(*kernel, setup_.seconds_per_reading);
  std::vector<std::vector<double>> ratios(kernels.size());
  for (int64_t round = 0; round < job.rounds && kernels[0]; ++round) {
    const double first = task.reading(*kernels[0]);
    for (size_t i = 1; i < kernels.size(); ++i)
      if (kernels[i]) ratios[i].push_back(task.reading(*kernels[i]) / first);
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    const bool ran = i == 0 ? kernels[0].has_value() : !ratios[i].empty();
    reply.ratios.push_back(!ran ? -1 : i == 0 ? 1 : median(ratios[i]));
  }
  keep_to(cpus_);
  send(reply);
}

}  // namespace

int serve_worker(const CompileFor& compile, const LoadForDevice& load) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // candidates crash, and nobody reads their memory
  Worker(compile, load).serve();
  return 0;
}

}  // namespace tilewright::measure
