#include "tilewright/driver/codesign/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tilewright/base/statistics.h"
#include "tilewright/driver/codesign/parallel_chart.h"
#include "tilewright/driver/report/html_page.h"
#include "tilewright/driver/report/svg_chart.h"
#include "tilewright/search/multi/hypervolume.h"

namespace tilewright::driver {
namespace {

/// Of the front: the knee, and the least of each objective.
std::vector<size_t> chosen_of(const std::vector<FrontPoint>& front, size_t objectives) {
  std::vector<size_t> chosen;
  if (front.empty()) return chosen;
  chosen.push_back(knee_of(front));
  for (size_t j = 0; j < objectives; ++j)
    chosen.push_back(
        static_cast<size_t>(std::min_element(front.begin(), front.end(),
                                             [j](const FrontPoint& a, const FrontPoint& b) {
                                               return a.objectives[j] < b.objectives[j];
                                             }) -
                            front.begin()));
  return chosen;
}

/// Of so many designs each `stride`th is drawn, beside the front: a page with all of a million
/// would open in no browser.
size_t stride(size_t designs) {
  constexpr size_t kMostDrawn = 3000;
  return std::max<size_t>(1, (designs + kMostDrawn - 1) / kMostDrawn);
}

/// Values of the parameters and objectives of all designs; the front and the knee stand out.
std::string parallel_plot(const SearchSubject& subject, const SearchResult& result) {
  std::vector<ParallelAxis> axes;
  const auto& decisions = subject.space.points().decisions();
  for (const search::Decision& decision : decisions) {
    ParallelAxis axis{decision.name, false, {}};
    for (const search::DecisionValue& value : decision.values) axis.words.push_back(value.text);
    axes.push_back(std::move(axis));
  }
  for (const codesign::Objective objective : subject.goals.objectives)
    axes.push_back({std::string(codesign::name(objective)), true, {}});
  std::set<size_t> front;
  for (const FrontPoint& point : result.front) front.insert(point.number);
  const size_t knee = result.front.empty() ? 0 : result.front[knee_of(result.front)].number;
  std::vector<ParallelLine> lines;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const search::MultiTrial& trial = result.rows[i].trial;
    const bool of_front = front.contains(i + 1);
    if (trial.outcome.objectives.empty() || (!of_front && i % stride(result.rows.size()) != 0))
      continue;
    ParallelLine line{{}, i + 1 == knee ? 2 : of_front ? 1 : 0};
    for (const int value : trial.point) line.values.push_back(value);
    line.values.insert(line.values.end(), trial.outcome.objectives.begin(),
                       trial.outcome.objectives.end());
    lines.push_back(std::move(line));
  }
  return parallel_chart(axes, lines);
}

/// Evaluations at the level of the front: figures of one plot have one source.
std::vector<codesign::StudyRow> judged_rows(const SearchResult& result) {
  if (result.checked.empty()) return result.rows;
  std::vector<codesign::StudyRow> rows;
  for (const codesign::StudyRow& row : result.checked)
    if (row.level == result.level) rows.push_back(row);
  return rows;
}

/// How many designs break each limit, and what else keeps designs from a result.
std::string reasons_table(const SearchSubject& subject, const SearchResult& result) {
  std::vector<std::vector<std::string>> rows = {{"why not", "designs", "median excess"}};
  for (size_t l = 0; l < subject.goals.limits.size(); ++l) {
    std::vector<double> over;
    for (const codesign::StudyRow& row : result.rows)
      if (l < row.trial.outcome.violations.size() && row.trial.outcome.violations[l] > 0)
        over.push_back(std::pow(10.0, row.trial.outcome.violations[l]) - 1);
    const codesign::Limit& limit = subject.goals.limits[l];
    rows.push_back({fmt::format("{} above {}", codesign::name(limit.objective), to_string(limit)),
                    std::to_string(over.size()),
                    over.empty() ? "" : fmt::format("{:+.1f} %", 100 * median(over))});
  }
  std::map<std::string, int> reasons;
  for (const codesign::StudyRow& row : result.rows)
    if (!row.trial.outcome.reason.empty()) ++reasons[row.trial.outcome.reason];
  for (const auto& [reason, count] : reasons) rows.push_back({reason, std::to_string(count), ""});
  const auto feasible = [](const std::vector<codesign::StudyRow>& among) {
    std::set<search::Point> points;
    for (const codesign::StudyRow& row : among)
      if (search::feasible(row.trial.outcome)) points.insert(row.trial.point);
    return points.size();
  };
  const size_t judged = feasible(judged_rows(result)), met = feasible(result.rows);
  if (met > judged)
    rows.push_back(
        {fmt::format("not judged at level {}", result.level), std::to_string(met - judged), ""});
  const size_t dominated = judged - std::min(judged, result.front.size());
  rows.push_back({"another design is better in everything", std::to_string(dominated), ""});
  return html_table(rows);
}

/// All designs with results, those that break a limit apart, and the front as a line.
std::string pair_plot(const SearchSubject& subject, const SearchResult& result, size_t x,
                      size_t y) {
  const codesign::Technology& technology = subject.space.file().technology;
  PlotSeries met{"meets all limits", {}, false}, broken{"breaks a limit", {}, false},
      front{"front", {}, false};
  const std::vector<codesign::StudyRow> judged = judged_rows(result);
  for (size_t i = 0; i < judged.size(); i += stride(judged.size())) {
    const search::MultiOutcome& outcome = judged[i].trial.outcome;
    if (outcome.objectives.empty()) continue;
    (search::feasible(outcome) ? met : broken)
        .points.emplace_back(outcome.objectives[x], outcome.objectives[y]);
  }
  for (const FrontPoint& point : result.front)
    front.points.emplace_back(point.objectives[x], point.objectives[y]);
  PlotSeries chosen{"knee and least of each", {}, false}, baseline{"default design", {}, false};
  for (const size_t i : chosen_of(result.front, subject.goals.objectives.size()))
    chosen.points.emplace_back(result.front[i].objectives[x], result.front[i].objectives[y]);
  std::vector<PlotSeries> series = {front, chosen, met};
  if (result.checked.empty()) {  // only the model judged the default design
    baseline.points.emplace_back(result.of_default[x], result.of_default[y]);
    series.push_back(baseline);
  }
  if (!broken.points.empty()) series.push_back(broken);
  const auto& objectives = subject.goals.objectives;
  return svg({"", objective_axis(objectives[x], technology),
              objective_axis(objectives[y], technology), true, true, std::move(series)});
}

/// Share of the hypervolume at the end, on the scale of all that was found.
std::string volume_plot(const SearchResult& result) {
  std::vector<search::Objectives> feasible;
  for (const codesign::StudyRow& row : result.rows)
    if (search::feasible(row.trial.outcome)) feasible.push_back(row.trial.outcome.objectives);
  if (feasible.empty()) return {};
  const search::FrontScore score(feasible);
  PlotSeries share{"", {}, true, true};
  std::vector<search::Objectives> found;  // the front of these is enough
  const size_t places = 200, step = std::max<size_t>(1, result.rows.size() / places);
  for (size_t i = 0; i < result.rows.size(); ++i) {
    if (search::feasible(result.rows[i].trial.outcome))
      found.push_back(result.rows[i].trial.outcome.objectives);
    if (found.empty() || (i % step != 0 && i + 1 < result.rows.size())) continue;
    std::vector<search::Objectives> front;
    for (const size_t f : search::pareto_front(found)) front.push_back(found[f]);
    found = std::move(front);
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

std::string objective_axis(codesign::Objective objective, const codesign::Technology& technology) {
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

std::string technology_note(const codesign::Technology& technology) {
  return fmt::format(
      "<p>Technology {}: {}. Its numbers: {}. Not checked: absolute power at a foundry node, DRAM, "
      "long wires, the clock tree, and the clock that a design reaches.</p>\n",
      html_text(technology.name), html_text(technology.about), evidence(technology));
}

std::string search_page(const SearchSubject& subject, const SearchResult& result) {
  const codesign::SpaceFile& space = subject.space.file();
  std::string page = html_head("co-design of " + subject.workload.name);
  page += fmt::format(
      "<h1>Designs for {}</h1>\n<p>Space {}: {}. {} designs evaluated, {} on the front.</p>\n",
      html_text(subject.workload.name), html_text(space.name), html_text(space.about),
      result.rows.size(), result.front.size());
  if (!result.checked.empty())
    page += fmt::format(
        "<p>The front and the plots of two objectives are of level {}, which judged {} designs; "
        "hypervolume and parameters are of the model. Figures of two levels do not compare.</p>\n",
        html_text(result.level), judged_rows(result).size());
  const size_t count = subject.goals.objectives.size();
  for (size_t x = 0; x < count; ++x)
    for (size_t y = x + 1; y < count; ++y) page += pair_plot(subject, result, x, y);
  page += volume_plot(result);
  page += "<h2>All designs</h2>\n" + parallel_plot(subject, result);
  if (const size_t each = stride(result.rows.size()); each > 1)
    page +=
        fmt::format("<p>The plots show the front, and of the {} other designs one in {}.</p>\n",
                    result.rows.size() - std::min(result.rows.size(), result.front.size()), each);
  page += "<h2>Why designs are not on the front</h2>\n" + reasons_table(subject, result);
  std::vector<std::vector<std::string>> rows = {{"design"}};
  for (const codesign::Objective objective : subject.goals.objectives)
    rows[0].push_back(objective_axis(objective, space.technology));
  const size_t knee = result.front.empty() ? 0 : knee_of(result.front);
  for (size_t i = 0; i < result.front.size(); ++i) {
    const FrontPoint& point = result.front[i];
    rows.push_back({fmt::format("{}{}", point.number, i == knee ? " (knee)" : "")});
    for (const double value : point.objectives) rows.back().push_back(fmt::format("{:.4g}", value));
  }
  page += "<h2>The front</h2>\n" + html_table(rows);
  if (!result.front.empty())
    page += fmt::format("<h2>The knee</h2>\n<pre>{}</pre>\n", html_text(result.front[knee].design));
  page += technology_note(space.technology) + "</body></html>\n";
  return page;
}

}  // namespace tilewright::driver
