// codesign: accelerators of the family `spatial` for a model, found by search and judged by a model
// of time, energy and area.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/codesign/unmatched.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/codesign/choices_report.h"
#include "tilewright/driver/codesign/contest_report.h"
#include "tilewright/driver/codesign/eval_run.h"
#include "tilewright/driver/codesign/goals.h"
#include "tilewright/driver/codesign/levels.h"
#include "tilewright/driver/codesign/mapping_options.h"
#include "tilewright/driver/codesign/picked_design.h"
#include "tilewright/driver/codesign/report.h"
#include "tilewright/driver/codesign/search_inputs.h"
#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

using Rows = std::vector<std::vector<std::string>>;
using codesign::Objective;

constexpr const char* kStudyFile = "/study.sqlite";

struct CodesignOptions {
  SubjectOptions subject;
  int order = 0;
  bool no_package = false;
  std::string command;  ///< as typed
  std::string space = "edge", design, study, pick = "knee", level, output;
  std::string objectives = "latency,power,area", intrinsics = "gemm,gemv,dot,conv2d";
  std::vector<std::string> limits;
  std::string methods = "random,nsga2,mobo,mobo:ehvi,ours", budgets = "10,20,40";
  SearchSettings search;
  ContestSettings contest;
  EvalSettings eval;
};

Result<codesign::Workload> workload_of(const CodesignOptions& options) {
  return joined_workload(TW_TRY(codesign_subjects(options.subject)), options.order);
}

// --- codesign space

Result<int> describe_space(const CodesignOptions& options, bool as_json) {
  const codesign::DesignSpace space = TW_TRY(codesign::load_space(options.space));
  const codesign::SpaceFile& file = space.file();
  const std::optional<int64_t> legal = space.legal_points();
  nlohmann::ordered_json json = document("codesign.space");
  json["name"] = file.name;
  json["technology"] = file.technology.name;
  json["points"] = space.points().size();
  if (legal) json["legal"] = *legal;
  Rows rows = {{"parameter", "values", "which"}};
  for (const search::Decision& decision : space.points().decisions()) {
    std::vector<std::string> values;
    for (const search::DecisionValue& value : decision.values) values.push_back(value.text);
    json["parameters"][decision.name] = values;
    rows.push_back(
        {decision.name, std::to_string(values.size()), fmt::format("{}", fmt::join(values, " "))});
  }
  for (const codesign::Limit& limit : file.limits) {
    const std::string name(codesign::name(limit.objective));
    json["limits"][name] = to_string(limit);
    rows.push_back({"limit", "", fmt::format("{} at most {}", name, to_string(limit))});
  }
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("{}: {}\ntechnology {}; {} points{}\n\n{}", file.name, file.about,
             file.technology.name, space.points().size(),
             legal ? fmt::format(", {} of them legal", *legal) : "", table(rows));
  return 0;
}

// --- codesign choices

/// The default design with one of its units.
Result<spatial::Design> design_of_unit(const std::string& name) {
  constexpr spatial::Unit kUnits[] = {spatial::Unit::Gemm, spatial::Unit::Gemv, spatial::Unit::Dot,
                                      spatial::Unit::Conv2d};
  std::vector<std::string> known;
  for (const spatial::Unit unit : kUnits) {
    known.emplace_back(spatial::name(unit));
    if (known.back() != name) continue;
    spatial::Design design;
    design.unit = unit;
    design.links = spatial::usual_links(unit);
    return design;
  }
  return fail(ErrorKind::Usage, fmt::format("there is no unit '{}'", name),
              fmt::format("--intrinsics takes {}", fmt::join(known, ", ")),
              did_you_mean(name, known));
}

/// One design per unit; with a file, its sizes and its unit alone.
Result<std::vector<spatial::Design>> designs_of(const CodesignOptions& options) {
  if (!options.design.empty())
    return std::vector{
        TW_TRY(spatial::read_design(TW_TRY(read_file(options.design)), options.design))};
  std::vector<spatial::Design> designs;
  for (const std::string& name : words_of(options.intrinsics))
    designs.push_back(TW_TRY(design_of_unit(name)));
  return designs;
}

Result<int> choices_verb(const CodesignOptions& options, bool as_json) {
  const std::vector<spatial::Design> designs = TW_TRY(designs_of(options));
  nlohmann::ordered_json json = document("codesign.choices");
  for (const CodesignSubject& subject : TW_TRY(codesign_subjects(options.subject))) {
    const SubjectReport report = TW_TRY(choices_report(subject, designs, !options.design.empty()));
    if (as_json)
      json["subjects"].push_back(to_json(report, designs));
    else
      fmt::print("{}\n", to_text(report, designs));
  }
  if (as_json) print_json(json);
  return 0;
}

// --- codesign search, codesign front

