#include "tilewright/fleet/measure/remote_measurer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "tilewright/base/json.h"
#include "tilewright/fleet/client.h"
#include "tilewright/measure/target_text.h"
#include "tilewright/records/workload.h"

namespace tilewright::fleet {
namespace {

using measure::Candidate;
using measure::JudgedBatch;
using measure::OutcomeKind;
using measure::Reading;
using Json = nlohmann::json;

/// Between two looks: short after something happened, then longer and longer.
constexpr double kFirstPause = .005, kLongestPause = .25;
constexpr double kTickEvery = 1, kTellEvery = 10, kCountEvery = 5;
constexpr double kFirstRetry = .2, kLongestRetry = 5;  ///< of a store that does not answer
constexpr double kMostJobSeconds = 600;                ///< what a pool gives by default
constexpr double kJobSeconds = 30;                     ///< of a job beside its candidates
constexpr double kReplacesAnchor = .5;                 ///< of its cost
constexpr int kAttempts = 3;                           ///< of a job that the store cancelled
/// Jobs that fail in a row: the next will fail, too. Later one device may be what is wrong.
constexpr int kMostFailed = 4, kMostFailedLater = 32;
/// Of candidates, one in so many is measured again: the more often while devices are new, so that
/// each has met others ten times, which the store judges by, before it has measured `kNew`.
constexpr int64_t kNew = 60, kNewEvery = 8, kRepeatEvery = 50;

Reading lost(std::string reason) { return {OutcomeKind::Lost, std::move(reason), 0, 0, 0, 0}; }

/// Waits for each batch.
class WaitingEvaluator final : public measure::Evaluator {
 public:
  WaitingEvaluator(RemoteMeasurer& measurer, const measure::Task& task)
      : measurer_(measurer), task_(task) {}

  std::vector<Reading> evaluate(const std::vector<Candidate>& candidates) override {
    const int64_t id = measurer_.begin(task_, candidates);
    for (;;) {
      Result<std::optional<JudgedBatch>> batch = measurer_.wait(kLongestPause);
      if (!batch) return std::vector<Reading>(candidates.size(), lost(batch.error().what));
      if (*batch && (*batch)->id == id) return std::move((*batch)->readings);
      if (measurer_.stopped()) return std::vector<Reading>(candidates.size(), lost("interrupted"));
    }
  }

