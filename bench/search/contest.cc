#include "contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "tilewright/cost/boosted_trees.h"
#include "tilewright/cost/loop_features.h"
#include "tilewright/cost/loop_tree_model.h"
#include "tilewright/records/workload.h"
#include "tilewright/search/searchers.h"
#include "tilewright/tune/methods.h"
#include "tilewright/tune/transfer.h"

namespace tilewright::bench {
namespace {

using search::Point;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What `read` sees of the program that a point means, remembered.
search::Features program_features(const tune::ScheduleSpace& space, const measure::Task& task,
                                  std::vector<double> (*read)(const Func&)) {
  const auto known = std::make_shared<std::map<Point, std::vector<double>>>();
  return [&space, &task, read, known](const Point& point) {
    std::vector<double>& features = (*known)[point];
    if (!features.empty()) return features;
    const auto trace = space.trace(point);
    const auto scheduled = trace ? schedule::replay(task.func, *trace) : Result<Func>(task.func);
    return features = read(scheduled ? *scheduled : task.func);
  };
}

using Made = Result<std::unique_ptr<search::Searcher>>;

/// Those of the structure of `task`, the nearest first, as many as `tune` takes.
std::vector<const Teacher*> alike(const std::vector<Teacher>& teachers, const measure::Task& task) {
  constexpr size_t kPrograms = 6;
  std::multimap<double, const Teacher*> near;
  const std::string text = records::workload_text(task.func);
  for (const Teacher& teacher : teachers)
    if (const auto apart = tune::shape_distance(text, records::workload_text(teacher.program.func)))
      near.emplace(*apart, &teacher);
  std::vector<const Teacher*> taken;
  for (const auto& [apart, teacher] : near)
    if (taken.size() < kPrograms) taken.push_back(teacher);
  return taken;
}

bool is_taught(const std::string& method) { return method.ends_with("-taught"); }

/// What a method tries first: the best points of its teachers in turn, the nearest first, and what
/// all methods try.
std::vector<Point> first_points(const std::string& method, const search::Space& space,
                                const std::vector<const Teacher*>& teachers,
                                std::vector<Point> of_all) {
  if (!is_taught(method) || teachers.empty()) return of_all;
  constexpr size_t kFirst = 4;  // as many as `tune` begins with
  std::vector<Point> points;
  for (size_t rank = 0; rank < kFirst; ++rank)
    for (const Teacher* teacher : teachers) {
      if (rank >= teacher->points.size() || points.size() == kFirst) continue;
      Point point = tune::nearest_point(space, teacher->points[rank]);
      if (std::find(points.begin(), points.end(), point) == points.end())
        points.push_back(std::move(point));
    }
  points.insert(points.end(), of_all.begin(), of_all.end());
  return points;
}

Made make(const std::string& method, const tune::ScheduleSpace& space, const measure::Task& task,
          uint64_t seed, const std::vector<const Teacher*>& teachers) {
  if (is_taught(method)) {
    std::vector<tune::KnownProgram> known;
    for (const Teacher* teacher : teachers) known.push_back(teacher->program);
    return tune::make_searcher(method.substr(0, method.rfind('-')), space, task, seed, known);
  }
  search::ModelGuidedOptions options;
  if (method == "tree" || method == "xgb") {
    // What a point's program looks like takes milliseconds to find out: fewer and shorter chains.
    options.chains = 32, options.steps = 8;
  }
  if (method == "tree") {
    options.features = program_features(space, task, cost::loop_tree);
    cost::LoopTreeOptions how;
    how.seed = seed;
    return search::model_searcher(space.space(), seed, cost::loop_tree_model(how), options);
  }
  if (method.starts_with("xgb")) {
    cost::BoostedTreesOptions trees;
    trees.seed = seed, trees.rank = method != "xgb-cost";
    if (method == "xgb") options.features = program_features(space, task, cost::loop_features);
    return search::model_searcher(space.space(), seed, TW_TRY(cost::boosted_trees(trees)), options);
  }
  return tune::make_searcher(method, space, task, seed);
}

/// Lets one method search, on a clock of its own: what it thinks, and what its trials took when
/// they were measured.
class Clocked {
 public:
  Clocked(const tune::ScheduleSpace& space, Judge& judge, bool by_model, Run& run)
      : space_(space), judge_(judge), by_model_(by_model), run_(run), since_(now()) {}

  std::vector<search::Evaluation> evaluate(const std::vector<Point>& points) {
    const double thought = now() - since_;
    run_.thinking += thought, clock_ += thought;
    const std::vector<search::Evaluation> outcomes = by_model_ ? predict(points) : measure(points);
    for (const search::Evaluation& outcome : outcomes) {
      run_.costs.push_back(outcome.cost);
      run_.seconds.push_back(clock_);
    }
    since_ = now();
    return outcomes;
  }
  double clock() const { return clock_; }

 private:
  std::vector<search::Evaluation> predict(const std::vector<Point>& points) const {
    std::vector<search::Evaluation> outcomes;
    for (const Point& point : points)
      outcomes.push_back({space_.prior(point) / judge_.rule_ns(), ""});
    return outcomes;
  }

