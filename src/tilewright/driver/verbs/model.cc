// check, compile: from a model to a package.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "tilewright/base/counted.h"
#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/output_file.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/compile/backends.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/error_report.h"
#include "tilewright/driver/inputs/samples.h"
#include "tilewright/driver/subject.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/partition/memory.h"
#include "tilewright/ir/text.h"

namespace tilewright::driver {
namespace {

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

nlohmann::ordered_json type_json(const graph::Graph& graph,
                                 const std::vector<graph::ValueId>& ids) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (graph::ValueId id : ids) {
    const graph::Value& value = graph.values[id];
    json.push_back({{"name", value.name},
                    {"dtype", std::string(name(value.type.dtype))},
                    {"shape", value.type.shape}});
  }
  return json;
}

/// Where each operator of a model runs on an accelerator, and why not there.
int report_placements(const Subject& subject, const SubjectOptions& options, bool as_json) {
  const std::string& target = options.target;
  nlohmann::ordered_json json = document("check");
  json["model"] = subject.path;
  json["target"] = target;
  const std::vector<std::string> notes =
      subject.quantized ? subject.quantized->quantized.notes : std::vector<std::string>();
  json["notes"] = notes;
  std::map<std::string, std::map<std::string, int>> counts;
  std::vector<std::vector<std::string>> rows = {{"node", "operator", "device", "reason"}};
  const Status all = compile::all_placed(subject.placements, target);
  const bool supported = all || options.fallback == "cpu";
  for (const graph::Placement& place : subject.placements) {
    if (place.where == graph::Where::Nothing) continue;
    const std::string device = place.where == graph::Where::Accelerator ? target : "cpu";
    ++counts[place.op][device];
    if (device == "cpu") rows.push_back({place.name, place.op, device, place.why});
    json["nodes"].push_back({{"node", place.name},
                             {"operator", place.op},
                             {"device", device},
                             {"border", compile::is_border(place)},
                             {"reason", place.why}});
  }
  json["supported"] = supported;
  if (as_json) {
    print_json(json);
    return supported ? 0 : exit_code(all.error().kind);
  }
  std::vector<std::vector<std::string>> summary = {{"operator", "on " + target, "on cpu"}};
  for (const auto& [op, by_device] : counts) {
    const auto on = [&](const std::string& device) {
      const auto it = by_device.find(device);
      return std::to_string(it == by_device.end() ? 0 : it->second);
    };
    summary.push_back({op, on(target), on("cpu")});
  }
  fmt::print("{}\n{}", table(summary), rows.size() > 1 ? table(rows) : "");
  for (const std::string& note : notes) fmt::print("note: {}\n", note);
  if (supported) {
    fmt::print("supported\n");
    return 0;
  }
  std::fflush(stdout);
  fmt::print(stderr,
             "error: not every operator runs on {}\n  why: the table names them\n"
             "  fix: --fallback cpu runs the others on this machine\n",
             target);
  return exit_code(all.error().kind);
}

/// What a caller holds: inputs and outputs, each once.
int64_t border_bytes(const graph::Graph& graph) {
  std::set<graph::ValueId> ids(graph.inputs.begin(), graph.inputs.end());
  ids.insert(graph.outputs.begin(), graph.outputs.end());
  int64_t bytes = 0;
  for (const graph::ValueId id : ids)
    if (const graph::Value& value = graph.values[id]; !value.constant)
      bytes += graph::checked_bytes(value.type.dtype, value.type.shape).value_or(0);
  return bytes;
}

/// Memory of this machine; 0 if it does not say.
int64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? int64_t{pages} * size : 0;
}

/// A tensor expression is one kernel.
int report_expression(const Subject& subject, const std::string& target, bool as_json) {
  nlohmann::ordered_json json = document("check");
  json["model"] = subject.path;
  json["supported"] = true;
  std::vector<std::vector<std::string>> rows = {{"", "name", "dtype", "shape"}};
  for (const Param& param : subject.func->params) {
    if (param.mode == ParamMode::Const) continue;
    const std::string side = param.mode == ParamMode::In ? "input" : "output";
    const std::string dtype(name(param.buffer.dtype()));
    std::vector<std::string> shape;
    nlohmann::ordered_json extents = nlohmann::ordered_json::array();
    for (const Expr& extent : param.buffer.shape()) {
      shape.push_back(print(extent));
      extents.push_back(parse_ordered_json(shape.back(), std::nothrow));
    }
    rows.push_back({side, param.buffer.name(), dtype, fmt::format("[{}]", fmt::join(shape, ", "))});
    json[side + "s"].push_back(
        {{"name", param.buffer.name()}, {"dtype", dtype}, {"shape", extents}});
  }
  if (as_json)
    print_json(json);
  else
    fmt::print("{}supported: one kernel on {}\n", table(rows), target);
  return 0;
}

