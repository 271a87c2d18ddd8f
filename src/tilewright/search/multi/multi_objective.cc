#include "tilewright/search/multi/multi_objective.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tilewright/base/check.h"
#include "tilewright/base/names.h"
#include "tilewright/search/multi/methods.h"

namespace tilewright::search {
namespace {

using Make = std::unique_ptr<MultiSearcher> (*)(MultiProblem problem, const MultiOptions& options);

struct MethodRow {
  const char* name;
  Make make;
  bool needs_prior = false, needs_list = false;
};

constexpr MethodRow kMultiMethods[] = {
    {"random", multi_random},
    {"nsga2", nsga2},
    {"mobo", mobo},
    {"ours", multi_prior, true},
    {"enumerate", multi_enumerate, false, true},
};

bool positive(const Objectives& objectives) {
  return std::all_of(objectives.begin(), objectives.end(),
                     [](double value) { return value > 0 && std::isfinite(value); });
}

}  // namespace

void MultiSearcher::tell(const std::vector<MultiTrial>& trials) {
  for (const MultiTrial& trial : trials) {
    if (!tried_.insert(trial.point).second) continue;
    MultiTrial known = trial;
    MultiOutcome& outcome = known.outcome;
    if (!positive(outcome.objectives)) {
      outcome.objectives.clear();
      if (outcome.reason.empty()) outcome.reason = "an objective is not a positive number";
    }
    if (outcome.objectives.empty()) {
      outcome.violations.clear();
    } else {
      TW_CHECK(outcome.objectives.size() == problem_.objectives, "{} objectives, expected {}",
               outcome.objectives.size(), problem_.objectives);
      TW_CHECK(outcome.violations.size() == problem_.limits, "{} limits, expected {}",
               outcome.violations.size(), problem_.limits);
    }
    trials_.push_back(std::move(known));
  }
}

std::optional<Acquisition> acquisition_named(std::string_view name) {
  if (name == "hvpi") return Acquisition::Hvpi;
  if (name == "ehvi") return Acquisition::Ehvi;
  return std::nullopt;
}

const std::vector<std::string>& multi_methods() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const MethodRow& row : kMultiMethods) all.emplace_back(row.name);
    return all;
  }();
  return names;
}

Result<std::unique_ptr<MultiSearcher>> multi_searcher(const std::string& method,
                                                      MultiProblem problem,
                                                      const MultiOptions& options) {
  const auto row = std::find_if(std::begin(kMultiMethods), std::end(kMultiMethods),
                                [&](const MethodRow& known) { return method == known.name; });
  if (row == std::end(kMultiMethods))
    return fail(ErrorKind::Usage, fmt::format("there is no search method '{}'", method), {},
                did_you_mean(method, multi_methods()));
  if (row->needs_prior && !problem.prior.at)
    return fail(ErrorKind::Usage, fmt::format("the method '{}' needs a prior", method));
  if (row->needs_list && problem.space.size() > options.list_up_to)
    return fail(
        ErrorKind::Capacity, fmt::format("the space is too large for '{}'", method),
        fmt::format("{:.0f} points, at most {:.0f}", problem.space.size(), options.list_up_to));
  return row->make(std::move(problem), options);
}

Stop run(MultiSearcher& searcher, const MultiEvaluate& evaluate, const MultiBudget& budget) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (true) {
    if (budget.interrupted && budget.interrupted()) return Stop::Interrupted;
    const int left = budget.evaluations - static_cast<int>(searcher.trials().size());
    if (left <= 0) return Stop::Trials;
    if (elapsed() >= budget.seconds) return Stop::Time;
    const std::vector<Point> points = searcher.propose(std::clamp(budget.batch, 1, left));
    if (points.empty()) return Stop::Exhausted;
    const std::vector<MultiOutcome> outcomes = evaluate(points);
    TW_CHECK(outcomes.size() == points.size(), "{} points, {} outcomes", points.size(),
             outcomes.size());
    std::vector<MultiTrial> batch;
    for (size_t i = 0; i < points.size(); ++i) batch.push_back({points[i], outcomes[i], elapsed()});
    searcher.tell(batch);
    if (budget.progress) budget.progress(batch);
  }
}

}  // namespace tilewright::search
