#include "tilewright/driver/codesign/contest_report.h"

#include <fmt/format.h>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

std::string hundredths(double share) { return fmt::format("{:.2f}", 100 * share); }

}  // namespace

void print_contest(const ContestResult& result, const ContestSettings& settings, bool as_json) {
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
  for (const auto& [mean, deviation] : result.prior_off)
    json["prior_off"].push_back({{"mean", mean}, {"deviation", deviation}});
  for (const auto& [method, evaluations] : result.ours_as)
    json["ours_as"][method] = evaluations ? nlohmann::ordered_json(*evaluations) : nullptr;
  if (as_json) return print_json(json);
  fmt::print("{} points, {} meet all limits, {} on the true front\n\n{}\n", result.points,
             result.feasible, result.front, table(rows));
  for (const auto& [mean, deviation] : result.prior_off)
    fmt::print("prior off by {:+.3f}, deviation {:.3f} (log10)\n", mean, deviation);
  for (const auto& [method, evaluations] : result.ours_as)
    fmt::print("ours reaches {} at the end with {} evaluations\n", method,
               evaluations ? std::to_string(*evaluations) : "more");
}

}  // namespace tilewright::driver
