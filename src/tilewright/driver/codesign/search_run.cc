#include "tilewright/driver/codesign/search_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/parallel.h"
#include "tilewright/codesign/unmatched.h"
#include "tilewright/driver/codesign/levels.h"
#include "tilewright/driver/codesign/mapping_options.h"
#include "tilewright/driver/codesign/report.h"
#include "tilewright/driver/console.h"
#include "tilewright/runtime/thread_pool.h"

namespace tilewright::driver {
namespace {

std::vector<std::string> names(const codesign::Goals& goals) {
  std::vector<std::string> texts;
  for (const codesign::Objective objective : goals.objectives)
    texts.emplace_back(codesign::name(objective));
  return texts;
}

std::string short_hash(const std::string& text) { return sha256(text).substr(0, 16); }

}  // namespace

codesign::StudyKey study_key(const SearchSubject& subject, const tune::MappingSearch& mapping) {
  std::vector<std::string> limits;
  for (const codesign::Limit& limit : subject.goals.limits)
    limits.push_back(fmt::format("{}={}", codesign::name(limit.objective), to_string(limit)));
  codesign::StudyKey key{{"model", subject.digest.substr(0, 16)},
                         {"space", fmt::format("{}, {} points, {}", subject.space.file().name,
                                               subject.space.points().size(),
                                               short_hash(fingerprint(subject.space.file())))},
                         {"technology", subject.space.file().technology.name},
                         {"objectives", fmt::format("{}", fmt::join(names(subject.goals), ","))},
                         {"limits", fmt::format("{}", fmt::join(limits, ","))},
                         {"model of costs", std::to_string(codesign::kModelVersion)}};
  if (!is_plain(mapping)) key["mapper"] = describe(mapping);
  return key;
}

namespace {

nlohmann::ordered_json row_json(size_t number, const codesign::StudyRow& row,
                                const std::vector<std::string>& objectives) {
  nlohmann::ordered_json json;
  json["number"] = number;
  json["level"] = row.level;
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
  std::string lines, csv = fmt::format("number,{},level\n", fmt::join(objectives, ","));
  std::map<search::Point, size_t> numbers;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    numbers[result.rows[i].trial.point] = i + 1;
    lines += json_text(row_json(i + 1, result.rows[i], objectives)) + "\n";
  }
  for (const codesign::StudyRow& row : result.checked)
    lines += json_text(row_json(numbers[row.trial.point], row, objectives)) + "\n";
  for (const FrontPoint& point : result.front)
    csv += fmt::format("{},{},{}\n", point.number, fmt::join(point.objectives, ","), point.level);
  TW_TRY_STATUS(write_file(folder + "/points.jsonl", lines));
  TW_TRY_STATUS(write_file(folder + "/front.csv", csv));
  return write_file(folder + "/report.html", search_page(subject, result));
}

}  // namespace

Status check_subject(const SearchSubject& subject) {
  if (const codesign::Generator& generator = *subject.space.file().generator; !generator.judged())
    return fail(ErrorKind::Unsupported,
                fmt::format("there is no model of what designs of {} cost", generator.name()), {},
                "--space edge, cloud or vta; `codesign space` lists the designs of this one");
  TW_TRY_STATUS(codesign::check_matches(codesign::units_of(subject.space), subject.workload));
  for (const std::string& unit : codesign::idle_units(subject.space, subject.workload))
    say(fmt::format("note: {} can run no layer of '{}'; its designs are left out", unit,
                    subject.workload.name));
  return {};
}

Status make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorKind::Io, fmt::format("cannot make '{}'", folder), error.message());
  return {};
}

std::vector<search::MultiOutcome> evaluate_designs(const SearchSubject& subject,
                                                   codesign::DesignEvaluator& evaluator,
                                                   const std::vector<search::Point>& points) {
  std::vector<codesign::Hardware> designs;
  std::vector<double> memory;  // in KiB
  for (const search::Point& point : points) {
    designs.push_back(subject.space.hardware(point));
    const codesign::Parts parts(designs.back());
    memory.push_back(parts.scratchpad_kb() + parts.local_kb);
  }
  // Mappings for large memories often are the best for smaller ones too.
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return memory[a] > memory[b]; });
  std::vector<search::MultiOutcome> outcomes(points.size());
  for_each_part(points.size(), runtime::default_threads(), [&](size_t i, size_t) {
    const size_t at = order[i];
    outcomes[at] = codesign::outcome(evaluator.evaluate(designs[at]), subject.goals.objectives,
                                     subject.goals.limits);
  });
  return outcomes;
}