/// Problems of a model are what `check` is asked for: its document lists them.
Result<int> report_problems(const Error& error, const std::string& path, bool as_json) {
  const bool of_model = error.kind == ErrorKind::Unsupported || error.kind == ErrorKind::Invalid ||
                        error.kind == ErrorKind::Capacity;
  if (!of_model) return tl::unexpected<Error>(error);
  if (!as_json) {
    const size_t count = 1 + error.others.size();
    // In a pipe each problem is one line, for grep.
    const size_t width = ::isatty(1) != 0 ? 44 : std::string::npos;
    fmt::print("{}", problems_table(error, path, width));
    std::fflush(stdout);
    tell(fmt::format("error: {} cannot be compiled: {}, listed above\n", path,
                     counted(count, "problem")));
    return exit_code(error.kind);
  }
  nlohmann::ordered_json json = document("check");
  json["model"] = path;
  json["supported"] = false;
  json["problems"] = error_json(error)["problems"];
  print_json(json);
  tell(to_string(error));
  return exit_code(error.kind);
}

Result<int> check(SubjectOptions options, bool as_json) {
  const hw::Target target = TW_TRY(compile::find_target(options.target));
  const bool accelerator = target.kind == hw::TargetKind::Accelerator;
  // Placement does not depend on the values that calibration sees.
  if (accelerator && !compile::backend_of(target).takes_floats() && options.quantize.empty())
    options.quantize = "random:1";
  SubjectOptions all_nodes = options;  // what does not run on an accelerator is in the report
  if (accelerator) all_nodes.fallback = "cpu";
  const Result<std::vector<Subject>> subjects = load_subjects(all_nodes);
  if (!subjects) return report_problems(subjects.error(), options.paths[0], as_json);
  const Subject& subject = subjects->front();
  if (!subject.placements.empty()) return report_placements(subject, options, as_json);
  if (subject.func) {
    const Status taken = compile::check_func(*subject.func);
    if (!taken) return report_problems(taken.error(), options.paths[0], as_json);
    return report_expression(subject, options.target, as_json);
  }
  if (!subject.graph)
    return fail(ErrorKind::Usage, fmt::format("'{}' is a package", options.paths[0]),
                "it is compiled already, so there is nothing left to check", "tilewright inspect");
  const graph::Graph& graph = *subject.graph;
  const std::vector<graph::Group> groups = graph::fuse(graph);
  const graph::MemoryPlan plan = graph::plan_memory(graph, groups);
  std::map<std::string, int> operators;
  for (const graph::Node& node : graph.nodes) ++operators[node.op];
  int64_t weights = 0;
  for (const graph::Value& value : graph.values)
    if (value.constant) weights += value.constant->bytes();
  nlohmann::ordered_json json = document("check");
  json["model"] = options.paths[0];
  json["supported"] = true;
  json["nodes"] = graph.nodes.size();
  json["operators"] = operators;
  json["inputs"] = type_json(graph, graph.inputs);
  json["outputs"] = type_json(graph, graph.outputs);
  const int64_t borders = border_bytes(graph);
  json["weight_bytes"] = weights;
  json["input_output_bytes"] = borders;
  json["arena_bytes"] = plan.arena_bytes;
  json["arena_lower_bound"] = plan.lower_bound;
  std::vector<std::string> warnings = graph.warnings;
  if (const int64_t needed = weights + borders + plan.arena_bytes, there = memory_bytes();
      there > 0 && needed > there)
    warnings.push_back(fmt::format("a run needs {:.1f} GiB of memory; this machine has {:.1f}",
                                   mib(needed) / 1024, mib(there) / 1024));
  json["warnings"] = warnings;
  if (as_json) {
    print_json(json);
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"operator", "nodes"}};
  for (const auto& [op, count] : operators) rows.push_back({op, std::to_string(count)});
  fmt::print("{}\n", table(rows));
  for (const char* side : {"inputs", "outputs"})
    for (const auto& value : json[side])
      fmt::print("{:7} {} {} {}\n", std::string(side).substr(0, std::string(side).size() - 1),
                 value["name"].get<std::string>(), value["dtype"].get<std::string>(),
                 json_text(value["shape"]));
  fmt::print(
      "weights {:.1f} MiB, inputs and outputs {:.2f} MiB, arena {:.2f} MiB before layouts (lower "
      "bound {:.2f})\n",
      mib(weights), mib(borders), mib(plan.arena_bytes), mib(plan.lower_bound));
  for (size_t i = graph.warnings.size(); i < warnings.size(); ++i) say("warning: " + warnings[i]);
  const std::string nodes = graph.nodes.size() == 1 ? "the only node"
                            : graph.nodes.empty()   ? "no nodes, so everything"
                                                  : fmt::format("all {} nodes", graph.nodes.size());
  fmt::print("supported: {} on {}\n", nodes, options.target);
  return 0;
}

