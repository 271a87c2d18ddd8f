// Races of schedules on devices of a fleet.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "tilewright/base/json.h"
#include "tilewright/fleet/client.h"
#include "tilewright/fleet/measure/remote_measurer.h"
#include "tilewright/search/searcher.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

constexpr double kRacePatience = 60;  ///< until a device takes the race
/// How much of `confirm_s` a device gets that did not take its last race: its worker may be dead,
/// which the store cannot know for a minute, and a search ends with a race per kernel.
constexpr double kSilentShare = .1;
constexpr int kRaceAttempts = 3;                         ///< of a job that the store cancelled
constexpr double kFirstLook = .005, kLongestLook = .25;  ///< between looks

}  // namespace

/// Submits a job and waits until it is over. `patience_s` begins anew when the store comes back:
/// devices come back, too. errors: Limit (nobody took it in time), Interrupted.
Result<JobState> RemoteMeasurer::see_through(Job job, double patience_s) {
  double begin = now();
  int attempts = 1;
  bool sent = false, leased = false;
  for (double pause = kFirstLook;; pause = std::min(1.5 * pause, kLongestLook)) {
    if (stopped()) {
      if (out_.empty()) close_run();
      return fail(ErrorKind::Interrupted, "interrupted", "the job is cancelled");
    }
    if (!sent && TW_TRY(open_run()))
      sent = TW_TRY(ask("submit", {run_, json_text(Json::array({to_json(job)}))})).has_value();
    if (sent)
      if (const auto answer = TW_TRY(ask("look", {run_, json_text(Json{{job.id, 0}})})))
        for (JobState& state : TW_TRY(states_of(*answer))) {
          // Not by us: the store did not hear of this run for too long.
          const bool again = state.state == "cancelled" && attempts < kRaceAttempts;
          if (state.over() && !again) return std::move(state);
          if (again) job.id = new_uuid(), ++attempts;
          sent = !again;
          leased = state.state == "leased";
        }
    if (away_since_ >= 0) begin = now();
    if (!leased && now() - begin >= patience_s) {
      if (out_.empty()) close_run();  // nobody is to take it any more
      return fail(ErrorKind::Limit,
                  fmt::format("no device took the job within {:.0f} s", patience_s),
                  on_.device_class);
    }
    TW_TRY_STATUS(count_devices());
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
}

/// A race on one device, any of the class if it has no name. `ran_on`: its name.
Result<std::vector<double>> RemoteMeasurer::race_on(const std::string& device,
                                                    const RaceRequest& request, double patience_s,
                                                    std::string& ran_on) {
  Job job = make_job("race", request.kernel, 1,
                     request.limit_s * static_cast<double>(request.schedules.size()));
  job.id = new_uuid();
  if (!device.empty()) job.device = device;
  job.payload = to_json(request);
  const JobState state = TW_TRY(see_through(job, patience_s));
  ran_on = state.device;
  used_.insert(ran_on);
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
  if (ratios.size() != request.schedules.size()) return failed("it has another number of ratios");
  for (double& ratio : ratios)
    if (!(std::isfinite(ratio) && ratio > 0)) ratio = search::kInvalid;
  if (!std::isfinite(ratios[0])) return failed("the first schedule did not run");
  return ratios;
}

/// A device of the class that is on, but for one, and rather one that is not silent; empty: there
/// is none.
std::string RemoteMeasurer::other_device(const std::string& than) const {
  std::string silent;
  for (const Device& device : on_.devices) {
    if (device.name == than || is_off(device) ||
        (!options_.names.empty() && std::find(options_.names.begin(), options_.names.end(),
                                              device.name) == options_.names.end()))
      continue;
    if (!silent_.contains(device.name)) return device.name;
    if (silent.empty()) silent = device.name;
  }
  return silent;
}

Result<std::vector<double>> RemoteMeasurer::race(const measure::Task& task,
                                                 const std::vector<schedule::Trace>& traces,
                                                 int rounds) {
  RaceRequest request;
  request.kernel = kernel_of(task);
  request.rounds = rounds;
  request.limit_s = options_.limit_s;
  const std::map<std::string, MeasureItem>& sent = scales_[task.key()].sent;
  for (const schedule::Trace& trace : traces) {
    const auto item = sent.find(request.schedules.emplace_back(schedule::print(trace)));
    if (item == sent.end()) continue;
    request.priors.push_back(item->second.prior);
    request.points.push_back(item->second.point);
  }
  // Of all or of none: records of earlier runs have no priors.
  if (request.priors.size() != traces.size()) request.priors.clear(), request.points.clear();
  std::string first, second;
  std::vector<double> ratios = TW_TRY(race_on("", request, kRacePatience, first));
  const std::string other = other_device(first);
  if (other.empty()) return ratios;
  const double patience = options_.confirm_s * (silent_.contains(other) ? kSilentShare : 1);
  const Result<std::vector<double>> confirmed = race_on(other, request, patience, second);
  if (!confirmed && confirmed.error().kind == ErrorKind::Interrupted)
    return tl::unexpected<Error>(confirmed.error());
  silent_.erase(other);
  if (!confirmed && confirmed.error().kind == ErrorKind::Limit) silent_.insert(other);
  if (confirmed)
    for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = std::max(ratios[i], (*confirmed)[i]);
  return ratios;
}

}  // namespace tilewright::fleet