/// `12 345 678` cycles would be as wide; four digits are enough to compare designs.
std::string short_number(double value) { return fmt::format("{:.4g}", value); }

/// A search prints about so many designs of a front: a longer table hides what was said before.
constexpr size_t kFewRows = 40;

/// As text each `apart`th design, the last one and the knee; as JSON all.
void print_front(const std::vector<FrontPoint>& front,
                 const std::vector<codesign::Objective>& objectives,
                 const std::optional<codesign::Technology>& technology, bool as_json,
                 size_t apart) {
  nlohmann::ordered_json json = document("codesign.front");
  const bool levels = std::any_of(front.begin(), front.end(), [](const FrontPoint& point) {
    return point.level != codesign::kModelLevel;
  });
  Rows rows = {{"number"}};
  for (const codesign::Objective objective : objectives)
    rows[0].push_back(technology ? objective_axis(objective, *technology)
                                 : std::string(codesign::name(objective)));
  if (levels) rows[0].emplace_back("level");
  rows[0].emplace_back("");
  const size_t knee = front.empty() ? 0 : knee_of(front);
  for (size_t i = 0; i < front.size(); ++i) {
    nlohmann::ordered_json point;
    point["number"] = front[i].number;
    std::vector<std::string> row = {std::to_string(front[i].number)};
    for (size_t j = 0; j < objectives.size(); ++j) {
      point[codesign::name(objectives[j])] = front[i].objectives[j];
      row.push_back(short_number(front[i].objectives[j]));
    }
    if (levels) row.push_back(front[i].level);
    row.emplace_back(i == knee ? "knee" : "");
    if (i % apart == 0 || i == knee || i + 1 == front.size()) rows.push_back(std::move(row));
    point["level"] = front[i].level;
    point["knee"] = i == knee;
    json["front"].push_back(std::move(point));
  }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
}

/// What came nearest to the limits, and by how much it misses them.
tl::unexpected<Error> nothing_feasible(const std::vector<codesign::StudyRow>& rows,
                                       const std::vector<codesign::Limit>& limits,
                                       const codesign::DesignSpace& space) {
  size_t nearest = 0;
  for (size_t i = 1; i < rows.size(); ++i)
    if (search::dominates(rows[i].trial.outcome, rows[nearest].trial.outcome)) nearest = i;
  std::string why = fmt::format("{} designs were evaluated", rows.size());
  if (!rows.empty()) {
    const search::MultiOutcome& outcome = rows[nearest].trial.outcome;
    const std::vector<double>& over = outcome.violations;
    std::vector<std::string> misses;
    for (size_t l = 0; l < over.size(); ++l)
      if (over[l] > 0)
        misses.push_back(fmt::format("{} is {:.3g} times its limit of {}",
                                     codesign::name(limits[l].objective), std::pow(10.0, over[l]),
                                     to_string(limits[l])));
    if (misses.empty()) misses.push_back(outcome.reason);
    why += fmt::format("; number {} ({}) comes nearest: {}", nearest + 1,
                       space.points().text(rows[nearest].trial.point), fmt::join(misses, ", "));
  }
  return fail(ErrorKind::Capacity, "no design that was evaluated meets all limits", why,
              "another --space, a looser --limit, or more --evaluations");
}

SearchInputs inputs_of(const CodesignOptions& options) {
  SearchInputs inputs{options.subject, options.order, options.space, options.search.mapping};
  inputs.mapping.seed = options.search.seed;
  return inputs;
}

