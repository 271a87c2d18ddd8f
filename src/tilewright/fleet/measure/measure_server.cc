#include "tilewright/fleet/measure/measure_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <utility>

#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/measure/measure_job.h"
#include "tilewright/fleet/measure/served_kernel.h"
#include "tilewright/ir/text.h"
#include "tilewright/measure/measurer.h"
#include "tilewright/search/searcher.h"

namespace tilewright::fleet {
namespace {

/// Kernels that stay loaded, and bytes of their operands, which are in every process.
constexpr size_t kMostLoaded = 32;
constexpr int64_t kMostHeldBytes = int64_t{256} << 20;
/// Of the kernels that a set of processes has loaded, ever: the file with their right results only
/// grows, and is limited.
constexpr int64_t kMostLoadedBytes = int64_t{512} << 20;
constexpr double kIdleSeconds = 60;  ///< until the processes end: they hold memory

/// Processes that measure for one login, and what they have loaded. Another login gets others:
/// what one submitter has run in a process is nothing to measure somebody else's in.
struct Rig {
  std::string login;
  double limit_s = 0;
  std::unique_ptr<measure::LocalMeasurer> measurer;
  struct Loaded {
    std::string key;
    int64_t bytes = 0;
    std::unique_ptr<measure::AnchoredEvaluator> evaluator;
  };
  std::list<Loaded> loaded;  ///< the last used first
  int64_t bytes = 0;         ///< of all that ever were

  /// Lets go of the longest unused until another one of so many bytes may stay, too.
  void make_room(int64_t for_bytes) {
    int64_t held = for_bytes;
    for (const Loaded& one : loaded) held += one.bytes;
    while (!loaded.empty() && (loaded.size() >= kMostLoaded || held > kMostHeldBytes)) {
      held -= loaded.back().bytes;
      loaded.pop_back();
    }
  }
};

class MeasureServer final : public JobServer {
 public:
  explicit MeasureServer(ServedDevice device) : device_(std::move(device)) {}

  Status serve(const LeasedJob& job, JobPort& port) override {
    const auto begin = SteadyClock::now();
    bool late = false;
    stop_ = [&] {
      late = seconds_since(begin) > job.limit_s;
      return late || port.stop_between_items();
    };
    Status served = job.kind == "race" ? race(job, port) : measure(job, port);
    stop_ = {};
    if (late) return fail(ErrorKind::Limit, fmt::format("it was not over after {} s", job.limit_s));
    return served;
  }

  std::vector<std::string> warm() const override {
    std::vector<std::string> keys;
    for (const Rig::Loaded& loaded : rig_.loaded) keys.push_back(loaded.key);
    return keys;
  }

  void idle(double seconds) override {
    if (seconds > kIdleSeconds) rig_ = {};
  }

 private:
  Status measure(const LeasedJob& job, JobPort& port);
  Status race(const LeasedJob& job, JobPort& port);
  Result<measure::Task> task_of(const MeasuredKernel& kernel) const;
  Status prepare(const std::string& login, double limit_s, int64_t bytes);
  Rig::Loaded* find_loaded(const MeasuredKernel& kernel, const std::string& login, double limit_s);
  Result<measure::AnchoredEvaluator*> load(const MeasuredKernel& kernel, const std::string& login,
                                           double limit_s);