namespace {

/// Points of a warm start at most.
constexpr size_t kWarm = 8;

/// Designs worth building by another search of the same space, nearest to its knee first. errors:
/// Io, Package (no study, another space).
Result<std::vector<search::Point>> warm_points(const SearchSubject& subject,
                                               const std::string& folder,
                                               const codesign::StudyKey& key) {
  const codesign::Study other = TW_TRY(codesign::Study::open_to_read(folder + "/study.sqlite"));
  const auto of_space = [](const codesign::StudyKey& all) {
    const auto found = all.find("space");
    return codesign::StudyKey{{"space", found == all.end() ? "" : found->second}};
  };
  const std::string differ = codesign::differences(of_space(key), of_space(TW_TRY(other.key())));
  if (!differ.empty())
    return fail(ErrorKind::Package, fmt::format("'{}' holds a search of another space", folder),
                differ, "leave --warm out");
  std::vector<FrontPoint> front = front_of(TW_TRY(other.rows()));
  const std::vector<double> distances = knee_distances(front);
  std::vector<size_t> order(front.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return distances[a] < distances[b]; });
  std::vector<search::Point> points;
  const auto useful = codesign::useful_points(subject.space, subject.workload);
  for (const size_t i : order)
    if (points.size() < kWarm && useful(front[i].point)) points.push_back(front[i].point);
  return points;
}

std::string points_hash(const std::vector<search::Point>& points) {
  std::string text;
  for (const search::Point& point : points) text += fmt::format("{}\n", fmt::join(point, " "));
  return short_hash(text);
}

/// The default design of the kind that the space is of.
codesign::Hardware default_hardware(const codesign::DesignSpace& space) {
  return std::visit(
      [](const auto& unit) { return codesign::Hardware(std::decay_t<decltype(unit)>()); },
      codesign::units_of(space)[0]);
}

/// One search, from whatever its study holds to its end. What comes next depends on the rows alone.
class DesignSearch {
 public:
  DesignSearch(const SearchSubject& subject, const SearchSettings& settings, codesign::Study study,
               std::vector<search::Point> warm, codesign::LayerMapper mapper)
      : subject_(subject),
        settings_(settings),
        study_(std::move(study)),
        warm_(std::move(warm)),
        evaluator_(subject.workload, subject.space.file().technology, std::move(mapper)) {}

  Result<SearchResult> run() {
    rows_ = TW_TRY(study_.rows());
    if (!rows_.empty()) say(fmt::format("going on after {} evaluations", rows_.size()));
    if (!settings_.fidelity.empty()) levels_ = TW_TRY(parse_fidelity(settings_.fidelity));
    SearchResult result;
    while (true) {
      const size_t before = rows_.size(), lost = broken(rows_);
      // As many again at most: a level that fails on every design would never end.
      const int wanted = evaluations() + std::min(static_cast<int>(lost), evaluations());
      if (model_rows(rows_).size() < static_cast<size_t>(wanted))
        result.stop = TW_TRY(search_to(wanted, result.skipped));
      const bool ended = result.stop == search::Stop::Interrupted;
      if (ended || levels_.empty() || rows_.size() == before) {
        const auto next = ended ? std::nullopt : next_to_check(rows_, levels_);
        if (!next) break;
        TW_TRY_STATUS(check(*next));
        if (interrupted()) result.stop = search::Stop::Interrupted;
      }
      if (result.stop == search::Stop::Interrupted) break;
    }
    result.rows = model_rows(rows_);
    result.checked = checked_rows(rows_);
    result.level = highest_level(rows_);
    result.front = front_at(rows_, result.level);
    result.of_default = codesign::outcome(evaluator_.evaluate(default_hardware(subject_.space)),
                                          subject_.goals.objectives, {})
                            .objectives;
    result.fresh = fresh_;
    return result;
  }

 private:
  int evaluations() const {
    constexpr int kDefault = 40;  // as many as HASCO's paper gives a search (its Table II)
    const bool all = settings_.method == "enumerate";
    const auto points = static_cast<int>(std::min(1e9, subject_.space.points().size()));
    return settings_.evaluations ? settings_.evaluations : all ? points : kDefault;
  }

  Result<search::Stop> search_to(int evaluations, size_t& skipped) {
    search::MultiOptions options;
    options.seed = settings_.seed;
    options.acquisition = search::acquisition_named(settings_.acquisition);
    const auto searcher = TW_TRY(search::multi_searcher(
        settings_.method, codesign::make_problem(subject_.space, evaluator_, subject_.goals),
        options));
    std::vector<search::MultiTrial> earlier;
    for (const codesign::StudyRow& row : model_rows(rows_)) earlier.push_back(row.trial);
    searcher->tell(earlier);
    Status stored;
    search::MultiBudget budget;
    budget.evaluations = evaluations;
    budget.interrupted = [&] { return interrupted() || !stored; };
    budget.progress = [&](const std::vector<search::MultiTrial>& trials) {
      if (stored) stored = add(trials, codesign::kModelLevel);
      progress_.update(static_cast<int64_t>(searcher->trials().size()), evaluations, "designs");
    };
    // Only `enumerate` knows what it wants next without the results before.
    constexpr int kAtOnce = 256;
    if (settings_.method == "enumerate") budget.batch = kAtOnce;
    constexpr double kMany = 1e5;  // points that a model looks at in some seconds
    if (const double points = subject_.space.points().size();
        points > kMany && points <= options.list_up_to && settings_.method == "ours")
      say(fmt::format("looking at all {:.0f} points of the space first", points));
    evaluate_warm(*searcher, budget);
    const search::Stop stop = search::run(
        *searcher,
        [&](const std::vector<search::Point>& points) {
          return evaluate_designs(subject_, evaluator_, points);
        },
        budget);
    TW_TRY_STATUS(std::move(stored));
    skipped = searcher->skipped();
    return stop;
  }

