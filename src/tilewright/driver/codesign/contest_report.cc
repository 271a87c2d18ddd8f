#include "tilewright/driver/codesign/contest_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

std::string hundredths(double share) { return fmt::format("{:.2f}", 100 * share); }

/// A row for each method, a column for each one that it is compared with.
void print_races(const ContestResult& result, int evaluations) {
  std::vector<std::string> methods;
  for (const ContestRace& race : result.races)
    if (methods.empty() || methods.back() != race.method) methods.push_back(race.method);
  if (methods.empty()) return;
  std::vector<std::vector<std::string>> rows{{"method"}};
  for (const std::string& method : methods) {
    rows[0].push_back("as " + method);
    rows.push_back({method});
    for (const std::string& other : methods) {
      const auto race = std::find_if(
          result.races.begin(), result.races.end(),
          [&](const ContestRace& one) { return one.method == method && one.other == other; });
      rows.back().push_back(race == result.races.end() ? ""
                            : !race->evaluations       ? "-"
                                                       : std::to_string(*race->evaluations));
    }
  }
  fmt::print("\nevaluations until the median is what another method has with {}; -: never\n\n{}",
             evaluations, table(rows));
}

}  // namespace

void print_contest(const ContestResult& result, const ContestSettings& settings,
                   const std::vector<codesign::Objective>& objectives, bool as_json) {
  nlohmann::ordered_json json = document("codesign.contest");
  json["points"] = result.points;
  json["feasible"] = result.feasible;
  json["front"] = result.front;
  json["table_seconds"] = result.table_seconds;
  std::vector<std::vector<std::string>> rows = {
      {"method", "evaluations", "median %", "worst %", "best %", "feasible %", "s a run"}};
  for (size_t i = 0; i < settings.evaluations.size(); ++i) {
    json["ceilings"].push_back(
        {{"evaluations", settings.evaluations[i]}, {"share", result.ceilings[i]}});
    rows.push_back({"(ceiling)", std::to_string(settings.evaluations[i]),
                    hundredths(result.ceilings[i]), "", "", "", ""});
  }
  for (const ContestLine& line : result.lines) {
    json["runs"].push_back({{"method", line.method},
                            {"evaluations", line.evaluations},
                            {"median", line.median},
                            {"worst", line.worst},
                            {"best", line.best},
                            {"feasible", line.feasible},
                            {"seconds", line.seconds}});
    rows.push_back({line.method, std::to_string(line.evaluations), hundredths(line.median),
                    hundredths(line.worst), hundredths(line.best), hundredths(line.feasible),
                    fmt::format("{:.2f}", line.seconds)});
  }
  std::string estimates;
  for (size_t i = 0; i < objectives.size(); ++i) {
    const auto& [mean, deviation] = result.prior_off[i];
    json["prior_off"].push_back(
        {{"objective", codesign::name(objectives[i])}, {"mean", mean}, {"deviation", deviation}});
    estimates +=
        fmt::format("{}: value over the estimate of ours, log10: mean {:+.3f}, deviation {:.3f}\n",
                    codesign::name(objectives[i]), mean, deviation);
  }
  for (const ContestRace& race : result.races)
    json["evaluations_to"][race.method][race.other] =
        race.evaluations ? nlohmann::ordered_json(*race.evaluations) : nullptr;
  if (as_json) return print_json(json);
  fmt::print("{} points, {} meet all limits, {} on the true front\n\n{}\n", result.points,
             result.feasible, result.front, table(rows));
  fmt::print("{}", estimates);
  print_races(result, *std::max_element(settings.evaluations.begin(), settings.evaluations.end()));
}

}  // namespace tilewright::driver
