#include "tilewright/driver/codesign/search_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tilewright/base/file.h"
#include "tilewright/base/parallel.h"
#include "tilewright/driver/codesign/mapping_options.h"
#include "tilewright/driver/codesign/report.h"
#include "tilewright/driver/console.h"
#include "tilewright/runtime/thread_pool.h"
#include "tilewright/search/multi/hypervolume.h"

namespace tilewright::driver {
namespace {

std::vector<std::string> names(const codesign::Goals& goals) {
  std::vector<std::string> texts;
  for (const codesign::Objective objective : goals.objectives)
    texts.emplace_back(codesign::name(objective));
  return texts;
}

Result<codesign::StudyKey> key_of(const SearchSubject& subject,
                                  const tune::MappingSearch& mapping) {
  std::vector<std::string> limits;
  for (const codesign::Limit& limit : subject.goals.limits)
    limits.push_back(fmt::format("{}={}", codesign::name(limit.objective), to_string(limit)));
  codesign::StudyKey key{{"model", sha256(TW_TRY(read_file(subject.model_path))).substr(0, 16)},
                         {"space", fmt::format("{}, {} points", subject.space.file().name,
                                               subject.space.points().size())},
                         {"technology", subject.space.file().technology.name},
                         {"objectives", fmt::format("{}", fmt::join(names(subject.goals), ","))},
                         {"limits", fmt::format("{}", fmt::join(limits, ","))},
                         {"model of costs", std::to_string(codesign::kModelVersion)}};
  if (!is_plain(mapping)) key["mapper"] = describe(mapping);
  return key;
}

nlohmann::ordered_json row_json(size_t number, const codesign::StudyRow& row,
                                const std::vector<std::string>& objectives) {
  nlohmann::ordered_json json;
  json["number"] = number;
  const search::MultiOutcome& outcome = row.trial.outcome;
  for (size_t i = 0; i < outcome.objectives.size(); ++i)
    json[objectives[i]] = outcome.objectives[i];
  json["feasible"] = search::feasible(outcome);
  if (!outcome.reason.empty()) json["reason"] = outcome.reason;
  json["seconds"] = row.trial.seconds;
  json["design"] = row.design;
  return json;
}

Status write_exports(const SearchSubject& subject, const SearchResult& result,
                     const std::string& folder) {
  const std::vector<std::string> objectives = names(subject.goals);
  std::string lines, csv = fmt::format("number,{}\n", fmt::join(objectives, ","));
  for (size_t i = 0; i < result.rows.size(); ++i)
    lines += row_json(i + 1, result.rows[i], objectives).dump() + "\n";
  for (const FrontPoint& point : result.front)
    csv += fmt::format("{},{}\n", point.number, fmt::join(point.objectives, ","));
  TW_TRY_STATUS(write_file(folder + "/points.jsonl", lines));
  TW_TRY_STATUS(write_file(folder + "/front.csv", csv));
  return write_file(folder + "/report.html", search_page(subject, result));
}

/// Each thread has an evaluator.
std::vector<search::MultiOutcome> evaluate_all(const SearchSubject& subject,
                                               std::vector<codesign::DesignEvaluator>& evaluators,
                                               const std::vector<search::Point>& points) {
  std::vector<search::MultiOutcome> outcomes(points.size());
  for_each_part(points.size(), static_cast<int>(evaluators.size()), [&](size_t i, size_t thread) {
    outcomes[i] = codesign::outcome(evaluators[thread].evaluate(subject.space.design(points[i])),
                                    subject.goals.objectives, subject.goals.limits);
  });
  return outcomes;
}

}  // namespace

std::vector<FrontPoint> front_of(const std::vector<codesign::StudyRow>& rows) {
  std::vector<FrontPoint> feasible;
  std::vector<search::Objectives> objectives;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!search::feasible(rows[i].trial.outcome)) continue;
    objectives.push_back(rows[i].trial.outcome.objectives);
    feasible.push_back({i + 1, objectives.back(), rows[i].design});
  }
  std::vector<FrontPoint> front;
  for (const size_t i : search::pareto_front(objectives)) front.push_back(std::move(feasible[i]));
  std::sort(front.begin(), front.end(), [](const FrontPoint& a, const FrontPoint& b) {
    return std::pair(a.objectives[0], a.number) < std::pair(b.objectives[0], b.number);
  });
  return front;
}

size_t knee_of(const std::vector<FrontPoint>& front) {
  std::vector<search::Objectives> points;
  for (const FrontPoint& point : front) points.push_back(point.objectives);
  const search::ObjectiveScale scale = search::ObjectiveScale::of(points);
  size_t best = 0;
  double least = HUGE_VAL;
  for (size_t i = 0; i < points.size(); ++i) {
    double square = 0;
    for (const double z : scale(points[i])) square += z * z;
    if (square < least) least = square, best = i;
  }
  return best;
}

Result<SearchResult> search_designs(const SearchSubject& subject, const SearchSettings& settings,
                                    const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorKind::Io, fmt::format("cannot make '{}'", folder), error.message());
  codesign::Study study = TW_TRY(
      codesign::Study::open(folder + "/study.sqlite", TW_TRY(key_of(subject, settings.mapping))));

  std::vector<codesign::DesignEvaluator> evaluators(
      static_cast<size_t>(runtime::default_threads()),
      codesign::DesignEvaluator(subject.workload, subject.space.file().technology,
                                TW_TRY(layer_mapper(settings.mapping))));
  search::MultiOptions options;
  options.seed = settings.seed;
  options.acquisition = search::acquisition_named(settings.acquisition);
  const auto searcher = TW_TRY(search::multi_searcher(
      settings.method, codesign::make_problem(subject.space, evaluators[0], subject.goals),
      options));
  SearchResult result;
  result.rows = TW_TRY(study.rows());
  std::vector<search::MultiTrial> earlier;
  for (const codesign::StudyRow& row : result.rows) earlier.push_back(row.trial);
  searcher->tell(earlier);
  if (!earlier.empty()) say(fmt::format("going on after {} evaluations", earlier.size()));

  Progress progress("codesign");
  Status stored;
  search::MultiBudget budget;
  budget.evaluations = settings.evaluations;
  budget.interrupted = [&] { return interrupted() || !stored; };
  budget.progress = [&](const std::vector<search::MultiTrial>& trials) {
    for (const search::MultiTrial& trial : trials) {
      codesign::StudyRow row{trial, to_toml(subject.space.design(trial.point))};
      if (stored) stored = study.add(row);
      result.rows.push_back(std::move(row));
      ++result.fresh;
    }
    progress.update(static_cast<int64_t>(result.rows.size()), settings.evaluations, "designs");
  };
  // Only `enumerate` knows what it wants next without the results before.
  if (settings.method == "enumerate") budget.batch = static_cast<int>(evaluators.size());
  const auto evaluate = [&](const std::vector<search::Point>& points) {
    return evaluate_all(subject, evaluators, points);
  };
  result.stop = run(*searcher, evaluate, budget);
  TW_TRY_STATUS(std::move(stored));
  result.front = front_of(result.rows);
  TW_TRY_STATUS(write_exports(subject, result, folder));
  return result;
}

}  // namespace tilewright::driver