  /// Points of the warm start come before all others, as many as the budget has room for.
  void evaluate_warm(search::MultiSearcher& searcher, const search::MultiBudget& budget) {
    const size_t most = std::min(warm_.size(), static_cast<size_t>(budget.evaluations));
    for (const search::Point& point : warm_) {
      if (searcher.tried(point)) continue;
      if (searcher.trials().size() >= most || budget.interrupted()) return;
      const search::MultiTrial trial{point, evaluate_designs(subject_, evaluator_, {point})[0], 0};
      searcher.tell({trial});
      budget.progress({trial});
    }
  }

  /// A level judges what those below it, from the model on, say of the design.
  Status check(const ToCheck& next) {
    const search::Point& point = next.design.point;
    const codesign::Hardware hardware = subject_.space.hardware(point);
    Result<codesign::DesignResult> result = evaluator_.evaluate(hardware);
    for (size_t i = 0; result && i <= next.level; ++i)
      result = codesign::at_level(levels_[i].level, evaluator_, hardware, *result);
    // A tool that Ctrl-C ended says nothing of the design: the next run looks again.
    if (!result && result.error().kind == ErrorKind::Interrupted) return {};
    search::MultiTrial trial{point, {}, 0};
    if (result)
      trial.outcome = codesign::outcome(*result, subject_.goals.objectives, subject_.goals.limits);
    else
      trial.outcome.reason = to_string(result.error());
    return add({trial}, levels_[next.level].level.name);
  }

  Status add(const std::vector<search::MultiTrial>& trials, const std::string& level) {
    std::vector<codesign::StudyRow> rows;
    for (const search::MultiTrial& trial : trials)
      rows.push_back({trial, codesign::to_toml(subject_.space.hardware(trial.point)), level});
    TW_TRY_STATUS(study_.add(rows));
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    if (level == codesign::kModelLevel) fresh_ += rows.size();
    return {};
  }

  const SearchSubject& subject_;
  const SearchSettings& settings_;
  codesign::Study study_;
  std::vector<search::Point> warm_;
  std::vector<Fidelity> levels_;
  codesign::DesignEvaluator evaluator_;
  std::vector<codesign::StudyRow> rows_;
  size_t fresh_ = 0;
  Progress progress_{"codesign"};
};

/// `enumerate` lists all points first. errors: Capacity, with what an evaluation here takes.
Status check_size(const SearchSubject& subject, const SearchSettings& settings) {
  const double points = subject.space.points().size(), most = search::MultiOptions().list_up_to;
  if (settings.method != "enumerate" || points <= most) return {};
  std::optional<search::Point> legal;
  subject.space.for_each([&](const search::Point& point) {
    if (subject.space.legal(point)) legal = point;
    return !legal;
  });
  const auto start = std::chrono::steady_clock::now();
  if (legal)
    codesign::DesignEvaluator(subject.workload, subject.space.file().technology)
        .evaluate(subject.space.hardware(*legal));
  const std::chrono::duration<double> one = std::chrono::steady_clock::now() - start;
  const int threads = runtime::default_threads();
  return fail(
      ErrorKind::Capacity,
      fmt::format("space {} is too large to enumerate", subject.space.file().name),
      fmt::format("{:.0f} points, at most {:.0f}; one evaluation takes {:.2g} s here, all of "
                  "them on {} threads about {:.1f} days",
                  points, most, one.count(), threads, one.count() * points / threads / 86400),
      "fix some parameters, or another --method");
}

}  // namespace

Result<SearchResult> search_designs(const SearchSubject& subject, const SearchSettings& settings,
                                    const std::string& folder,
                                    const std::function<Status()>& opened) {
  TW_TRY_STATUS(check_subject(subject));
  TW_TRY_STATUS(check_size(subject, settings));
  if (!settings.fidelity.empty())
    TW_TRY_STATUS(
        check_levels(TW_TRY(parse_fidelity(settings.fidelity)), subject.space.file().technology));
  codesign::StudyKey key = study_key(subject, settings.mapping);
  std::vector<search::Point> warm;
  if (!settings.warm.empty()) {
    warm = TW_TRY(warm_points(subject, settings.warm, key));
    key["warm start"] = points_hash(warm);
  }
  TW_TRY_STATUS(make_folder(folder));
  codesign::Study study = TW_TRY(codesign::Study::open(folder + "/study.sqlite", key));
  if (opened) TW_TRY_STATUS(opened());
  const SearchResult result =
      TW_TRY(DesignSearch(subject, settings, std::move(study), std::move(warm),
                          TW_TRY(layer_mapper(settings.mapping)))
                 .run());
  TW_TRY_STATUS(write_exports(subject, result, folder));
  return result;
}

}  // namespace tilewright::driver