std::string folder_of(const CodesignOptions& options, std::string name) {
  if (!options.output.empty()) return options.output;
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

Result<int> search_verb(const CodesignOptions& options, bool as_json) {
  const std::string& method = options.search.method;
  if (!options.search.acquisition.empty() && method != "mobo" && method != "ours")
    return fail(ErrorKind::Usage, fmt::format("--acquisition is not for --method {}", method),
                "only mobo and ours choose designs by what an acquisition says of them",
                "leave one of them out");
  const SearchInputs inputs = inputs_of(options);
  SearchSubject subject = TW_TRY(load_search(inputs));
  subject.goals = TW_TRY(parse_goals(options.objectives, options.limits, subject.space));
  const std::string folder = folder_of(options, subject.workload.name + "-codesign");
  SearchSettings settings = options.search;
  settings.mapping = inputs.mapping;
  const SearchResult result = TW_TRY(
      search_designs(subject, settings, folder, [&] { return write_inputs(inputs, folder); }));
  if (result.front.empty())
    return nothing_feasible(result.rows, subject.goals.limits, subject.space);
  const std::vector<std::string> objectives = words_of(options.objectives);
  const size_t apart = (result.front.size() + kFewRows - 1) / kFewRows;
  print_front(result.front, subject.goals.objectives, subject.space.file().technology, as_json,
              apart);
  if (apart > 1 && !as_json)
    say(fmt::format("one in {} designs of the front is shown; `codesign front {}` lists all", apart,
                    folder));
  if (result.skipped)
    say(fmt::format("{} designs more cannot be better: bounds prove it", result.skipped));
  for (const std::string& line : level_summaries(result, objectives)) say(line);
  say(fmt::format("{} designs evaluated, {} of them in this run; {} are on the front; all in {}/",
                  result.rows.size(), result.fresh, result.front.size(), folder));
  return result.stop == search::Stop::Interrupted ? 130 : 0;
}

Result<int> front_verb(const CodesignOptions& options, bool as_json) {
  const codesign::Study study = TW_TRY(codesign::Study::open_to_read(options.study + kStudyFile));
  codesign::StudyKey key = TW_TRY(study.key());
  const std::vector<std::string> objectives = words_of(key["objectives"]);
  const std::vector<codesign::StudyRow> rows = TW_TRY(study.rows());
  const std::string level = options.level.empty() ? highest_level(rows) : options.level;
  const std::vector<FrontPoint> front = front_at(rows, level);
  if (front.empty())
    return fail(ErrorKind::Capacity, "no design that was evaluated meets all limits",
                fmt::format("limits: {}; level: {}", key["limits"], level),
                "search on with more --evaluations");
  if (options.level.empty() && level != codesign::kModelLevel)
    say(
        fmt::format("note: these are the designs that {} judged; --level {} shows the front by the "
                    "model, whose figures do not compare with them",
                    level, codesign::kModelLevel));
  const size_t pick = TW_TRY(picked(options.pick, front, objectives));
  if (options.output.empty()) {
    print_front(front, TW_TRY(goals_of(key)).objectives,
                technology_of(options.study, key["technology"]), as_json, 1);
    return 0;
  }
  const PickedOutput output{options.output, options.command, options.no_package};
  TW_TRY_STATUS(write_picked(options.study, front[pick], key, output));
  return 0;
}

// --- codesign contest

Result<std::vector<int>> parse_budgets(const std::string& text) {
  std::vector<int> budgets;
  for (const std::string& word : words_of(text)) {
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 4 || value > 10000)
      return fail(ErrorKind::Usage,
                  fmt::format("--evaluations '{}' is no number of 4 to 10000", word), {},
                  "--evaluations 10,20,40");
    budgets.push_back(value);
  }
  return budgets;
}

Result<int> contest_verb(const CodesignOptions& options, bool as_json) {
  ContestSettings settings = options.contest;
  settings.methods = words_of(options.methods);
  settings.evaluations = TW_TRY(parse_budgets(options.budgets));
  SearchSubject subject = TW_TRY(load_search(inputs_of(options)));
  subject.goals = TW_TRY(parse_goals(options.objectives, options.limits, subject.space));
  const std::string folder = folder_of(options, subject.workload.name + "-contest");
  print_contest(TW_TRY(run_contest(subject, settings, folder)), settings, subject.goals.objectives,
                as_json);
  return 0;
}

// --- codesign eval

Result<int> eval_verb(const CodesignOptions& options, bool as_json) {
  EvalSettings settings = options.eval;
  settings.design = options.design;
  settings.mapping = options.search.mapping;
  settings.mapping.seed = options.search.seed;
  return run_eval(TW_TRY(workload_of(options)), settings, as_json);
}

// --- command line