  const ServedDevice device_;
  std::function<bool()> stop_;  ///< of the job that is being done
  Rig rig_;                     ///< its measurer asks stop_
};

Result<measure::Task> MeasureServer::task_of(const MeasuredKernel& kernel) const {
  const ServedBy by = device_.id == "cpu"                 ? ServedBy::Processor
                      : device_.id.starts_with("runner:") ? ServedBy::Runner
                                                          : ServedBy::Gpu;
  measure::Task task = TW_TRY(served_task(kernel, by, device_.triple));
  if (device_.id != "cpu") task.device = {device_.id, device_.name};
  return task;
}

/// Makes the rig one for this login and limit, with room for a kernel of so many bytes.
Status MeasureServer::prepare(const std::string& login, double limit_s, int64_t bytes) {
  if (rig_.measurer != nullptr && rig_.login == login && rig_.limit_s == limit_s &&
      rig_.bytes + bytes <= kMostLoadedBytes) {
    rig_.bytes += bytes;
    return {};
  }
  rig_ = {};
  measure::MeasureOptions options;
  options.worker = device_.worker;
  options.start = device_.start;
  options.limit_seconds = limit_s;
  options.memory_bytes = device_.memory_bytes;
  options.stop = [this] { return stop_ && stop_(); };
  if (device_.id == "cpu") options.workers = measure::processor_workers();
  rig_.measurer = TW_TRY(measure::start_measurer(options));
  rig_.login = login;
  rig_.limit_s = limit_s;
  rig_.bytes = bytes;
  return {};
}

/// The kernel, as the last used, if it is loaded for this login and limit; else null.
Rig::Loaded* MeasureServer::find_loaded(const MeasuredKernel& kernel, const std::string& login,
                                        double limit_s) {
  if (rig_.login != login || rig_.limit_s != limit_s) return nullptr;
  const std::string key = kernel_key(kernel);
  const auto found = std::find_if(rig_.loaded.begin(), rig_.loaded.end(),
                                  [&](const Rig::Loaded& loaded) { return loaded.key == key; });
  if (found == rig_.loaded.end()) return nullptr;
  rig_.loaded.splice(rig_.loaded.begin(), rig_.loaded, found);
  return &rig_.loaded.front();
}

Result<measure::AnchoredEvaluator*> MeasureServer::load(const MeasuredKernel& kernel,
                                                        const std::string& login, double limit_s) {
  if (const Rig::Loaded* found = find_loaded(kernel, login, limit_s)) return found->evaluator.get();
  const measure::Task task = TW_TRY(task_of(kernel));
  const int64_t bytes = TW_TRY(operand_bytes(task.func));
  TW_TRY_STATUS(prepare(login, limit_s, bytes));
  rig_.make_room(bytes);
  rig_.loaded.push_front({kernel_key(kernel), bytes, TW_TRY(rig_.measurer->anchored(task))});
  return rig_.loaded.front().evaluator.get();
}

Status MeasureServer::measure(const LeasedJob& job, JobPort& port) {
  const MeasureRequest request = TW_TRY(measure_request_of(job.payload));
  if (static_cast<int>(request.items.size()) != job.items)
    return fail(ErrorKind::Package, "this job is none of kind measure",
                fmt::format("{} items, {} candidates", job.items, request.items.size()));
  measure::AnchoredEvaluator* evaluator = TW_TRY(load(request.kernel, job.login, request.limit_s));
  std::vector<int> items;
  std::vector<measure::Candidate> candidates;
  for (int item = job.next; item < job.items; ++item) {
    Result<schedule::Trace> trace =
        schedule::parse_trace(request.items[static_cast<size_t>(item)].schedule);
    if (trace) {
      items.push_back(item);
      candidates.push_back({{}, *std::move(trace)});
    } else {
      port.add({.item = item, .outcome = "invalid", .reason = shown(to_string(trace.error()))});
    }
  }
  evaluator->evaluate_beside({request.anchor, request.anchor_cost, request.best_cost}, candidates,
                             [&](size_t candidate, const measure::Reading& reading) {
                               port.add(item_of(items[candidate], reading));
                             });
  return {};
}

Status MeasureServer::race(const LeasedJob& job, JobPort& port) {
  const RaceRequest request = TW_TRY(race_request_of(job.payload));
  if (job.items != 1) return fail(ErrorKind::Package, "a race has one item");
  const measure::Task task = TW_TRY(task_of(request.kernel));
  if (find_loaded(request.kernel, job.login, request.limit_s) == nullptr)
    TW_TRY_STATUS(prepare(job.login, request.limit_s, TW_TRY(operand_bytes(task.func))));
  std::vector<schedule::Trace> traces;
  for (const std::string& text : request.schedules)
    traces.push_back(TW_TRY(schedule::parse_trace(text)));
  const Result<std::vector<double>> ratios = rig_.measurer->race(task, traces, request.rounds);
  if (port.stop_between_items()) return {};
  ItemResult result;
  if (ratios) {
    result.outcome = "ok";
    result.output = {{"ratios", *ratios}};
    for (auto& ratio : result.output["ratios"])
      if (!(ratio.get<double>() < search::kInvalid)) ratio = -1;
  } else if (ratios.error().kind == ErrorKind::Tool) {  // they did not survive it
    result.outcome = "invalid";
    result.reason = shown(to_string(ratios.error()));
  } else {
    return tl::unexpected(ratios.error());
  }
  port.add(std::move(result));
  return {};
}

}  // namespace

std::unique_ptr<JobServer> measure_server(ServedDevice device) {
  return std::make_unique<MeasureServer>(std::move(device));
}

}  // namespace tilewright::fleet
