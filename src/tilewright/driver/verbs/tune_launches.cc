#include "tilewright/driver/verbs/tune_launches.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tilewright/base/file.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/report/html_page.h"
#include "tilewright/driver/report/svg_chart.h"
#include "tilewright/driver/report/why_stopped.h"
#include "tilewright/driver/tuning/launch_tuning.h"

namespace tilewright::driver {
namespace {

std::string reason_of(const LaunchTuning& run) {
  return why_stopped(run.stop(), run.settings(), "every way");
}

/// How many ways made a program, and why others did not.
struct Outcomes {
  size_t ok = 0;
  std::map<std::string, size_t> reasons;
};
Outcomes outcomes_of(const TunedLaunch& launch) {
  Outcomes outcomes;
  for (const search::Trial& trial : launch.trials)
    if (std::isfinite(trial.outcome.cost))
      ++outcomes.ok;
    else
      ++outcomes.reasons[trial.outcome.reason];
  return outcomes;
}

std::string hash_of_trials(const LaunchTuning& run) {
  std::string text;
  for (const TunedLaunch& launch : run.launches())
    for (const search::Trial& trial : launch.trials)
      text += launch.task.space->schedule(trial.point) + "\n";
  return sha256(text);
}

nlohmann::ordered_json launch_json(const TunedLaunch& launch) {
  const Outcomes outcomes = outcomes_of(launch);
  nlohmann::ordered_json json = {{"name", launch.task.name},
                                 {"workload", launch.task.workload},
                                 {"unit", "cycles"},
                                 {"points", launch.task.space->space().size()},
                                 {"by_compiler", launch.task.start.size()},
                                 {"resumed", launch.resumed},
                                 {"tried", launch.trials.size()},
                                 {"ok", outcomes.ok}};
  for (const auto& [reason, count] : outcomes.reasons) json["reasons"][reason] = count;
  json["untuned_cycles"] = launch.untuned;
  json["tuned_cycles"] = launch.cost;
  json["better"] = launch.better();
  json["schedule"] = launch.task.space->schedule(launch.best);
  return json;
}

nlohmann::ordered_json launches_json(const LaunchTuning& run) {
  nlohmann::ordered_json json = document("tune");
  json["seconds"] = run.elapsed();
  json["stop"] = stop_name(run.stop());
  json["limit_hit"] = run.stop() == search::Stop::Time || run.stop() == search::Stop::Trials;
  json["trials"] = run.trials();
  json["proposals"] = hash_of_trials(run);
  json["seconds_before_search"] = run.prepared_seconds();
  for (const ModelGain& gain : run.gains())
    json["models"].push_back({{"name", gain.name},
                              {"untuned_cycles", gain.before},
                              {"tuned_cycles", gain.after},
                              {"measured_whole", gain.raced}});
  for (const TunedLaunch& launch : run.launches()) json["tasks"].push_back(launch_json(launch));
  if (!run.settings().output.empty()) json["package"] = run.settings().output;
  return json;
}

void print_launches(const LaunchTuning& run) {
  const TuningTarget& target = run.target();
  std::vector<std::vector<std::string>> rows = {{"launch", "tried", "ok",
                                                 fmt::format("untuned {}", target.unit),
                                                 fmt::format("tuned {}", target.unit), "gain"}};
  for (const TunedLaunch& launch : run.launches())
    rows.push_back({launch.task.name, std::to_string(launch.trials.size()),
                    std::to_string(outcomes_of(launch).ok),
                    fmt::format("{:.4g}", launch.untuned / 1e3),
                    fmt::format("{:.4g}", launch.cost / 1e3),
                    fmt::format("{:.3f}x", launch.cost > 0 ? launch.untuned / launch.cost : 1.0)});
  fmt::print("{}", table(rows));
  for (const ModelGain& gain : run.gains())
    fmt::print("{}: {:.5g} {} -> {:.5g} {} ({:.3f}x{})\n", gain.name, gain.before / 1e6,
               target.large_unit, gain.after / 1e6, target.large_unit,
               gain.after > 0 ? gain.before / gain.after : 1.0,
               gain.raced ? ", the whole model, simulated" : "");
  size_t by_compiler = 0, resumed = 0;
  for (const TunedLaunch& launch : run.launches()) {
    by_compiler += launch.task.start.size();
    resumed += launch.resumed;
    fmt::print("{}: {}\n", launch.task.name, launch.task.space->describe(launch.best));
    for (const auto& [reason, count] : outcomes_of(launch).reasons)
      detail(fmt::format("{} of {}: {}", count, launch.task.name, reason));
  }
  fmt::print("tried {} way{} in {:.1f} s: {} of the compiler, {} of earlier runs, then by '{}'\n",
             run.trials(), run.trials() == 1 ? "" : "s", run.elapsed(), by_compiler, resumed,
             run.settings().method);
  fmt::print("stopped because {}\n", reason_of(run));
}

/// The best so far over the seconds of the search.
std::string best_over_time(const TunedLaunch& launch, const char* unit) {
  PlotSeries best{"best so far", {}, true, true}, all{"tried", {}, false, false};
  double least = search::kInvalid;
  for (const search::Trial& trial : launch.trials) {
    if (!std::isfinite(trial.outcome.cost)) continue;
    least = std::min(least, trial.outcome.cost);
    all.points.emplace_back(trial.seconds, trial.outcome.cost / 1e3);
    best.points.emplace_back(trial.seconds, least / 1e3);
  }
  return svg({"Over time", "s", unit, false, true, {best, all}});
}

Status write_launch_report(const std::string& path, const LaunchTuning& run) {
  std::string page = html_head("tuning") + "<h1>Tuning</h1>\n";
  page += fmt::format("<p>{} ways in {:.1f} s; stopped because {}.</p>\n", run.trials(),
                      run.elapsed(), html_text(reason_of(run)));
  for (const TunedLaunch& launch : run.launches()) {
    page += fmt::format(
        "<h2>{}</h2>\n<p>{:.0f} cycles by the compiler, {:.0f} tuned: {}</p>\n<pre>{}</pre>\n{}\n",
        html_text(launch.task.name), launch.untuned, launch.cost,
        html_text(launch.task.space->describe(launch.best)),
        html_text(launch.task.space->schedule(launch.best)),
        best_over_time(launch, run.target().unit));
    for (const auto& [reason, count] : outcomes_of(launch).reasons)
      page += fmt::format("<p>{} failed: {}</p>\n", count, html_text(reason));
  }
  return write_file(path, page + "</body></html>\n");
}

/// What would be tuned, and how large the spaces are.
int list_launches(const LaunchTuning& run, bool as_json) {
  nlohmann::ordered_json json = document("tune");
  std::vector<std::vector<std::string>> rows = {
      {"launch", "by the compiler", "decisions", "points"}};
  for (const TunedLaunch& launch : run.launches()) {
    const search::Space& space = launch.task.space->space();
    json["tasks"].push_back({{"name", launch.task.name},
                             {"workload", launch.task.workload},
                             {"by_compiler", launch.task.start.size()},
                             {"decisions", space.decisions().size()},
                             {"points", space.size()}});
    rows.push_back({launch.task.name, std::to_string(launch.task.start.size()),
                    std::to_string(space.decisions().size()), fmt::format("{:.4g}", space.size())});
  }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

}  // namespace

Result<int> tune_launches(const TuneSettings& settings, const std::string& report,
                          const VerbContext& context) {
  LaunchTuning run(settings);
  TW_TRY_STATUS(run.prepare());
  if (settings.dry) return list_launches(run, context.json);
  TW_TRY_STATUS(run.search());
  const bool interrupted = run.stop() == search::Stop::Interrupted;
  TW_TRY_STATUS(run.decide());
  if (!report.empty()) TW_TRY_STATUS(write_launch_report(report, run));
  context.json ? print_json(launches_json(run)) : print_launches(run);
  return interrupted ? 130 : 0;
}

}  // namespace tilewright::driver
