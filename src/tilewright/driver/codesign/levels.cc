#include "tilewright/driver/codesign/levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "tilewright/codesign/tsim/tsim.h"

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

double mean_excess(const std::vector<double>& excess) {
  double sum = 0;
  for (const double one : excess) sum += one;
  return sum / static_cast<double>(excess.size());
}

}  // namespace

Result<Fidelity> parse_fidelity(const std::string& text) {
  Fidelity fidelity{codesign::tsim_level(), 0};
  const size_t colon = text.find(':');
  const char* end = text.data() + text.size();
  if (colon != text.npos && text.substr(0, colon) == fidelity.level.name) {
    const auto [at, error] = std::from_chars(text.data() + colon + 1, end, fidelity.count);
    if (error == std::errc() && at == end && fidelity.count > 0) return fidelity;
  }
  return fail(ErrorKind::Usage, fmt::format("--fidelity '{}' is not LEVEL:COUNT", text),
              "the level is tsim, the count of designs at least 1", "--fidelity tsim:8");
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

std::optional<FrontPoint> next_to_check(const std::vector<StudyRow>& rows,
                                        const Fidelity& fidelity) {
  std::vector<FrontPoint> front = front_of(rows);
  const std::vector<double> distance = knee_distances(front);
  std::vector<size_t> order;
  for (size_t i = 0; i < front.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return distance[a] < distance[b]; });
  for (size_t i = 0; i < std::min(fidelity.count, order.size()); ++i)
    if (front[order[i]].level != fidelity.level.name) return front[order[i]];
  return std::nullopt;
}

std::string level_summary(const SearchResult& result, const std::string& objective) {
  std::map<search::Point, const StudyRow*> models;
  for (const StudyRow& row : result.rows) models[row.trial.point] = &row;
  std::vector<double> excess;  // in percent
  size_t failed = 0;
  for (const StudyRow& row : result.checked) {
    const search::MultiOutcome& there = row.trial.outcome;
    failed += search::feasible(there) ? 0 : 1;
    const search::Objectives& model = models.at(row.trial.point)->trial.outcome.objectives;
    if (!there.objectives.empty() && !model.empty())
      excess.push_back(100 * (there.objectives[0] / model[0] - 1));
  }
  std::string text =
      fmt::format("{} of {} designs", result.checked[0].level, result.checked.size());
  if (!excess.empty()) {
    const double most = *std::max_element(
        excess.begin(), excess.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    text += fmt::format(": {} {:+.2f} % against the model in the mean, {:+.2f} % at most",
                        objective, mean_excess(excess), most);
  }
  return text + fmt::format("; {} of them infeasible there", failed);
}

}  // namespace tilewright::driver