/// `run/` is the folder `run`: names of files in it have one slash.
std::string without_slash(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

/// What the actions of the verb have in common while they are declared.
struct Actions {
  Verb verb;
  VerbContext& context;
  std::shared_ptr<CodesignOptions> options;

  Verb add(const char* name, const char* says, Result<int> (*run)(const CodesignOptions&, bool)) {
    Verb action = verb.add_verb(name, says);
    action.callback([&context = context, options = options, run] {
      options->command = context.command;
      for (std::string* folder : {&options->output, &options->study, &options->search.warm})
        *folder = without_slash(*folder);
      context.action = [&context, options, run] { return run(*options, context.json); };
    });
    return action;
  }
};

void add_goals(Verb action, CodesignOptions& options) {
  action.add_option("--objectives", options.objectives,
                    "latency, power, peak_power, area, energy, edp (default latency,power,area)");
  action.add_option("--limit", options.limits, "at most: power=2W, latency=10ms, area=40%");
}

void add_order(Verb action, CodesignOptions& options) {
  action
      .add_option("--order", options.order,
                  "of a product of three or more factors: the order of contraction that `choices` "
                  "gives this number")
      .in_range(1, 1000);
}

void add_space(Verb action, CodesignOptions& options) {
  action.add_option("--space", options.space, "a built-in name or .toml (default edge)");
}

void add_choices(Actions& actions) {
  CodesignOptions& options = *actions.options;
  Verb choices =
      actions.add("choices", "Every way in which a unit can do each layer", choices_verb);
  add_model_options(choices, options.subject, true);
  choices.add_option("--intrinsics", options.intrinsics,
                     "units, of gemm, gemv, dot, conv2d (default: all)");
  choices.add_option("--design", options.design,
                     "a design.toml: its unit, sizes, predicted cycles");
  choices.excludes("--design", "--intrinsics");
}

void add_search(Actions& actions) {
  CodesignOptions& options = *actions.options;
  Verb search =
      actions.add("search", "Searches a space for the designs worth building", search_verb);
  add_model_options(search, options.subject, true);
  add_order(search, options);
  add_space(search, options);
  search.add_option("-o,--output", options.output, "folder (default NAME-codesign)");
  add_goals(search, options);
  search.add_option("--method", options.search.method, "how to search (default ours)")
      .one_of(search::multi_methods());
  search.add_option("--acquisition", options.search.acquisition, "of mobo and ours")
      .one_of({"hvpi", "ehvi"});
  search
      .add_option("--evaluations", options.search.evaluations,
                  "designs to evaluate (default 40, of enumerate all)")
      .in_range(1, 1e9);
  search.add_option("--seed", options.search.seed, "of what is drawn");
  search.add_option("--fidelity", options.search.fidelity,
                    "tsim:8,synth:4: the cycle simulator looks at the best 8 designs of the "
                    "front, Yosys at the best 4 of these");
  search.add_option("--warm", options.search.warm,
                    "folder of a search of the same space: its best designs come first");
  add_mapping_options(search, options.search.mapping);
}

void add_front(Actions& actions) {
  CodesignOptions& options = *actions.options;
  Verb front =
      actions.add("front", "The designs that no other beats; with -o, one of them", front_verb);
  front.add_option("study", options.study, "folder of a search").required();
  front.add_option("--pick", options.pick, "knee, min:latency, ..., or a number (default knee)");
  front.add_option("-o,--output", options.output,
                   "folder for the design: hw.toml, technology.toml, rtl/, NAME.twm, report.html");
  front
      .add_option("--level", options.level,
                  "whose figures: model, tsim or synth (default: of what judged most exactly)")
      .one_of({codesign::kModelLevel, "tsim", "synth"});
  front.add_flag("--no-package", options.no_package, "leave NAME.twm, the compiled model, out");
  front.needs("--pick", "--output");
  front.needs("--no-package", "--output");
}

void add_contest(Actions& actions) {
  CodesignOptions& options = *actions.options;
  Verb contest =
      actions.add("contest", "Evaluates a whole space, then replays searches on it", contest_verb);
  add_model_options(contest, options.subject, true);
  add_order(contest, options);
  add_space(contest, options);
  contest.add_option("-o,--output", options.output,
                     "folder that keeps the evaluations (default NAME-contest)");
  add_goals(contest, options);
  contest.add_option("--methods", options.methods, "default random,nsga2,mobo,mobo:ehvi,ours");
  contest.add_option("--evaluations", options.budgets, "of a search (default 10,20,40)");
  contest.add_option("--seeds", options.contest.seeds, "runs of each (default 20)")
      .in_range(1, 10000);
}

void add_eval(Actions& actions) {
  CodesignOptions& options = *actions.options;
  Verb eval = actions.add("eval", "Time, energy and mapping of each layer on a design", eval_verb);
  eval.add_option("design", options.design, "design.toml").required();
  add_model_options(eval, options.subject, true);
  add_order(eval, options);
  eval.add_option(
      "--technology", options.eval.technology,
      "what energies and areas are: asic45, hasco-fpga, maestro28 or FILE.toml (default: "
      "technology.toml beside the design, which `codesign front` writes; else asic45)");
  eval.add_option("--seed", options.search.seed, "of what a mapper draws");
  add_mapping_options(eval, options.search.mapping);
  eval.add_option("--map", options.eval.maps,
                  "a layer's mapping, judged as it is: `LAYER: LINE`, or a file of such lines")
      .one_value();
  eval.add_flag("--mappings", options.eval.print_mappings,
                "print the mappings alone, as --map takes them");
}

}  // namespace

void add_codesign(Verb app, VerbContext& context) {
  Verb verb = app.add_verb(
      "codesign", "Designs accelerators for a model: which can be built, and which are best");
  verb.needs_action();
  Actions actions{verb, context, std::make_shared<CodesignOptions>()};
  actions.add("space", "Parameters of a space of designs, points, legal ones", describe_space)
      .add_option("space", actions.options->space, "a built-in name or .toml")
      .required();
  add_choices(actions);
  add_search(actions);
  add_front(actions);
  add_contest(actions);
  add_eval(actions);
}

}  // namespace tilewright::driver