struct CompileVerb {
  SubjectOptions subject;
  std::string output;
  std::string samples = "auto";  ///< who computes the expected outputs that the package carries
  bool explain = false;
};

/// What a model takes, on the CPU and on a GPU.
struct Size {
  size_t kernels = 0;
  int64_t code = 0, weights = 0, arena = 0;
};
Size size_of(const compile::CompiledModel& model) {
  const runtime::Program& program = *model.program;
  Size size{program.kernels.size(), static_cast<int64_t>(model.code.size()), program.weights_bytes,
            program.arena_bytes};
  for (const auto& [name, launch] : model.launches) {
    size.kernels += static_cast<size_t>(launch.kernel_count);
    size.code += launch.code_bytes;
    size.weights += launch.weight_bytes;
    size.arena += launch.arena_bytes;
  }
  return size;
}

Result<int> compile(const CompileVerb& verb, const VerbContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> inputs = input_files(verb.subject);
  TW_TRY_STATUS(check_outputs({{verb.output}, {}}, inputs, context.json));
  const std::vector<Subject> subjects = TW_TRY(load_subjects(verb.subject));
  if (subjects.size() != 1)
    return fail(ErrorKind::Usage, fmt::format("a package holds one model, not {}", subjects.size()),
                {}, "name one model, or one case of a workload file by --id");
  const Subject& subject = subjects[0];
  if (subject.package)
    return fail(ErrorKind::Usage, fmt::format("'{}' is compiled already", verb.subject.paths[0]),
                "it is a package", "name the model that it was made from");
  if (verb.subject.quantize.starts_with("random"))
    say("warning: the model is calibrated with random inputs: good enough to try the hardware, not "
        "to use the results\n  fix: --quantize FILE.npz with inputs as the model will see");
  compile::CompileOptions options = TW_TRY(compile_options(verb.subject));
  options.command = context.command;
  const std::string path = verb.output.empty() ? subject.name + ".twm" : verb.output;
  TW_TRY_STATUS(check_output(path, inputs));
  const compile::CompiledModel model = TW_TRY(compile_subject(subject, options));
  say_tuned(model);
  say_elsewhere(model, options, verb.subject.records, verb.subject.device);
  TW_TRY_STATUS(save_with_samples(path, subject, model, options, verb.samples));
  const runtime::Program& program = *model.program;
  nlohmann::ordered_json json = document("compile");
  json["package"] = path;
  json["seconds"] = seconds_since(start);
  const Size size = size_of(model);
  json["kernels"] = size.kernels;
  const RecordedKernels recorded = recorded_kernels(model);
  json["kernels_measured"] = recorded.measured;
  json["kernels_tuned"] = recorded.faster;
  json["steps"] = program.steps.size();
  json["code_bytes"] = size.code;
  json["weight_bytes"] = size.weights;
  json["arena_bytes"] = size.arena;
  json["arena_lower_bound"] = program.arena_lower_bound;
  if (verb.explain) json["changes"] = model.changes;
  if (context.json) {
    print_json(json);
    return 0;
  }
  if (verb.explain)
    for (const std::string& line : model.changes)
      path == "-" ? say(line) : fmt::print("{}\n", line);
  say(fmt::format("{}: {}, {}, weights {:.1f} MiB, arena {:.2f} MiB (lower bound {:.2f}), {:.1f} s",
                  path, counted(program.steps.size(), "step"), counted(size.kernels, "kernel"),
                  mib(size.weights), mib(size.arena), mib(program.arena_lower_bound),
                  seconds_since(start)));
  return 0;
}

}  // namespace

void add_check(Verb app, VerbContext& context) {
  Verb verb = app.add_verb(
      "check", "Says whether a model is supported, without building it; lists every problem");
  auto options = std::make_shared<SubjectOptions>();
  add_model_options(verb, *options, false);
  add_target_options(verb, *options);
  add_quantize_options(verb, *options);
  verb.callback([&context, options] {
    context.action = [&context, options] { return check(*options, context.json); };
  });
}

void add_compile(Verb app, VerbContext& context) {
  Verb verb =
      app.add_verb("compile", "Compiles a model, or an operator in a .tw file, to a package");
  auto options = std::make_shared<CompileVerb>();
  add_compile_options(verb, options->subject, true);
  add_tuning_options(verb, options->subject);
  verb.add_option("-o,--output", options->output, "package to write (default NAME.twm)");
  verb.add_option("--samples", options->samples,
                  "outputs for `verify PACKAGE`: auto, interp (slow for networks), package, none")
      .one_of({"auto", "interp", "package", "none"});
  verb.add_flag("--explain", options->explain, "list what each graph pass changed");
  verb.callback([&context, options] {
    context.action = [&context, options] { return compile(*options, context); };
  });
}

}  // namespace tilewright::driver
