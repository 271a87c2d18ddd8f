// tune: searches schedules for the kernels of models and operators, and keeps what it measures.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tilewright/base/names.h"
#include "tilewright/compile/conv_record.h"
#include "tilewright/compile/fpga/backend.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/amount.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/report/roof.h"
#include "tilewright/driver/report/tune_report.h"
#include "tilewright/driver/report/why_stopped.h"
#include "tilewright/driver/tuning/launch_tuning.h"
#include "tilewright/driver/tuning/record_place.h"
#include "tilewright/driver/tuning/tune_run.h"
#include "tilewright/driver/verbs/tune_launches.h"
#include "tilewright/records/open/open.h"
#include "tilewright/tune/methods.h"

namespace tilewright::driver {
namespace {

constexpr double kDefaultSeconds = 60;
constexpr DType kOperandTypes[] = {DType::F32, DType::BF16, DType::F16, DType::I16, DType::I8};

struct TuneVerb {
  TuneSettings settings;
  std::string budget, stall, report, dtypes;
  int64_t trials = 0;
  bool dry_run = false;
};

/// `2%` or `0.02`.
Result<double> parse_share(const std::string& text) {
  const auto amount = TW_TRY(parse_amount("--until-stall", text, "2%"));
  const double share = amount.second == "%" ? amount.first / 100 : amount.first;
  if ((!amount.second.empty() && amount.second != "%") || share >= 1)
    return fail(ErrorKind::Usage, fmt::format("--until-stall '{}' is no share", text), {},
                "--until-stall 2%");
  return share;
}

Status set_budget(TuneVerb& verb) {
  TuneSettings& settings = verb.settings;
  if (!verb.budget.empty()) settings.seconds = TW_TRY(parse_seconds("--for", verb.budget));
  if (!verb.stall.empty()) settings.stall_gain = TW_TRY(parse_share(verb.stall));
  if (verb.trials > 0) settings.trials = verb.trials;
  if (verb.budget.empty() && verb.stall.empty() && verb.trials == 0)
    settings.seconds = kDefaultSeconds;
  return {};
}

/// What would be tuned, and how large the spaces are.
Result<int> list_tasks(const TuneRun& run, bool as_json) {
  nlohmann::ordered_json json = document("tune");
  std::vector<std::vector<std::string>> rows = {
      {"task", "uses", fmt::format("expected {}", run.unit()), "space", "points"}};
  for (const tune::TunerTask& task : run.tuner().tasks()) {
    const double points = task.space->space().size();
    json["tasks"].push_back({{"name", task.task.name},
                             {"workload", task.task.key()},
                             {"uses", task.task.uses},
                             {"expected_ns", task.expected},
                             {"points", points}});
    rows.push_back({label_of(task), std::to_string(task.task.uses),
                    fmt::format("{:.1f}", task.expected / 1e3), task.space_name,
                    fmt::format("{:.4g}", points)});
  }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

/// What a run came to, all kernels together.
struct Tally {
  int64_t tried = 0, faster = 0;  ///< kernels: with trials of this run; with a faster schedule now
  /// Time of all kernels in use with a known limit, and that limit. units: ns
  double best = 0, limit = 0;
  std::string most;  ///< the kernel with most time above its limit
  double most_best = 0, most_limit = 0;
};

Tally tally_of(const TuneRun& run) {
  Tally tally;
  for (size_t i = 0; i < run.tuner().tasks().size(); ++i) {
    const tune::TunerTask& task = run.tuner().tasks()[i];
    const Verdict& verdict = run.verdicts()[i];
    tally.tried += !run.tuner().states()[i].trials.empty();
    tally.faster += verdict.better;
    const std::optional<Roof> roof = roof_of(task.task);
    if (task.spare || !verdict.known || !roof || roof->limit() <= 0) continue;
    const auto uses = static_cast<double>(task.task.uses);
    const double best = uses * verdict.record.cost;
    const double limit = std::min(best, uses * roof->limit());
    tally.best += best;
    tally.limit += limit;
    if (best - limit > tally.most_best - tally.most_limit)
      tally.most = label_of(task), tally.most_best = best, tally.most_limit = limit;
  }
  return tally;
}

std::string reason_of(const TuneRun& run) {
  return why_stopped(run.stop(), run.settings(),
                     fmt::format("every schedule of {}", fmt::join(run.spaces(), " and ")));
}

/// What was tried, why it ended, and what the machine would still allow.
void print_summary(const TuneRun& run) {
  const Tally tally = tally_of(run);
  const size_t kernels = run.tuner().tasks().size();
  if (run.tuner().trials() == 0) {
    fmt::print("nothing was tried: {}; getting ready took {:.0f} s\n", reason_of(run),
               run.prepared_seconds());
    if (run.stop() == search::Stop::Time)
      fmt::print("give it more time: --for {:.0f}s\n",
                 std::ceil(std::max(60.0, 6 * run.prepared_seconds())));
    return;
  }
  fmt::print("tried {} schedule{} of {} of {} kernel{} in {:.1f} s: {} faster than the default\n",
             run.tuner().trials(), run.tuner().trials() == 1 ? "" : "s", tally.tried, kernels,
             kernels == 1 ? "" : "s", run.elapsed(), tally.faster);
  fmt::print("stopped because {}\n", reason_of(run));
  if (const fleet::RemoteMeasurer* fleet = run.fleet()) {
    fmt::print("measured on {} device{} of class {}\n", fleet->used().size(),
               fleet->used().size() == 1 ? "" : "s", fleet->on().device_class);
    if (record_place("").name != run.fleet_url())
      fmt::print("what was found is in the fleet's store: compile --store {}\n", run.fleet_url());
  }
  if (tally.limit > 0 && tally.most.empty()) {
    fmt::print("left to gain: nothing by the limits of the machine\n");
  } else if (tally.limit > 0) {
    fmt::print(
        "left to gain: at most {:.2f}x by the limits of the machine; most in {}: {:.1f} of {:.1f} "
        "{}\n",
        tally.best / tally.limit, tally.most, (tally.most_best - tally.most_limit) / 1e3,
        tally.most_best / 1e3, run.unit());
  }
}

nlohmann::ordered_json task_json(const tune::TunerTask& task, const tune::TaskState& state,
                                 const Verdict& verdict) {
  nlohmann::ordered_json json = {
      {"name", task.task.name},       {"step", task.step},
      {"workload", task.task.key()},  {"uses", task.task.uses},
      {"space", task.space_name},     {"points", task.space->space().size()},
      {"tried", state.trials.size()}, {"resumed", state.resumed}};
  for (const auto& [kind, count] : state.outcomes)
    json["outcomes"][std::string(to_string(kind))] = count;
  if (!state.problem.empty()) json["problem"] = state.problem;
  if (!verdict.known) return json;
  json["untuned_ns"] = verdict.rule_cost;
  json["tuned_ns"] = verdict.record.cost;
  json["better"] = verdict.better;
  json["point"] = verdict.record.point;
  json["schedule"] = verdict.record.schedule;
  return json;
}

nlohmann::ordered_json run_json(const TuneRun& run) {
  nlohmann::ordered_json json = document("tune");
  json["seconds"] = run.elapsed();
  json["stop"] = stop_name(run.stop());
  json["limit_hit"] = run.stop() == search::Stop::Time || run.stop() == search::Stop::Trials;
  json["trials"] = run.tuner().trials();
  if (const fleet::RemoteMeasurer* fleet = run.fleet())
    json["worker"] = {{"class", fleet->on().device_class}, {"devices", fleet->used()}};
  const TakenOver& taken = run.taken_over();
  if (taken.started > 0 || taken.taught > 0)
    json["transfer"] = {
        {"started", taken.started}, {"taught", taken.taught}, {"samples", taken.samples}};
  json["proposals"] = run.proposals_hash();
  const Tally tally = tally_of(run);
  json["kernels_tried"] = tally.tried;
  json["kernels_faster"] = tally.faster;
  json["seconds_before_search"] = run.prepared_seconds();
  if (tally.limit > 0) json["left"] = {{"best_ns", tally.best}, {"limit_ns", tally.limit}};
  for (const ModelGain& gain : run.gains())
    json["models"].push_back({{"name", gain.name},
                              {"untuned_ns", gain.before},
                              {"tuned_ns", gain.after},
                              {"measured_whole", gain.raced},
                              {"in_race_ns", gain.in_race}});
  for (size_t i = 0; i < run.tuner().tasks().size(); ++i)
    json["tasks"].push_back(
        task_json(run.tuner().tasks()[i], run.tuner().states()[i], run.verdicts()[i]));
  each_form(run.plan(), [&](const ConvForms& conv, bool won) {
    json["forms"].push_back({{"conv", compile::conv_text(conv.conv)},
                             {"rule", compile::form_name(conv.rule)},
                             {"other", compile::form_name(conv.other)},
                             {"rule_ns", conv.before},
                             {"other_ns", conv.after},
                             {"won", won}});
  });
  if (!run.settings().output.empty()) json["package"] = run.settings().output;
  return json;
}

/// The three most frequent reasons why candidates failed, of this run and, where it had none, of
/// those before it.
std::vector<std::string> main_reasons(const TuneRun& run) {
  std::map<std::string, int64_t> counts;
  for (size_t i = 0; i < run.tuner().tasks().size(); ++i) {
    for (const auto& [reason, count] : run.tuner().states()[i].reasons) counts[reason] += count;
    if (run.tuner().states()[i].trials.empty())
      for (const records::Record& record : run.tuner().tasks()[i].known)
        if (record.outcome != "ok") ++counts[record.reason];
  }
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [reason, count] : counts) sorted.emplace_back(-count, reason);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min<size_t>(3, sorted.size()); ++i)
    lines.push_back(fmt::format("{} candidate{}: {}", -sorted[i].first,
                                sorted[i].first == -1 ? "" : "s", sorted[i].second));
  return lines;
}

void print_result(const TuneRun& run) {
  std::vector<std::vector<std::string>> rows = {{"task", "uses", "tried", "ok",
                                                 fmt::format("untuned {}", run.unit()),
                                                 fmt::format("tuned {}", run.unit()), "gain"}};
  int64_t bad = 0;
  for (size_t i = 0; i < run.tuner().tasks().size(); ++i) {
    const tune::TunerTask& task = run.tuner().tasks()[i];
    const tune::TaskState& state = run.tuner().states()[i];
    const Verdict& verdict = run.verdicts()[i];
    for (const auto& [reason, count] : state.reasons) bad += count;
    if (!state.problem.empty()) say(fmt::format("warning: {}: {}", label_of(task), state.problem));
    if (!verdict.known) continue;
    const auto ok = state.outcomes.find(measure::OutcomeKind::Ok);
    rows.push_back(
        {label_of(task), std::to_string(task.task.uses), std::to_string(state.trials.size()),
         std::to_string(ok == state.outcomes.end() ? 0 : ok->second),
         fmt::format("{:.4g}", verdict.rule_cost / 1e3),
         fmt::format("{:.4g}", verdict.record.cost / 1e3),
         fmt::format("{:.2f}x",
                     verdict.record.cost > 0 ? verdict.rule_cost / verdict.record.cost : 1.0)});
  }
  fmt::print("{}", table(rows));
  for (const ModelGain& gain : run.gains())
    fmt::print("{}: {:.4g} {} -> {:.4g} {} ({:.3f}x{})\n", gain.name, gain.before / 1e6,
               run.large_unit(), gain.after / 1e6, run.large_unit(),
               gain.after > 0 ? gain.before / gain.after : 1.0,
               gain.raced ? ", the whole model, measured in turn" : "");
  each_form(run.plan(), [](const ConvForms& conv, bool won) {
    if (won)
      fmt::print("{}: {} instead of {} ({:.2f}x)\n", compile::conv_text(conv.conv),
                 compile::form_name(conv.other), compile::form_name(conv.rule),
                 conv.before / conv.after);
  });
  print_summary(run);
  if (10 * bad > 9 * run.tuner().trials() && bad > 0)
    for (const std::string& reason : main_reasons(run)) say(reason);
}

/// Devices of a fleet measure code whose time is time.
Status check_worker(const TuneSettings& settings, const hw::Target& target) {
  const hw::GpuTarget* gpu = target.gpu();
  const bool timed = target.cpu() != nullptr || (gpu && gpu->language == hw::GpuLanguage::OpenCl);
  if (settings.remote.workers.empty() || timed) return {};
  return fail(ErrorKind::Unsupported,
              fmt::format("code for {} is not tuned on devices of a fleet", target.name),
              tuning_target(target).simulated
                  ? "its simulator counts the same cycles on every machine"
                  : "records of CUDA name an architecture, classes of devices do not",
              "leave out --worker");
}

/// `f32,i8`; each once.
Result<std::vector<DType>> parse_dtypes(const std::string& text) {
  std::vector<DType> dtypes;
  std::vector<std::string> known;
  for (const DType dtype : kOperandTypes) known.emplace_back(name(dtype));
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    at = comma + 1;
    if (std::find(known.begin(), known.end(), word) == known.end())
      return fail(ErrorKind::Usage, fmt::format("--dtypes: '{}' is no type of operands", word),
                  fmt::format("these are {}", fmt::join(known, ", ")), did_you_mean(word, known));
    const DType dtype = *parse_dtype(word);
    if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) dtypes.push_back(dtype);
  }
  return dtypes;
}

