// opt: schedule steps and lowering passes on IR text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/compile/backends.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/subject.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/unique_names.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/lower/lower.h"

namespace tilewright::driver {
namespace {

struct OptVerb {
  std::string path, passes, pipeline, trace, dump, target;
  bool verify_each = true, list = false;
};

std::vector<std::string> pipelines_with(const std::string& pass) {
  std::vector<std::string> names;
  for (const lower::Pipeline& pipeline : lower::all_pipelines())
    if (std::count(pipeline.passes.begin(), pipeline.passes.end(), pass) > 0)
      names.push_back(pipeline.name);
  return names;
}

void list_passes(bool as_json) {
  nlohmann::ordered_json json = document("opt");
  std::vector<std::vector<std::string>> passes = {{"pass", "pipelines", "what"}};
  for (const lower::Pass& pass : lower::all_passes()) {
    const std::vector<std::string> in = pipelines_with(pass.name);
    passes.push_back({pass.name, fmt::format("{}", fmt::join(in, ", ")), pass.doc});
    json["passes"].push_back({{"name", pass.name}, {"what", pass.doc}, {"pipelines", in}});
  }
  std::vector<std::vector<std::string>> pipelines = {{"pipeline", "what", "passes"}};
  for (const lower::Pipeline& p : lower::all_pipelines()) {
    pipelines.push_back({p.name, p.doc, fmt::format("{}", fmt::join(p.passes, ","))});
    json["pipelines"].push_back({{"name", p.name}, {"what", p.doc}, {"passes", p.passes}});
  }
  if (as_json)
    print_json(json);
  else
    fmt::print("{}\n{}", table(passes), table(pipelines));
}

/// Says what each pass did, and writes the program after it into a folder.
class Dump {
 public:
  /// `folder`: empty for none; made if it is missing. errors: Io.
  static Result<Dump> into(const std::string& folder) {
    std::error_code error;
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (error)
      return fail(ErrorKind::Io, fmt::format("cannot make the folder '{}'", folder),
                  error.message());
    return Dump(folder);
  }

  void pass(const std::string& name, const Func& after, bool changed) {
    detail(fmt::format("{:2} {} {} {}", count_, after.name, name,
                       changed ? "changed" : "(unchanged)"));
    if (!folder_.empty() && status)
      status = write_file(fmt::format("{}/{:05}.after_{}.{}.tw", folder_, count_, name,
                                      changed ? "changed" : "same"),
                          print(after));
    ++count_;
  }

  Status status;

