// inspect, explain, opt: looking inside packages, kernels and IR.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/subject.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::driver {
namespace {

Result<int> inspect(const std::string& path, bool verify_weights, bool as_json) {
  runtime::OpenOptions options;
  options.load_code = false;
  options.verify_weights = verify_weights;
  const auto package = TW_TRY(runtime::Package::open(path, options));
  const runtime::Program& program = package->program();
  nlohmann::ordered_json json = document("inspect");
  json["manifest"] = nlohmann::ordered_json::parse(runtime::to_json(program));
  std::vector<std::vector<std::string>> members = {{"member", "bytes", "sha256"}};
  for (const runtime::PackageMember& member : package->members()) {
    members.push_back(
        {member.name, std::to_string(member.bytes.size()), member.sha256.substr(0, 16)});
    json["members"].push_back(
        {{"name", member.name}, {"bytes", member.bytes.size()}, {"sha256", member.sha256}});
  }
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("{}\ntarget {} ({}), math {}\n", table(members), program.target.name,
             program.target.cpu, program.math);
  fmt::print("arena {} bytes (lower bound {}), weights {} bytes\n", program.arena_bytes,
             program.arena_lower_bound, program.weights_bytes);
  for (const auto& [key, value] : program.notes) fmt::print("{}: {}\n", key, value);
  std::vector<std::vector<std::string>> steps = {{"step", "callee", "output"}};
  for (const runtime::StepSpec& step : program.steps) {
    const runtime::ValueSpec& out = program.values[step.args.back()];
    steps.push_back({step.name, step.kernel.empty() ? step.host : step.kernel,
                     fmt::format("{} {}", name(out.dtype), to_string(out.shape))});
  }
  fmt::print("\n{}", table(steps));
  return 0;
}

Result<int> explain(const SubjectOptions& options, const std::string& node, bool as_json) {
  const std::vector<Subject> subjects = TW_TRY(load_subjects(options));
  if (subjects[0].package)
    return fail(ErrorKind::Usage, "explain needs the model, not the package", {},
                "tilewright inspect shows a package's kernels and their schedules");
  const CompileOptions compile = TW_TRY(compile_options(options));
  const CompiledModel model = TW_TRY(subjects[0].graph ? compile_graph(*subjects[0].graph, compile)
                                                       : compile_func(*subjects[0].func, compile));
  nlohmann::ordered_json json = document("explain");
  json["changes"] = model.changes;
  std::vector<std::string> names;
  bool found = false;
  for (const KernelReport& kernel : model.kernels) {
    names.insert(names.end(), kernel.steps.begin(), kernel.steps.end());
    const bool wanted = node.empty() || std::find(kernel.steps.begin(), kernel.steps.end(), node) !=
                                            kernel.steps.end();
    if (!wanted) continue;
    found = true;
    json["kernels"].push_back({{"kernel", kernel.symbol},
                               {"steps", kernel.steps},
                               {"schedule", schedule::print(kernel.trace)},
                               {"loops", print(kernel.scheduled)}});
    if (as_json) continue;
    fmt::print("kernel {} of {}\n\nschedule:\n{}\nloops:\n{}\n", kernel.symbol,
               fmt::format("{}", fmt::join(kernel.steps, ", ")), schedule::print(kernel.trace),
               print(kernel.scheduled));
  }
  if (!found)
    return fail(ErrorKind::Usage, fmt::format("no kernel is named after node '{}'", node),
                fmt::format("did you mean '{}'? a fused kernel is named after its main node",
                            nearest(node, names)));
  if (as_json) print_json(json);
  return 0;
}

struct OptVerb {
  std::string path, passes, trace, dump;
  std::string target = "cpu";
  bool verify_each = true, list = false, tensor = false;
};

Result<int> opt(const OptVerb& verb, bool as_json) {
  if (verb.list) {
    std::vector<std::vector<std::string>> rows = {{"pass", "what"}};
    for (const lower::Pass& pass : lower::all_passes()) rows.push_back({pass.name, pass.doc});
    fmt::print("{}\ndefault: {}\n", table(rows), lower::default_pipeline());
    return 0;
  }
  if (verb.path.empty()) return fail(ErrorKind::Usage, "opt needs a FILE.tw", {}, "opt --list");
  SubjectOptions subject_options;
  subject_options.paths = {verb.path};
  std::vector<Subject> subjects = TW_TRY(load_subjects(subject_options));
  if (!subjects[0].func)
    return fail(ErrorKind::Usage, fmt::format("'{}' is no .tw file", verb.path));
  Func func = *subjects[0].func;
  if (!verb.trace.empty()) {
    Result<schedule::Trace> trace = schedule::parse_trace(TW_TRY(read_file(verb.trace)));
    if (!trace) return tl::unexpected<Error>(std::move(trace.error()).at(verb.trace));
    func = TW_TRY(schedule::replay(func, *trace));
  }
  lower::PipelineOptions options;
  options.verify_each = verb.verify_each;
  options.passes = verb.passes;
  Status written;
  options.observer = [&](int index, const std::string& pass, const Func& after, bool changed) {
    detail(fmt::format("{:2} {} {}", index, pass, changed ? "changed" : "(unchanged)"));
    if (verb.dump.empty() || !written) return;
    written = write_file(fmt::format("{}/{:05}.after_{}.{}.tw", verb.dump, index, pass,
                                     changed ? "changed" : "same"),
                         print(after));
  };
  if (!verb.passes.empty()) {
    const hw::CpuTarget target = TW_TRY(hw::find_target(verb.target));
    func = TW_TRY(lower::run_pipeline(func, target, options));
  }
  TW_TRY_STATUS(written);
  nlohmann::ordered_json json = document("opt");
  json["program"] = print(func);
  as_json ? print_json(json) : fmt::print("{}", print(func));
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("inspect", "What is in a package");
  auto path = std::make_shared<std::string>();
  auto weights = std::make_shared<bool>(false);
  verb->add_option("package", *path, "package.twm")->required();
  verb->add_flag("--verify", *weights, "check the hash of the weights too");
  verb->callback([&context, path, weights] {
    context.action = [&context, path, weights] { return inspect(*path, *weights, context.json); };
  });
}

void add_explain(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("explain", "Schedule and loops of a model's kernels");
  auto options = std::make_shared<SubjectOptions>();
  auto node = std::make_shared<std::string>();
  add_subject_options(*verb, *options, false);
  verb->add_option("node", *node, "only the kernel of this node");
  verb->callback([&context, options, node] {
    context.action = [&context, options, node] { return explain(*options, *node, context.json); };
  });
}

void add_opt(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("opt", "Schedule steps and lowering passes on IR text");
  auto options = std::make_shared<OptVerb>();
  verb->add_option("file", options->path, "FILE.tw");
  verb->add_option("--passes", options->passes, "comma-separated; see --list");
  verb->add_option("--trace", options->trace, "schedule steps to apply first, one per line");
  verb->add_option("--dump-ir-to", options->dump, "folder for the program after each pass");
  verb->add_option("--target", options->target, "what to lower for");
  verb->add_flag("--verify-each,!--no-verify-each", options->verify_each, "verify after each pass");
  verb->add_flag("--list", options->list, "list the passes");
  verb->callback([&context, options] {
    context.action = [&context, options] { return opt(*options, context.json); };
  });
}

}  // namespace tilewright::driver
