// inspect, explain: looking inside packages and kernels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/json.h"
#include "tilewright/compile/backends.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/report/explain_analysis.h"
#include "tilewright/driver/report/explain_gpu.h"
#include "tilewright/driver/report/explain_sass.h"
#include "tilewright/driver/report/rule_report.h"
#include "tilewright/driver/subject.h"
#include "tilewright/graph/partition/memory.h"
#include "tilewright/graph/partition/traffic.h"
#include "tilewright/ir/text.h"

namespace tilewright::driver {
namespace {

/// What the back-ends say of a package's launches.
Result<std::vector<compile::LaunchSummary>> summaries(const runtime::Package& package) {
  std::vector<compile::LaunchSummary> all;
  for (const auto& [name, info] : package.program().launches)
    if (const compile::Backend* backend = compile::find_backend(info.device))
      all.push_back(TW_TRY(backend->runtime().summary(name, package.launch_code(name))));
  return all;
}

Result<int> inspect(const std::string& path, bool verify_weights, bool as_json) {
  runtime::OpenOptions options;
  options.load_code = false;
  options.verify_weights = verify_weights;
  const auto package = TW_TRY(runtime::Package::open(path, options));
  const runtime::Program& program = package->program();
  nlohmann::ordered_json json = document("inspect");
  json["manifest"] = parse_ordered_json(runtime::to_json(program));
  std::vector<std::vector<std::string>> members = {{"member", "bytes", "sha256"}};
  for (const runtime::PackageMember& member : package->members()) {
    members.push_back(
        {member.name, std::to_string(member.bytes.size()), member.sha256.substr(0, 16)});
    json["members"].push_back(
        {{"name", member.name}, {"bytes", member.bytes.size()}, {"sha256", member.sha256}});
  }
  const std::vector<compile::LaunchSummary> launches = TW_TRY(summaries(*package));
  for (const compile::LaunchSummary& launch : launches)
    if (!launch.list.empty()) json[launch.list].push_back(launch.json);
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("{}\ntarget {} ({}), math {}\n", table(members), program.target.name,
             program.target.cpu, program.math);
  for (const compile::LaunchSummary& launch : launches)
    if (!launch.line.empty()) fmt::print("{}\n", launch.line);
  fmt::print("arena {} bytes (lower bound {}), weights {} bytes\n", program.arena_bytes,
             program.arena_lower_bound, program.weights_bytes);
  for (const auto& [key, value] : program.notes) fmt::print("{}: {}\n", key, value);
  std::vector<std::vector<std::string>> steps = {{"step", "callee", "output"}};
  for (const runtime::StepSpec& step : program.steps) {
    const runtime::ValueSpec& out = program.values[step.args.back()];
    steps.push_back({step.name,
                     !step.kernel.empty()   ? step.kernel
                     : !step.launch.empty() ? step.launch
                                            : step.host,
                     fmt::format("{} {}", name(out.dtype), to_string(out.shape))});
  }
  fmt::print("\n{}", table(steps));
  for (const compile::LaunchSummary& launch : launches)
    if (!launch.title.empty()) fmt::print("\n{}\n{}", launch.title, table(launch.rows));
  return 0;
}

nlohmann::ordered_json to_json(const cost::Choice& choice) {
  const cost::Prediction& time = choice.time;
  nlohmann::ordered_json json{{"algorithm", choice.algorithm}, {"tile", choice.tile}};
  json["predicted_us"] = {{"total", time.total() / 1e3}, {"compute", time.compute / 1e3},
                          {"l1", time.l1 / 1e3},         {"l2", time.l2 / 1e3},
                          {"l3", time.l3 / 1e3},         {"dram", time.dram / 1e3},
                          {"pack", time.pack / 1e3},     {"join", time.join / 1e3}};
  json["bound"] = time.bound();
  return json;
}

/// Algorithm, tile and predicted times of what was chosen and of what came second.
std::string decision_table(const cost::RuleDecision& decision) {
  std::vector<std::vector<std::string>> rows = {{"", "algorithm", "us", "bound", "compute", "l1",
                                                 "l2", "l3", "dram", "pack", "join", "tile"}};
  const auto add = [&](const char* which, const cost::Choice& choice) {
    const cost::Prediction& time = choice.time;
    rows.push_back(
        {which, choice.algorithm, fmt::format("{:.1f}", time.total() / 1e3), time.bound()});
    for (double ns : {time.compute, time.l1, time.l2, time.l3, time.dram, time.pack, time.join})
      rows.back().push_back(fmt::format("{:.1f}", ns / 1e3));
    rows.back().push_back(choice.tile);
  };
  add("chosen", decision.chosen);
  if (!decision.runner_up.algorithm.empty()) add("second", decision.runner_up);
  return table(rows);
}

nlohmann::ordered_json to_json(const compile::KernelReport& kernel) {
  nlohmann::ordered_json json{{"kernel", kernel.symbol}, {"steps", kernel.steps}};
  json.update(rules_json(kernel));
  if (!kernel.decision.chosen.algorithm.empty()) {
    json["chosen"] = to_json(kernel.decision.chosen);
    if (!kernel.decision.runner_up.algorithm.empty())
      json["runner_up"] = to_json(kernel.decision.runner_up);
    json["candidates"] = kernel.decision.candidates;
  }
  json["schedule"] = schedule::print(kernel.trace);
  json["loops"] = print(kernel.scheduled);
  return json;
}

void print_kernel(const compile::KernelReport& kernel) {
  fmt::print("kernel {} of {}\n\n", kernel.symbol, fmt::join(kernel.steps, ", "));
  fmt::print("{}", rules_text(kernel));
  if (!kernel.decision.chosen.algorithm.empty())
    fmt::print("why, of {} candidates (predicted us):\n{}\n", kernel.decision.candidates,
               decision_table(kernel.decision));
  fmt::print("schedule:\n{}\nloops:\n{}\n", schedule::print(kernel.trace), print(kernel.scheduled));
}

/// Bytes between kernels and the arena, beside their bounds; compiles no kernel.
Result<int> explain_memory(const Subject& subject, const compile::CompileOptions& options,
                           bool as_json) {
  if (!subject.graph)
    return fail(ErrorKind::Usage, fmt::format("'{}' is one kernel", subject.name),
                "--memory is about what kernels hand to each other");
  const compile::CompiledModel model = TW_TRY(compile::plan_graph(*subject.graph, options));
  const graph::MemoryPlan plan = graph::plan_memory(model.graph, model.groups);
  const graph::Traffic traffic = graph::traffic_of(model.graph, model.groups);
  const auto ratio = [](int64_t value, int64_t bound) {
    return bound > 0 ? static_cast<double>(value) / static_cast<double>(bound) : 1.0;
  };
  nlohmann::ordered_json json = document("explain");
  json["subject"] = subject.name;
  json["steps"] = model.groups.size();
  json["arena"] = {{"bytes", plan.arena_bytes},
                   {"lower_bound", plan.lower_bound},
                   {"ratio", ratio(plan.arena_bytes, plan.lower_bound)},
                   {"optimal", plan.optimal}};
  json["between_kernels"] = {{"bytes", traffic.moved},
                             {"compulsory", traffic.compulsory},
                             {"ratio", ratio(traffic.moved, traffic.compulsory)}};
  std::vector<std::vector<std::string>> rows = {{"step that computes nothing", "bytes"}};
  for (const auto& [step, bytes] : traffic.movers) {
    json["movers"].push_back({{"step", step}, {"bytes", bytes}});
    rows.push_back({step, std::to_string(bytes)});
  }
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("arena            {:>12} bytes, bound {:>12}: {:.3f} ({})\n", plan.arena_bytes,
             plan.lower_bound, ratio(plan.arena_bytes, plan.lower_bound),
             plan.optimal ? "proven smallest" : "not proven");
  fmt::print("between kernels  {:>12} bytes, bound {:>12}: {:.3f}\n", traffic.moved,
             traffic.compulsory, ratio(traffic.moved, traffic.compulsory));
  if (rows.size() > 1) fmt::print("\n{}", table(rows));
  return 0;
}

struct ExplainVerb {
  SubjectOptions subject;
  std::string node;
  bool memory = false, analysis = false, sass = false, rules = false;
};

Result<int> explain_rules(const hw::Target& target, bool as_json) {
  nlohmann::ordered_json json = document("explain");
  json.update(rule_list_json(target));
  if (as_json) print_json(json);
  if (!as_json) fmt::print("{}", rule_list_text(target));
  return 0;
}

/// Layers that are no kernels; `node`: the one that is wanted, or empty for all. Adds the names of
/// all to `names`. Whether one was wanted.
bool explain_layers(const compile::CompiledModel& model, const std::string& node, bool as_json,
                    nlohmann::ordered_json& json, std::vector<std::string>& names) {
  bool found = false;
  for (const auto& [launch, code] : model.launches)
    for (const compile::LayerNote& note : code.notes) {
      if (!note.layer.empty()) names.push_back(note.layer);
      if (!node.empty() && note.layer != node) continue;
      found = true;
      const std::string& title = note.layer.empty() ? launch : note.layer;
      json["layers"].push_back({{"name", title}, {"launch", launch}, {"notes", note.lines}});
      if (!as_json) fmt::print("{}\n  {}\n\n", title, fmt::join(note.lines, "\n  "));
    }
  return found;
}

Result<int> explain(const ExplainVerb& verb, bool as_json) {
  if (verb.rules) return explain_rules(TW_TRY(target_of(verb.subject)), as_json);
  if (verb.subject.paths.empty() == verb.subject.workload.empty())
    return fail(ErrorKind::Usage, "explain needs model.onnx or file.tw, or --workload FILE --id ID",
                {}, "tilewright help explain");
  const std::vector<Subject> subjects = TW_TRY(load_subjects(verb.subject));
  if (subjects.size() != 1)
    return fail(ErrorKind::Usage, "explain is of one operator",
                fmt::format("there are {}", subjects.size()), "name one: --id ID");
  if (subjects[0].package)
    return fail(ErrorKind::Usage, "explain needs the model, not the package",
                "a package holds code, not the choices behind it",
                "name the model it was made from; tilewright inspect shows what a package holds");
  const compile::CompileOptions compile = TW_TRY(compile_options(verb.subject));
  if (verb.memory) return explain_memory(subjects[0], compile, as_json);
  if (verb.analysis) return explain_analysis(subjects[0], compile, verb.node, as_json);
  const compile::CompiledModel model = TW_TRY(compile_subject(subjects[0], compile));
  if (verb.sass) return explain_sass(model, verb.node, as_json);
  nlohmann::ordered_json json = document("explain");
  json["changes"] = model.changes;
  std::vector<std::string> names, symbols;
  bool found = false;
  for (const compile::KernelReport* report : compile::all_kernels(model)) {
    const compile::KernelReport& kernel = *report;
    names.insert(names.end(), kernel.steps.begin(), kernel.steps.end());
    if (!kernel.symbol.empty()) symbols.push_back(kernel.symbol);
    const bool wanted = verb.node.empty() || kernel.symbol == verb.node ||
                        std::count(kernel.steps.begin(), kernel.steps.end(), verb.node) > 0;
    if (!wanted) continue;
    found = true;
    json["kernels"].push_back(to_json(kernel));
    if (!as_json) print_kernel(kernel);
    const hw::GpuTarget* gpu = compile.target.gpu();
    if (gpu == nullptr) continue;
    if (auto choice = gpu_choice_json(kernel, *gpu); choice && as_json)
      json["kernels"].back().update(*choice);
    if (!as_json) fmt::print("{}", gpu_choice_table(kernel, *gpu));
  }
  if (explain_layers(model, verb.node, as_json, json, names)) found = true;
  names.insert(names.end(), symbols.begin(), symbols.end());
  if (!found) return unknown_node(verb.node, names);
  if (as_json) print_json(json);
  return 0;
}

}  // namespace

void add_inspect(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("inspect", "Shows what is in a package");
  auto path = std::make_shared<std::string>();
  auto weights = std::make_shared<bool>(false);
  verb.add_option("package", *path, "package.twm").required();
  verb.add_flag("--verify", *weights, "check the hash of the weights too");
  verb.callback([&context, path, weights] {
    context.action = [&context, path, weights] { return inspect(*path, *weights, context.json); };
  });
}

void add_explain(Verb app, VerbContext& context) {
  Verb verb = app.add_verb(
      "explain", "Why kernels are scheduled as they are; with --memory, what passes between them");
  auto options = std::make_shared<ExplainVerb>();
  add_compile_options(verb, options->subject, false);
  add_tuning_options(verb, options->subject);
  add_workload_options(verb, options->subject);
  verb.option("input").required(false);  // --rules and --workload need none
  verb.add_option("node", options->node, "only the kernel of this node");
  verb.add_flag("--rules", options->rules,
                "list the rules that choose schedules for --target, in their order");
  verb.add_flag("--memory", options->memory,
                "bytes between kernels and the arena beside their bounds");
  verb.add_flag("--analysis", options->analysis,
                "loops, trip counts, producers and consumers of every kernel's nodes");
  verb.add_flag("--sass", options->sass,
                "with --target cuda: registers, memory, spills and instructions of every kernel");
  for (const char* of_model : {"input", "node", "--workload", "--memory", "--analysis", "--sass"})
    verb.excludes("--rules", of_model);
  for (const char* other : {"node", "--analysis", "--sass"}) verb.excludes("--memory", other);
  verb.excludes("--analysis", "--sass");
  verb.callback([&context, options] {
    context.action = [&context, options] { return explain(*options, context.json); };
  });
}

}  // namespace tilewright::driver