/// What only some targets take.
Status check_choices(const TuneSettings& settings, const hw::Target& target) {
  if (!settings.dtypes.empty() && tuning_target(target).in_type == nullptr)
    return fail(ErrorKind::Usage, fmt::format("--dtypes is not for {}", target.name),
                "the types of a program are part of what it computes there",
                fmt::format("--target {}", compile::kFpgaTarget));
  if (settings.method == kExhaustive && tuning_target(target).launches == nullptr)
    return fail(ErrorKind::Usage,
                fmt::format("kernels for {} are not searched by '{}'", target.name, kExhaustive),
                "measuring every schedule would not end",
                fmt::format("the methods are {}", fmt::join(tune::search_methods(), ", ")));
  return {};
}

/// A space in which no schedule is possible is no result. errors: NotApplicable, with what rules
/// them out.
Status check_possible(const TuneRun& run) {
  if (run.stop() != search::Stop::Exhausted) return {};
  for (const tune::TaskState& state : run.tuner().states())
    if (!state.finalists.empty() || !state.problem.empty()) return {};
  return fail(
      ErrorKind::NotApplicable,
      fmt::format("no schedule of {} is possible", fmt::join(run.spaces(), " and ")),
      fmt::format("{}", fmt::join(main_reasons(run), "\n")),
      run.settings().space.empty() ? "" : "change what rules them out, or leave out --space");
}