 private:
  explicit Dump(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  int count_ = 0;
};

/// Whether two loops have one name, as text may have it in different nests.
bool shares_names(const Func& func) {
  std::set<std::string> names;
  bool shared = false;
  walk(func.body, [&](const Stmt& s) {
    if (const auto* loop = s.as<For>()) shared |= !names.insert(loop->var.name()).second;
  });
  return shared;
}

/// The program of the file, after the schedule steps of the other, if one is named. Steps and
/// passes tell loops apart by their names: they get it with unique ones.
Result<Func> program_of(const OptVerb& verb, const std::string& pipeline) {
  SubjectOptions options;
  options.paths = {verb.path};
  const std::vector<Subject> subjects = TW_TRY(load_subjects(options));
  if (!subjects[0].func)
    return fail(ErrorKind::Usage, fmt::format("'{}' is no .tw file", verb.path),
                "opt works on loop programs and tensor expressions as text",
                "tilewright explain MODEL NODE shows the loops of a model's kernel");
  Func func = *subjects[0].func;
  const bool changed = !verb.trace.empty() || !verb.passes.empty() || !pipeline.empty();
  if (changed && shares_names(func)) func = with_unique_names(func);
  if (verb.trace.empty()) return func;
  Result<schedule::Trace> trace = schedule::parse_trace(TW_TRY(read_file(verb.trace)));
  if (!trace) return tl::unexpected<Error>(std::move(trace.error()).at(verb.trace));
  return schedule::replay(func, *trace);
}

/// All of the way to a GPU: passes, the split into kernels, passes on each.
Result<std::string> kernels_of(const Func& func, const OptVerb& verb,
                               const lower::PassOptions& options, nlohmann::ordered_json& json) {
  const std::string name =
      verb.target.empty() ? std::string(hw::name(hw::GpuLanguage::Cuda)) : verb.target;
  TW_TRY(compile::find_target(name));  // which of all targets is near, if there is none
  const hw::GpuTarget target = TW_TRY(hw::find_gpu_target(name));
  const lower::GpuLaunches plan = TW_TRY(lower::lower_for_gpu(func, target, options));
  std::string text;
  for (const lower::GpuKernel& kernel : plan.kernels) {
    const std::string program = print(kernel.func);
    text += fmt::format("{}// {} blocks of {} threads\n{}", text.empty() ? "" : "\n",
                        fmt::join(kernel.grid, "x"), fmt::join(kernel.block, "x"), program);
    json["kernels"].push_back({{"name", kernel.func.name},
                               {"grid", kernel.grid},
                               {"block", kernel.block},
                               {"program", program}});
  }
  return text;
}

/// Which pipeline is wanted; empty: none, there are single passes or nothing to do.
Result<std::string> pipeline_of(const OptVerb& verb) {
  if (!verb.pipeline.empty() && !verb.passes.empty())
    return fail(ErrorKind::Usage, "--pipeline and --passes exclude each other", {},
                "give one of them");
  if (!verb.target.empty() && verb.pipeline != "gpu")
    return fail(ErrorKind::Usage, "no pass reads a target",
                "--target says whether kernels fit a GPU", "add --pipeline gpu");
  if (!verb.pipeline.empty()) return TW_TRY(lower::find_pipeline(verb.pipeline))->name;
  return verb.passes.empty() && !verb.dump.empty() ? "cpu" : "";
}

Result<int> opt(const OptVerb& verb, bool as_json) {
  if (verb.list) {
    list_passes(as_json);
    return 0;
  }
  if (verb.path.empty()) return fail(ErrorKind::Usage, "opt needs a FILE.tw", {}, "opt --list");
  TW_TRY_STATUS(check_outputs({{}, {verb.dump}}, {verb.path, verb.trace}, as_json));
  const std::string pipeline = TW_TRY(pipeline_of(verb));
  const Func func = TW_TRY(program_of(verb, pipeline));
  Dump dump = TW_TRY(Dump::into(verb.dump));
  lower::PassOptions options;
  options.verify_each = verb.verify_each;
  options.observer = [&](const std::string& pass, const Func& after, bool changed) {
    dump.pass(pass, after, changed);
  };
  nlohmann::ordered_json json = document("opt");
  std::string text;
  if (pipeline == "gpu")
    text = TW_TRY(kernels_of(func, verb, options, json));
  else if (!pipeline.empty())
    text = print(TW_TRY(lower::run_pipeline(func, pipeline, options)));
  else
    text = print(TW_TRY(lower::run_passes(func, lower::pass_names(verb.passes), options)));
  TW_TRY_STATUS(std::move(dump.status));
  json["program"] = text;
  as_json ? print_json(json) : fmt::print("{}", text);
  return 0;
}

}  // namespace

void add_opt(Verb app, VerbContext& context) {
  Verb verb =
      app.add_verb("opt", "Applies schedule steps and lowering passes to a loop program (FILE.tw)");
  auto options = std::make_shared<OptVerb>();
  verb.add_option("file", options->path, "FILE.tw");
  verb.add_option("--passes", options->passes, "comma-separated, in this order; see --list");
  verb.add_option("--pipeline", options->pipeline,
                  "all passes of it: cpu, gpu (with the split into kernels), gpu-kernel, fpga; "
                  "with --dump-ir-to and no --passes: cpu");
  verb.add_option("--trace", options->trace, "schedule steps to apply first, one per line");
  verb.add_option("--dump-ir-to", options->dump,
                  "folder for the program after each pass; made if it is missing");
  verb.add_option("--target", options->target,
                  "with --pipeline gpu: the GPU that kernels must fit (cuda)");
  verb.add_flag("--verify-each,!--no-verify-each", options->verify_each, "verify after each pass");
  verb.add_flag("--list", options->list, "list the passes and pipelines");
  for (const char* of_program :
       {"file", "--passes", "--pipeline", "--trace", "--dump-ir-to", "--target"})
    verb.excludes("--list", of_program);
  verb.callback([&context, options] {
    context.action = [&context, options] { return opt(*options, context.json); };
  });
}

}  // namespace tilewright::driver
