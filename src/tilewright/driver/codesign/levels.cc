#include "tilewright/driver/codesign/levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "tilewright/codesign/synth/synth.h"
#include "tilewright/codesign/tsim/tsim.h"
#include "tilewright/driver/codesign/goals.h"

namespace tilewright::driver {
namespace {

using codesign::StudyRow;

bool of_model(const StudyRow& row) { return row.level == codesign::kModelLevel; }

/// By point: the row of the highest level, which was added last.
std::map<search::Point, const StudyRow*> last_rows(const std::vector<StudyRow>& rows) {
  std::map<search::Point, const StudyRow*> last;
  for (const StudyRow& row : rows) last[row.trial.point] = &row;
  return last;
}

/// In the order of their ranks.
const std::vector<codesign::Level>& higher_levels() {
  static const std::vector<codesign::Level> levels{codesign::tsim_level(), codesign::synth_level()};
  return levels;
}

double mean_excess(const std::vector<double>& excess) {
  double sum = 0;
  for (const double one : excess) sum += one;
  return sum / static_cast<double>(excess.size());
}

}  // namespace

Result<std::vector<Fidelity>> parse_fidelity(const std::string& text) {
  std::vector<Fidelity> levels;
  for (const std::string& word : words_of(text)) {
    const size_t colon = std::min(word.find(':'), word.size());
    const size_t rank = rank_of(word.substr(0, colon));
    const char* end = word.data() + word.size();
    size_t count = 0;
    const bool number =
        colon < word.size() && std::from_chars(word.data() + colon + 1, end, count).ptr == end;
    const bool higher = rank > (levels.empty() ? 0 : rank_of(levels.back().level.name));
    if (!number || count == 0 || !higher || rank > higher_levels().size())
      return fail(ErrorKind::Usage, fmt::format("--fidelity '{}' is not LEVEL:COUNT,...", text),
                  "the levels are tsim and, behind it, synth; the count of designs is at least 1",
                  "--fidelity tsim:8 or tsim:8,synth:4");
    levels.push_back({higher_levels()[rank - 1], count});
  }
  return levels;
}

Status check_levels(const std::vector<Fidelity>& levels, const codesign::Technology& technology) {
  for (const Fidelity& fidelity : levels) TW_TRY_STATUS(fidelity.level.accepts(technology));
  return {};
}

size_t rank_of(const std::string& level) {
  if (level == codesign::kModelLevel) return 0;
  const std::vector<codesign::Level>& all = higher_levels();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const codesign::Level& one) { return one.name == level; });
  return 1 + static_cast<size_t>(found - all.begin());
}

std::vector<StudyRow> model_rows(const std::vector<StudyRow>& rows) {
  const auto last = last_rows(rows);
  std::vector<StudyRow> seen;
  for (const StudyRow& row : rows) {
    if (!of_model(row)) continue;
    seen.push_back(row);
    const StudyRow& judge = *last.at(row.trial.point);
    if (of_model(judge) || search::feasible(judge.trial.outcome)) continue;
    search::MultiOutcome& outcome = seen.back().trial.outcome;
    if (judge.trial.outcome.objectives.empty())
      outcome = judge.trial.outcome;
    else
      outcome.violations = judge.trial.outcome.violations;
  }
  return seen;
}

std::vector<StudyRow> checked_rows(const std::vector<StudyRow>& rows) {
  std::vector<StudyRow> checked;
  for (const StudyRow& row : rows)
    if (!of_model(row)) checked.push_back(row);
  return checked;
}

size_t broken(const std::vector<StudyRow>& rows) {
  const auto last = last_rows(rows);
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [&](const StudyRow& row) {
    return of_model(row) && search::feasible(row.trial.outcome) &&
           !search::feasible(last.at(row.trial.point)->trial.outcome);
  }));
}

namespace {

/// Of the best designs by the level below, the first that the level has not judged. Its own figures
/// have no say: they do not compare with those of designs that it has not seen.
std::optional<FrontPoint> next_at(const std::vector<StudyRow>& rows, const std::string& below,
                                  const Fidelity& fidelity) {
  std::vector<StudyRow> seen;
  std::set<search::Point> judged;
  for (const StudyRow& row : rows) {
    if (row.level == below || !search::feasible(row.trial.outcome)) seen.push_back(row);
    if (row.level == fidelity.level.name) judged.insert(row.trial.point);
  }
  std::vector<FrontPoint> front = front_of(seen);
  const std::vector<double> distance = knee_distances(front);
  std::vector<size_t> order;
  for (size_t i = 0; i < front.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return distance[a] < distance[b]; });
  for (size_t i = 0; i < std::min(fidelity.count, order.size()); ++i)
    if (!judged.contains(front[order[i]].point)) return std::move(front[order[i]]);
  return std::nullopt;
}

std::string summary_of(const std::vector<StudyRow>& rows, const std::string& level,
                       const std::map<search::Point, const StudyRow*>& models, size_t objective,
                       const std::string& name) {
  std::vector<double> excess;  // in percent
  size_t failed = 0, count = 0;
  for (const StudyRow& row : rows) {
    if (row.level != level) continue;
    ++count;
    const search::MultiOutcome& there = row.trial.outcome;
    failed += search::feasible(there) ? 0 : 1;
    const search::Objectives& model = models.at(row.trial.point)->trial.outcome.objectives;
    if (!there.objectives.empty() && !model.empty())
      excess.push_back(100 * (there.objectives[objective] / model[objective] - 1));
  }
  std::string text = fmt::format("{} of {} designs", level, count);
  if (!excess.empty()) {
    const double most = *std::max_element(
        excess.begin(), excess.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    text += fmt::format(": {} {:+.2f} % against the model in the mean, {:+.2f} % at most", name,
                        mean_excess(excess), most);
  }
  return text + fmt::format("; {} of them infeasible there", failed);
}

}  // namespace

std::optional<ToCheck> next_to_check(const std::vector<StudyRow>& rows,
                                     const std::vector<Fidelity>& levels) {
  std::string below = codesign::kModelLevel;
  for (size_t i = 0; i < levels.size(); ++i) {
    if (auto next = next_at(rows, below, levels[i])) return ToCheck{*std::move(next), i};
    below = levels[i].level.name;
  }
  return std::nullopt;
}

std::vector<std::string> level_summaries(const SearchResult& result,
                                         const std::vector<std::string>& objectives) {
  std::map<search::Point, const StudyRow*> models;
  for (const StudyRow& row : result.rows) models[row.trial.point] = &row;
  std::vector<std::string> lines;
  for (const codesign::Level& level : higher_levels()) {
    if (std::none_of(result.checked.begin(), result.checked.end(),
                     [&](const StudyRow& row) { return row.level == level.name; }))
      continue;
    // What the level knows better, if it is an objective.
    const auto area = std::find(objectives.begin(), objectives.end(), "area");
    const size_t at =
        level.area && area != objectives.end() ? static_cast<size_t>(area - objectives.begin()) : 0;
    lines.push_back(summary_of(result.checked, level.name, models, at, objectives[at]));
  }
  return lines;
}

}  // namespace tilewright::driver