 private:
  RemoteMeasurer& measurer_;
  const measure::Task task_;
};

}  // namespace

MeasuredKernel RemoteMeasurer::kernel_of(const measure::Task& task) {
  return {records::workload_text(task.func), measure::print_target(task.target), task.threads};
}

bool RemoteMeasurer::is_off(const Device& device) {
  return device.state == "off" || device.state == "suspect";
}

RemoteMeasurer::RemoteMeasurer(StoreCall call, Selected on, RemoteMeasuring options)
    : call_(std::move(call)), on_(std::move(on)), options_(std::move(options)) {}

RemoteMeasurer::~RemoteMeasurer() { close_run(); }

double RemoteMeasurer::now() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void RemoteMeasurer::say(const std::string& line) const {
  if (options_.say) options_.say(line);
}

int RemoteMeasurer::devices() const {
  if (!options_.names.empty()) return static_cast<int>(options_.names.size());
  const auto on = std::count_if(on_.devices.begin(), on_.devices.end(),
                                [](const Device& device) { return !is_off(device); });
  return std::max(static_cast<int>(on), 1);
}

void RemoteMeasurer::set_anchor(const measure::Task& task, const std::string& schedule,
                                double cost) {
  if (cost <= 0) return;
  Scale& scale = scales_[task.key()];
  scale.anchor = schedule;
  scale.cost = scale.best = cost;
}

RemoteMeasurer::Batch RemoteMeasurer::make_batch(const measure::Task& task,
                                                 const std::vector<Candidate>& candidates) const {
  Batch batch;
  MeasureRequest& request = batch.request;
  request.kernel = kernel_of(task);
  request.limit_s = options_.limit_s;
  records::Record& record = request.record;
  record = task.record();
  record.workload = task.key();
  const bool is_rule = candidates.at(0).text.empty();
  record.kind = is_rule ? records::kRuleKind : records::kScheduleKind;
  record.searcher = is_rule ? "rule" : options_.searcher;
  record.compiler = options_.compiler;
  record.seed = static_cast<int64_t>(options_.seed);
  for (const Candidate& candidate : candidates)
    request.items.push_back({schedule::print(candidate.trace), candidate.text,
                             std::isfinite(candidate.prior) ? candidate.prior : 0});
  if (options_.least) batch.least = options_.least(task);
  batch.job = new_uuid();
  return batch;
}

int64_t RemoteMeasurer::begin(const measure::Task& task, const std::vector<Candidate>& candidates) {
  Batch batch = make_batch(task, candidates);
  const int64_t id = batch.id = ++last_id_;
  std::map<std::string, MeasureItem>& sent = scales_[task.key()].sent;
  for (const MeasureItem& item : batch.request.items) sent.emplace(item.schedule, item);
  out_.push_back(std::move(batch));
  repeat(task, candidates);
  return id;
}

/// Measures some candidates a second time: perhaps another device does it, and the store sees
/// whether they agree.
void RemoteMeasurer::repeat(const measure::Task& task, const std::vector<Candidate>& candidates) {
  if (devices() < 2) return;
  std::vector<Candidate> chosen;
  for (const Candidate& candidate : candidates) {
    if (candidate.text.empty()) continue;
    const int64_t number = counted_++;
    if (number % (number < kNew * devices() ? kNewEvery : kRepeatEvery) == 0)
      chosen.push_back(candidate);
  }
  if (chosen.empty()) return;
  out_.push_back(make_batch(task, chosen));
}

Result<std::optional<Json>> RemoteMeasurer::ask(const std::string& function,
                                                const std::vector<std::string>& texts) {
  if (away_since_ >= 0 && now() < retry_at_) return std::optional<Json>();
  Result<Json> answer = call_(function, texts);
  if (answer) {
    away_since_ = -1;
    return std::optional(*std::move(answer));
  }
  if (answer.error().kind != ErrorKind::Unreachable) return tl::unexpected<Error>(answer.error());
  if (away_since_ < 0) away_since_ = now();
  const double away = now() - away_since_;
  retry_at_ = now() + std::clamp(away, kFirstRetry, kLongestRetry);
  say(fmt::format("the store does not answer ({:.0f} s): {}; measuring goes on", away,
                  answer.error().what));
  return std::optional<Json>();
}

/// Whether there is a run in the store.
Result<bool> RemoteMeasurer::open_run() {
  if (run_.empty()) run_ = new_uuid(), run_known_ = false;
  if (!run_known_)
    run_known_ = TW_TRY(ask("new_run", {run_, options_.command, "false"})).has_value();
  return run_known_;
}

/// Jobs that have not begun end, and what devices still find is not kept. Where the store is away,
/// it does that itself after some minutes.
void RemoteMeasurer::close_run() {
  if (run_known_ && away_since_ < 0) (void)call_("close_run", {run_});
  run_.clear();
  run_known_ = false;
}

void RemoteMeasurer::cancel() {
  if (!out_.empty()) close_run();
  out_.clear();
  done_.clear();
  busy_.clear();
  for (auto& [key, scale] : scales_) scale.sought = false;
}

Job RemoteMeasurer::make_job(const char* kind, const MeasuredKernel& kernel, size_t items,
                             double each_s) {
  Job job;
  job.kind = kind;
  job.pool = on_.devices.at(0).pool;
  job.device_class = on_.device_class;
  if (!options_.names.empty())
    job.device = options_.names[static_cast<size_t>(turn_++) % options_.names.size()];
  job.needs = options_.needs;
  job.compiler = options_.compiler;
  job.band = 2;
  job.limit_s = std::min(kJobSeconds + 2 * each_s * static_cast<double>(items), kMostJobSeconds);
  job.items = static_cast<int>(items);
  job.key = kernel_key(kernel);
  return job;
}

/// What is left of a batch as a job, beside the anchor of this moment.
Job RemoteMeasurer::job_of(Batch& batch) {
  MeasureRequest request = batch.request;
  request.items.erase(request.items.begin(),
                      request.items.begin() + static_cast<long>(batch.first));
  const Scale& scale = scales_[request.record.workload];
  request.anchor = scale.anchor;
  request.anchor_cost = scale.cost;
  request.best_cost = scale.best;
  Job job = make_job("measure", request.kernel, request.items.size(), request.limit_s);
  job.id = batch.job;
  job.payload = to_json(request);
  return job;
}

/// Sends jobs that the store does not have. Of a task without an anchor only one is out: the others
/// wait for what it finds.
Status RemoteMeasurer::send() {
  Json jobs = Json::array();
  std::vector<Batch*> sent;
  for (Batch& batch : out_) {
    Scale& scale = scales_[batch.request.record.workload];
    if (batch.sent || (scale.anchor.empty() && (scale.sought || batch.id == 0))) continue;
    scale.sought = scale.anchor.empty();
    batch.sent = true;
    sent.push_back(&batch);
    jobs.push_back(to_json(job_of(batch)));
  }
  if (sent.empty()) return {};
  Result<std::optional<Json>> answer = std::optional<Json>();
  if (TW_TRY(open_run())) answer = ask("submit", {run_, json_text(jobs)});
  if (answer && *answer) {
    if (asked_at_ < 0) asked_at_ = now();
    for (const Json& warning : (**answer).value("warnings", Json::array()))
      say("warning: " + warning.get<std::string>());
    return {};
  }
  for (Batch* batch : sent) {  // another time
    batch->sent = false;
    Scale& scale = scales_[batch->request.record.workload];
    if (scale.anchor.empty()) scale.sought = false;
  }
  if (!answer && answer.error().kind == ErrorKind::Limit) {  // the queue is full
    if (now() - told_at_ >= kTellEvery) told_at_ = now(), say(answer.error().what);
    return {};
  }
  return answer ? Status() : Status(tl::unexpected<Error>(answer.error()));
}

/// One reading of a batch, in the order of its items.
void RemoteMeasurer::add_reading(Batch& batch, const ItemResult& item) {
  Reading reading;
  reading.kind = measure::outcome_kind(item.outcome).value_or(OutcomeKind::Lost);
  reading.reason = item.reason;
  if (reading.kind == OutcomeKind::Ok) {
    reading.cost = item.cost;
    reading.least = item.least > 0 ? item.least : item.cost;
    reading.spread = item.spread;
    reading.readings = std::max<int64_t>(item.readings, 1);
    if (!(std::isfinite(item.cost) && item.cost > 0)) {
      reading = lost("a cost that is none");
    } else if (item.cost < batch.least) {
      reading = lost(fmt::format("implausible: {:.3g} ns, the machine allows {:.3g}", item.cost,
                                 2 * batch.least));
    }
  }
  const size_t place = batch.readings.size();
  batch.readings.push_back(reading);
  failed_ = 0;
  measured_ = true;
  if (reading.kind != OutcomeKind::Ok) return;
  Scale& scale = scales_[batch.request.record.workload];
  scale.best = scale.best > 0 ? std::min(scale.best, reading.cost) : reading.cost;
  if (!scale.anchor.empty() && reading.cost >= kReplacesAnchor * scale.cost) return;
  scale.anchor = batch.request.items[place].schedule;
  scale.cost = reading.cost;
}

/// Takes what is new of a job; whether its batch is done.
bool RemoteMeasurer::hear(Batch& batch, const JobState& state) {
  if (state.state == "leased") busy_.insert(state.device);
  if (!state.device.empty()) used_.insert(state.device);
  if (batch.leased_at < 0 && state.state != "ready" && state.state != "waiting")
    batch.leased_at = now();
  for (const ItemResult& item : state.results)
    if (batch.readings.size() < batch.request.items.size()) add_reading(batch, item);
  if (!state.over()) return false;
  Scale& scale = scales_[batch.request.record.workload];
  scale.sought = false;
  if (batch.readings.size() == batch.request.items.size()) return true;
  if (state.state == "cancelled" && ++batch.attempts <= kAttempts) {
    // Not by us: the store did not hear of this run for too long.
    batch.first = batch.readings.size();
    batch.job = new_uuid();
    batch.sent = false;
    return false;
  }
  if (state.state == "failed" && batch.readings.empty()) {
    ++failed_;
    why_ = state.device + ": " + state.reason;
  }
  const std::string why = state.reason.empty() ? "" : ": " + state.reason;
  batch.readings.resize(batch.request.items.size(), lost("the job is " + state.state + why));
  return true;
}

Status RemoteMeasurer::look() {
  Json have = Json::object();
  for (const Batch& batch : out_)
    if (batch.sent) have[batch.job] = batch.readings.size() - batch.first;
  if (have.empty()) return {};
  const auto answer = TW_TRY(ask("look", {run_, json_text(have)}));
  if (!answer) return {};
  busy_.clear();
  for (const JobState& state : TW_TRY(states_of(*answer))) {
    const auto batch = std::find_if(out_.begin(), out_.end(),
                                    [&](const Batch& its) { return its.job == state.id; });
    if (batch == out_.end() || !hear(*batch, state)) continue;
    if (batch->id > 0)
      done_.push_back({batch->id, std::move(batch->readings), now() - batch->leased_at});
    out_.erase(batch);
  }
  return {};
}

/// Leases of workers that died end by someone's tick; devices come and go.
Status RemoteMeasurer::count_devices() {
  if (now() - ticked_at_ >= kTickEvery) {
    ticked_at_ = now();
    TW_TRY(ask("tick", {}));
  }
  if (now() - counted_at_ < kCountEvery) return {};
  counted_at_ = now();
  const auto answer = TW_TRY(ask("devices", {}));
  if (!answer) return {};
  std::vector<Device> devices = TW_TRY(devices_of(*answer));
  std::erase_if(devices, [&](const Device& device) {
    return device.device_class != on_.device_class || device.pool != on_.devices.at(0).pool ||
           !std::all_of(options_.needs.begin(), options_.needs.end(), [&](const auto& tag) {
             return std::find(device.tags.begin(), device.tags.end(), tag) != device.tags.end();
           });
  });
  if (!devices.empty()) on_.devices = std::move(devices);
  return {};
}

/// Says what the search waits for. errors: Limit, Device.
Status RemoteMeasurer::check_waiting() {
  if (failed_ >= (measured_ ? kMostFailedLater : kMostFailed))
    return fail(ErrorKind::Device,
                fmt::format("devices of class {} do not measure: {} jobs in a row failed",
                            on_.device_class, failed_),
                why_, "tilewright fleet log shows what happened");
  if (asked_at_ < 0 || !busy_.empty() || away_since_ >= 0) return {};
  const double waited = now() - asked_at_;
  const std::string none = why_none(on_.devices);
  const std::string what = !none.empty() ? none
                                         : fmt::format("waiting for one of {} devices of class {}",
                                                       on_.devices.size(), on_.device_class);
  if (options_.wait_s > 0 && used_.empty() && waited >= options_.wait_s)
    return fail(ErrorKind::Limit, fmt::format("no device took a job within {:.0f} s", waited), what,
                "a longer --wait, or start a worker");
  if (waited >= kTellEvery && now() - told_at_ >= kTellEvery) told_at_ = now(), say(what);
  return {};
}

Result<std::optional<JudgedBatch>> RemoteMeasurer::wait(double seconds) {
  const double end = now() + seconds;
  for (double pause = kFirstPause;; pause = std::min(1.5 * pause, kLongestPause)) {
    if (done_.empty() && !stopped()) {
      TW_TRY_STATUS(send());
      TW_TRY_STATUS(look());
      TW_TRY_STATUS(count_devices());
      TW_TRY_STATUS(check_waiting());
    }
    if (!done_.empty()) {
      JudgedBatch batch = std::move(done_.front());
      done_.pop_front();
      return std::optional(std::move(batch));
    }
    const double left = end - now();
    if (left <= 0 || stopped()) return std::optional<JudgedBatch>();
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(pause, left)));
  }
}

Result<std::unique_ptr<measure::Evaluator>> RemoteMeasurer::evaluator(const measure::Task& task) {
  return std::make_unique<WaitingEvaluator>(*this, task);
}

}  // namespace tilewright::fleet
