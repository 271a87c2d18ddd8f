// Races of schedules on devices of a fleet: each on one device, and again on another one. As many
// are out as keep all devices busy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <thread>
#include <utility>

#include "tilewright/base/json.h"
#include "tilewright/fleet/client.h"
#include "tilewright/fleet/measure/remote_measurer.h"
#include "tilewright/search/searcher.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;
using measure::Raced;

constexpr double kRacePatience = 60;  ///< until a device takes the race
/// How much of `confirm_s` a device gets that did not take its last race: its worker may be dead,
/// which the store cannot know for a minute, and a search ends with a race per kernel.
constexpr double kSilentShare = .1;
constexpr int kRaceAttempts = 3;  ///< of a job that the store cancelled
constexpr size_t kOutPerDevice = 2;
constexpr double kFirstLook = .005, kLongestLook = .25;  ///< between looks

/// What a race says of its schedules. errors: Tool.
Result<std::vector<double>> ratios_of(const JobState& state, size_t schedules) {
  const auto failed = [&](const std::string& why) {
    return fail(ErrorKind::Tool, fmt::format("the race on {} is {}", state.device, state.state),
                why);
  };
  if (state.results.empty()) return failed(state.reason);
  const ItemResult& item = state.results[0];
  if (item.outcome != "ok") return failed(item.outcome + ": " + item.reason);
  std::vector<double> ratios;
  try {
    item.output.at("ratios").get_to(ratios);
  } catch (const Json::exception& error) {
    return failed(error.what());
  }
  if (ratios.size() != schedules) return failed("it has another number of ratios");
  for (double& ratio : ratios)
    if (!(std::isfinite(ratio) && ratio > 0)) ratio = search::kInvalid;
  if (!std::isfinite(ratios[0])) return failed("the first schedule did not run");
  return ratios;
}

}  // namespace

/// Several races, from the first job to the last.
class RemoteMeasurer::Races {
 public:
  Races(RemoteMeasurer& by, const std::vector<measure::Race>& races, int rounds,
        const std::function<bool()>& more)
      : by_(by), races_(races), rounds_(rounds), more_(more), found_(races.size()) {}

  std::vector<Raced> run();

 private:
  /// A job that is out.
  struct Out {
    size_t race = 0;
    Job job;
    bool confirms = false;
    std::vector<double> ratios;  ///< of the first device, where this is to confirm them
    double since = 0;            ///< when it began to wait for its device
    int attempts = 1;
    bool sent = false, over = false;
    std::string leased_by;
  };

  void start(size_t race, const std::string& device, std::vector<double> ratios);
  void start_more();
  Status step();
  Status send();
  Status look();
  void hear(Out& out, const JobState& state);
  void judge(Out& out, const JobState& state);
  std::string other_device(const std::string& than) const;
  void check_patience();
  void end(const Error& error);

  RemoteMeasurer& by_;
  const std::vector<measure::Race>& races_;
  const int rounds_;
  const std::function<bool()>& more_;
  std::vector<Raced> found_;
  std::vector<Out> out_, made_;  ///< `made_`: while out_ is walked through
  size_t next_ = 0;
  bool abandoned_ = false;  ///< a job is in the queue that is not waited for
  bool changed_ = false;
};

/// On `device` to confirm `ratios`; without one on any device of the class, or the next by name.
void RemoteMeasurer::Races::start(size_t race, const std::string& device,
                                  std::vector<double> ratios) {
  const RaceRequest request = by_.race_request(races_[race], rounds_);
  Out out;
  out.race = race;
  out.job = by_.make_job("race", request.kernel, 1,
                         request.limit_s * static_cast<double>(request.schedules.size()));
  out.job.id = new_uuid();
  out.job.payload = to_json(request);
  out.confirms = !device.empty();
  if (out.confirms) out.job.device = device;
  out.ratios = std::move(ratios);
  out.since = by_.now();
  made_.push_back(std::move(out));
}

void RemoteMeasurer::Races::start_more() {
  const size_t wanted = kOutPerDevice * static_cast<size_t>(by_.devices());
  while (next_ < races_.size() && out_.size() + made_.size() < wanted) {
    if (more_ && !more_())
      next_ = races_.size();
    else
      start(next_++, "", {});
  }
  std::move(made_.begin(), made_.end(), std::back_inserter(out_));
  made_.clear();
}

Status RemoteMeasurer::Races::send() {
  Json jobs = Json::array();
  for (const Out& out : out_)
    if (!out.sent) jobs.push_back(to_json(out.job));
  if (jobs.empty() || !TW_TRY(by_.open_run())) return {};
  const auto answer = by_.ask("submit", {by_.run_, json_text(jobs)});
  if (answer && *answer)
    for (Out& out : out_) out.sent = true;
  if (answer || answer.error().kind == ErrorKind::Limit) return {};  // the queue is full: later
  return tl::unexpected<Error>(answer.error());
}

Status RemoteMeasurer::Races::look() {
  Json have = Json::object();
  for (const Out& out : out_)
    if (out.sent) have[out.job.id] = 0;
  if (have.empty()) return {};
  const auto answer = TW_TRY(by_.ask("look", {by_.run_, json_text(have)}));
  if (!answer) return {};
  for (const JobState& state : TW_TRY(states_of(*answer))) {
    const auto out = std::find_if(out_.begin(), out_.end(),
                                  [&](const Out& its) { return its.job.id == state.id; });
    if (out != out_.end()) hear(*out, state);
  }
  std::erase_if(out_, [](const Out& out) { return out.over; });
  return {};
}