Result<int> tune(TuneVerb verb, const VerbContext& context) {
  TW_TRY_STATUS(set_budget(verb));
  TuneSettings& settings = verb.settings;
  settings.command = context.command;
  settings.dry = verb.dry_run;
  TW_TRY_STATUS(check_outputs({{settings.output, verb.report}, {}}, input_files(settings.subject),
                              context.json));
  TW_TRY_STATUS(check_paths(settings.subject));
  const hw::Target target = TW_TRY(target_of(settings.subject));
  TW_TRY_STATUS(check_tunable(target));
  TW_TRY_STATUS(check_worker(settings, target));
  if (!verb.dtypes.empty()) settings.dtypes = TW_TRY(parse_dtypes(verb.dtypes));
  TW_TRY_STATUS(check_choices(settings, target));
  if (tuning_target(target).launches != nullptr)
    return tune_launches(settings, verb.report, context);
  TuneRun run(settings);
  TW_TRY_STATUS(run.prepare());
  TW_TRY_STATUS(run.open());
  if (verb.dry_run) return list_tasks(run, context.json);
  TW_TRY_STATUS(run.search());
  TW_TRY_STATUS(check_possible(run));
  TW_TRY_STATUS(run.decide());
  if (!verb.report.empty()) TW_TRY_STATUS(write_tune_report(verb.report, run));
  context.json ? print_json(run_json(run)) : print_result(run);
  return run.interrupted() ? 130 : 0;
}

}  // namespace

