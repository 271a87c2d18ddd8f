#include "tilewright/driver/codesign/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/driver/report/html_page.h"
#include "tilewright/driver/report/svg_chart.h"
#include "tilewright/search/multi/hypervolume.h"

namespace tilewright::driver {
namespace {

std::string axis(codesign::Objective objective, const codesign::Technology& technology) {
  using codesign::Objective;
  switch (objective) {
    case Objective::Latency:
      return "latency (cycles)";
    case Objective::Power:
      return "power (mW, without DRAM)";
    case Objective::PeakPower:
      return "peak power (mW)";
    case Objective::Area:
      return fmt::format("area ({})", codesign::area_unit(technology.formula));
    case Objective::Energy:
      return "energy (J)";
    case Objective::Edp:
      return "energy x delay (J s)";
  }
  return {};
}

/// All designs with results, those that break a limit apart, and the front as a line.
std::string pair_plot(const SearchSubject& subject, const SearchResult& result, size_t x,
                      size_t y) {
  const codesign::Technology& technology = subject.space.file().technology;
  PlotSeries met{"meets all limits", {}, false}, broken{"breaks a limit", {}, false},
      front{"front", {}, false};
  for (const codesign::StudyRow& row : result.rows) {
    const search::MultiOutcome& outcome = row.trial.outcome;
    if (outcome.objectives.empty()) continue;
    (search::feasible(outcome) ? met : broken)
        .points.emplace_back(outcome.objectives[x], outcome.objectives[y]);
  }
  for (const FrontPoint& point : result.front)
    front.points.emplace_back(point.objectives[x], point.objectives[y]);
  std::vector<PlotSeries> series = {front, met};
  if (!broken.points.empty()) series.push_back(broken);
  const auto& objectives = subject.goals.objectives;
  return svg({"", axis(objectives[x], technology), axis(objectives[y], technology), true, true,
              std::move(series)});
}

/// Share of the hypervolume at the end, on the scale of all that was found.
std::string volume_plot(const SearchResult& result) {
  std::vector<search::Objectives> feasible;
  for (const codesign::StudyRow& row : result.rows)
    if (search::feasible(row.trial.outcome)) feasible.push_back(row.trial.outcome.objectives);
  if (feasible.empty()) return {};
  const search::FrontScore score(feasible);
  PlotSeries share{"", {}, true, true};
  std::vector<search::Objectives> found;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    if (search::feasible(result.rows[i].trial.outcome))
      found.push_back(result.rows[i].trial.outcome.objectives);
    if (!found.empty())
      share.points.emplace_back(static_cast<double>(i + 1), 100 * score.share(found));
  }
  return svg({"Hypervolume", "evaluations", "% of the end", false, false, {share}});
}

std::string evidence(const codesign::Technology& technology) {
  std::string text;
  for (const auto& [kind, count] : technology.evidence())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, codesign::name(kind));
  return text;
}

}  // namespace

std::string search_page(const SearchSubject& subject, const SearchResult& result) {
  const codesign::SpaceFile& space = subject.space.file();
  std::string page = html_head("co-design of " + subject.workload.name);
  page += fmt::format(
      "<h1>Designs for {}</h1>\n<p>Space {}: {}. {} designs evaluated, {} on the front.</p>\n",
      html_text(subject.workload.name), html_text(space.name), html_text(space.about),
      result.rows.size(), result.front.size());
  const size_t count = subject.goals.objectives.size();
  for (size_t x = 0; x < count; ++x)
    for (size_t y = x + 1; y < count; ++y) page += pair_plot(subject, result, x, y);
  page += volume_plot(result);
  std::vector<std::vector<std::string>> rows = {{"design"}};
  for (const codesign::Objective objective : subject.goals.objectives)
    rows[0].push_back(axis(objective, space.technology));
  const size_t knee = result.front.empty() ? 0 : knee_of(result.front);
  for (size_t i = 0; i < result.front.size(); ++i) {
    const FrontPoint& point = result.front[i];
    rows.push_back({fmt::format("{}{}", point.number, i == knee ? " (knee)" : "")});
    for (const double value : point.objectives) rows.back().push_back(fmt::format("{:.4g}", value));
  }
  page += "<h2>The front</h2>\n" + html_table(rows);
  if (!result.front.empty())
    page += fmt::format("<h2>The knee</h2>\n<pre>{}</pre>\n", html_text(result.front[knee].design));
  page += fmt::format(
      "<p>Technology {}: {}. Its numbers: {}. Not checked: absolute power at a foundry node, DRAM, "
      "long wires, the "
      "clock tree, and the clock that a design reaches.</p>\n</body></html>\n",
      html_text(space.technology.name), html_text(space.technology.about),
      evidence(space.technology));
  return page;
}

}  // namespace tilewright::driver