void RemoteMeasurer::Races::hear(Out& out, const JobState& state) {
  out.leased_by = state.state == "leased" ? state.device : "";
  if (!state.over()) return;
  changed_ = true;
  if (state.state != "cancelled" || out.attempts == kRaceAttempts) return judge(out, state);
  // Not by us: the store did not hear of this run for too long.
  ++out.attempts;
  out.job.id = new_uuid();
  out.sent = false;
}

/// A device of the class that is on, but for one: rather one that is not silent, and of these the
/// one that has least to confirm; empty: there is none.
std::string RemoteMeasurer::Races::other_device(const std::string& than) const {
  const std::vector<std::string>& names = by_.options_.names;
  std::string found;
  std::pair<bool, std::ptrdiff_t> least;
  for (const Device& device : by_.on_.devices) {
    if (device.name == than || is_off(device) ||
        (!names.empty() && std::find(names.begin(), names.end(), device.name) == names.end()))
      continue;
    const auto its = [&](const Out& out) { return out.job.device == device.name; };
    const std::pair<bool, std::ptrdiff_t> has = {
        by_.silent_.contains(device.name), std::count_if(out_.begin(), out_.end(), its) +
                                               std::count_if(made_.begin(), made_.end(), its)};
    if (found.empty() || has < least) found = device.name, least = has;
  }
  return found;
}

/// A race is done with its second device, or with the first where there is no other one.
void RemoteMeasurer::Races::judge(Out& out, const JobState& state) {
  out.over = true;
  if (!state.device.empty()) by_.used_.insert(state.device);
  Result<std::vector<double>> ratios = ratios_of(state, races_[out.race].traces.size());
  if (out.confirms) {
    by_.silent_.erase(*out.job.device);
    if (ratios)
      for (size_t i = 0; i < out.ratios.size(); ++i)
        out.ratios[i] = std::max(out.ratios[i], (*ratios)[i]);
    found_[out.race] = std::move(out.ratios);
    return;
  }
  const std::string other = ratios ? other_device(state.device) : "";
  if (other.empty())
    found_[out.race] = std::move(ratios);
  else
    start(out.race, other, *std::move(ratios));
}

/// Gives up what no device takes. Time does not count while the store is away, or while a device
/// that could take it is at another race.
void RemoteMeasurer::Races::check_patience() {
  for (Out& out : out_) {
    const bool behind = std::any_of(out_.begin(), out_.end(), [&](const Out& other) {
      return !other.leased_by.empty() && (!out.job.device || *out.job.device == other.leased_by);
    });
    if (by_.away_since_ >= 0 || behind) out.since = by_.now();
    double patience = kRacePatience;
    if (out.confirms)
      patience =
          by_.options_.confirm_s * (by_.silent_.contains(*out.job.device) ? kSilentShare : 1);
    if (by_.now() - out.since < patience) continue;
    out.over = abandoned_ = true;
    if (out.confirms) {
      by_.silent_.insert(*out.job.device);
      found_[out.race] = std::move(out.ratios);
    } else {
      found_[out.race] =
          fail(ErrorKind::Limit, fmt::format("no device took the job within {:.0f} s", patience),
               by_.on_.device_class);
    }
  }
  std::erase_if(out_, [](const Out& out) { return out.over; });
}

Status RemoteMeasurer::Races::step() {
  if (by_.stopped())
    return fail(ErrorKind::Interrupted, "interrupted", "races that are out are cancelled");
  TW_TRY_STATUS(send());
  TW_TRY_STATUS(look());
  check_patience();
  return by_.count_devices();
}

/// Whatever is not decided ends so.
void RemoteMeasurer::Races::end(const Error& error) {
  const auto give_up = [&](size_t race) { found_[race] = tl::unexpected<Error>(error); };
  std::move(made_.begin(), made_.end(), std::back_inserter(out_));
  for (Out& out : out_)
    if (out.confirms && error.kind != ErrorKind::Interrupted)
      found_[out.race] = std::move(out.ratios);
    else
      give_up(out.race);
  for (; next_ < races_.size(); ++next_) give_up(next_);
  abandoned_ = true;
}

std::vector<Raced> RemoteMeasurer::Races::run() {
  double pause = kFirstLook;
  for (start_more(); !out_.empty(); start_more()) {
    changed_ = false;
    if (const Status status = step(); !status) {
      end(status.error());
      break;
    }
    pause = changed_ ? kFirstLook : std::min(1.5 * pause, kLongestLook);
    if (!out_.empty() && made_.empty())
      std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
  if (abandoned_ && by_.out_.empty()) by_.close_run();  // nobody is to take it any more
  return std::move(found_);
}

RaceRequest RemoteMeasurer::race_request(const measure::Race& race, int rounds) const {
  RaceRequest request;
  request.kernel = kernel_of(*race.task);
  request.rounds = rounds;
  request.limit_s = options_.limit_s;
  const auto scale = scales_.find(race.task->key());
  for (const schedule::Trace& trace : race.traces) {
    const std::string& text = request.schedules.emplace_back(schedule::print(trace));
    if (scale == scales_.end()) continue;
    const auto item = scale->second.sent.find(text);
    if (item == scale->second.sent.end()) continue;
    request.priors.push_back(item->second.prior);
    request.points.push_back(item->second.point);
  }
  // Of all or of none: records of earlier runs have no priors.
  if (request.priors.size() != race.traces.size()) request.priors.clear(), request.points.clear();
  return request;
}

std::vector<Raced> RemoteMeasurer::races(const std::vector<measure::Race>& races, int rounds,
                                         const std::function<bool()>& more) {
  return Races(*this, races, rounds, more).run();
}

Result<std::vector<double>> RemoteMeasurer::race(const measure::Task& task,
                                                 const std::vector<schedule::Trace>& traces,
                                                 int rounds) {
  const std::vector<measure::Race> one = {{&task, traces}};
  return *races(one, rounds, {})[0];
}

}  // namespace tilewright::fleet