void add_tune(Verb app, VerbContext& context) {
  Verb verb = app.add_verb(
      "tune", "Searches faster schedules; compile, run, bench and verify use what it finds");
  auto options = std::make_shared<TuneVerb>();
  TuneSettings& settings = options->settings;
  add_compile_options(verb, settings.subject, true);
  add_records_option(verb, settings.subject);  // where it keeps what it finds
  add_calibrate_option(verb, settings.subject);
  verb.add_option(
      "--for", options->budget,
      "time for all of it: 90s, 10m (default 60s; none with --trials or --until-stall)");
  verb.add_option("--trials", options->trials, "candidates to measure, of all kernels together")
      .in_range(int64_t{1}, int64_t{1} << 40);
  verb.add_option("--until-stall", options->stall, "stop once that much is not gained any more");
  std::vector<std::string> methods = tune::search_methods();
  methods.emplace_back(kExhaustive);
  verb.add_option("--method", settings.method,
                  "how to search (exhaustive: FPGA, the model's best designs of all)")
      .one_of(methods);
  verb.add_option("--dtypes", options->dtypes,
                  "FPGA: types of a program's operands, each searched: f32,bf16,f16,i16,i8");
  verb.add_option("--space", settings.space,
                  "constructive, tiling or FILE.sketch (default: constructive, then tiling)");
  verb.add_option("--measure", settings.measure, "device, model or replay:FILE");
  verb.add_option("--worker", settings.remote.workers,
                  "measure on all devices of the fleet that fit: cpu:znver4, name=DEVICE, tag=TAG");
  add_waiting_options(verb, settings.remote);
  verb.add_option("--transfer", settings.transfer,
                  "what to take over from kernels alike: model (default), points, none")
      .one_of({"model", "points", "none"});
  verb.add_flag("--dry-run", options->dry_run, "list the kernels and their spaces");
  verb.add_option("--report", options->report, "HTML page of the run");
  verb.add_option("-o,--output", settings.output, "package with the schedules found");
  verb.callback([&context, options] {
    context.action = [&context, options] { return tune(*options, context); };
  });
}

}  // namespace tilewright::driver