  std::vector<search::Evaluation> measure(const std::vector<Point>& points) {
    std::vector<schedule::Trace> traces;
    std::vector<search::Evaluation> outcomes(points.size());
    std::vector<size_t> valid;
    for (size_t i = 0; i < points.size(); ++i) {
      auto trace = space_.trace(points[i]);
      if (!trace)
        outcomes[i].reason = "invalid";
      else
        traces.push_back(std::move(*trace)), valid.push_back(i);
    }
    const std::vector<Verdict> verdicts = judge_.judge(traces);
    for (size_t v = 0; v < valid.size(); ++v) {
      outcomes[valid[v]] = {verdicts[v].cost, verdicts[v].reason};
      clock_ += verdicts[v].seconds;
    }
    return outcomes;
  }

  const tune::ScheduleSpace& space_;
  Judge& judge_;
  bool by_model_;
  Run& run_;
  double since_, clock_ = 0;
};

std::vector<Point> warm_up_points(const search::Space& space, int count, uint64_t seed) {
  Rng rng(1000 + seed);
  std::vector<Point> points;
  for (int i = 0; i < 100 * count && points.size() < static_cast<size_t>(count); ++i) {
    Point point = space.random(rng);
    if (std::find(points.begin(), points.end(), point) == points.end())
      points.push_back(std::move(point));
  }
  return points;
}

size_t index_of(const Run& run, double cost, double share) {
  size_t i = 0;
  while (i < run.costs.size() && !(cost / run.costs[i] >= share)) ++i;
  return i;
}

}  // namespace

double Contest::oracle() const {
  double least = search::kInvalid;
  for (const Run& run : runs)
    for (const double cost : run.costs) least = std::min(least, cost);
  return least;
}

size_t trials_to(const Run& run, double cost, double share) {
  const size_t i = index_of(run, cost, share);
  return i < run.costs.size() ? i + 1 : 0;
}

double seconds_to(const Run& run, double cost, double share) {
  const size_t i = index_of(run, cost, share);
  return i < run.costs.size() ? run.seconds[i] : search::kInvalid;
}

Result<Teacher> taught_by(const measure::Task& task, const tune::ScheduleSpace& space,
                          const std::string& method, int trials) {
  constexpr size_t kSchedules = 48, kPoints = 4;  // as many as `tune` takes of a program
  const auto searcher = TW_TRY(tune::make_searcher(method, space, task, 1));
  search::Budget budget;
  budget.trials = trials;
  search::run(
      *searcher,
      [&](const std::vector<Point>& points) {
        std::vector<search::Evaluation> outcomes;
        for (const Point& point : points) outcomes.push_back({space.prior(point), ""});
        return outcomes;
      },
      budget);
  Teacher teacher{{task.name, task.func, {}}, {}};
  const std::vector<size_t> order =
      searcher->history().cheapest(searcher->history().trials().size());
  const size_t count = std::min(order.size(), kSchedules);
  for (size_t i = 0; i < count; ++i) {
    const search::Trial& trial =
        searcher->history()
            .trials()[order[i * (order.size() - 1) / std::max<size_t>(count - 1, 1)]];
    if (auto trace = space.trace(trial.point))
      teacher.program.measured.emplace_back(*std::move(trace), trial.outcome.cost);
  }
  for (size_t i = 0; i < std::min(order.size(), kPoints); ++i)
    teacher.points.push_back(space.space().text(searcher->history().trials()[order[i]].point));
  return teacher;
}

Result<Contest> hold_contest(const measure::Task& task, const std::string& space_name,
                             const tune::ScheduleSpace& space, Judge& judge,
                             const ContestOptions& options) {
  Contest contest{task.name,       space_name,      space.space().size(),
                  judge.rule_ns(), options.trials,  options.warm_up,
                  options.seconds, options.methods, {}};
  const std::vector<const Teacher*> teachers = alike(options.teachers, task);
  // Seeds outside, so that a contest that is stopped has as many of each method.
  for (int seed = 1; seed <= options.seeds; ++seed)
    for (const std::string& method : options.methods) {
      const auto s = static_cast<uint64_t>(seed);
      Run& run = contest.runs.emplace_back(Run{method, s, {}, {}, 0});
      const auto searcher = TW_TRY(make(method, space, task, s, teachers));
      Clocked clocked(space, judge, options.by_model, run);
      search::Budget budget;
      budget.trials = options.trials, budget.batch = options.batch;
      budget.interrupted = [&] { return clocked.clock() >= options.seconds; };
      search::run(
          *searcher, [&](const std::vector<Point>& points) { return clocked.evaluate(points); },
          budget,
          first_points(method, space.space(), teachers,
                       warm_up_points(space.space(), options.warm_up, s)));
      double best = search::kInvalid;
      for (const search::Trial& trial : searcher->history().trials())
        if (trial.outcome.cost < best) {
          best = trial.outcome.cost;
          if (const auto trace = space.trace(trial.point)) run.trace = schedule::print(*trace);
        }
      fmt::print(stderr, "{} {} seed {}: {} trials, best {:.3f} of the rule's, thought {:.1f} s\n",
                 task.name, method, seed, run.costs.size(), best, run.thinking);
    }
  return contest;
}

}  // namespace tilewright::bench
