#include "tilewright/compile/compile.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/base/json.h"
#include "tilewright/base/parallel.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/cpu/kernels.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/compile/evaluate.h"
#include "tilewright/compile/kernel_works.h"
#include "tilewright/compile/program_builder.h"
#include "tilewright/graph/onnx/export.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/partition/launches.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/ir/separate_nests.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/unique_names.h"
#include "tilewright/records/lines.h"
#include "tilewright/records/workload.h"
#include "tilewright/rules/cpu/axes.h"
#include "tilewright/runtime/library.h"
#include "tilewright/runtime/package.h"

namespace tilewright::compile {
namespace {

/// By a record where there is one that fits, else by the rules. Sets `report.record` and counts
/// records that do not fit.
Result<ScheduledKernel> schedule_kernel(KernelReport& report, const CompileOptions& options,
                                        std::atomic<int64_t>& stale) {
  KernelOptions kernel_options{options.cpu(), options.threads, options.level > 0};
  std::optional<records::Record> record;
  if (options.tuned && options.level > 0) record = options.tuned(report.func);
  if (record) {
    const Result<schedule::Trace> trace = schedule::parse_trace(record->schedule);
    if (trace) {
      kernel_options.trace = &*trace;
      Result<ScheduledKernel> kernel = schedule_and_lower(report.func, kernel_options);
      if (kernel) {
        report.record = std::move(record);
        return kernel;
      }
      kernel_options.trace = nullptr;
    }
    ++stale;
  }
  return schedule_and_lower(report.func, kernel_options);
}

/// Schedules and lowers all kernels on `jobs` threads.
Result<std::vector<Func>> lower_all(std::vector<KernelReport>& kernels,
                                    const CompileOptions& options, int64_t& stale_records) {
  std::atomic<int64_t> stale = 0;
  std::vector<Func> lowered(kernels.size());
  std::atomic<bool> failed = false;
  std::mutex lock;
  std::optional<Error> problem;
  for_each_part(kernels.size(), options.jobs, [&](size_t i, size_t) {
    if (failed || options.observer.stop()) return;
    Result<ScheduledKernel> kernel = schedule_kernel(kernels[i], options, stale);
    const std::lock_guard<std::mutex> guard(lock);
    options.observer.step("scheduling", static_cast<int64_t>(i),
                          static_cast<int64_t>(kernels.size()), kernels[i].symbol);
    if (!kernel) {
      problem = std::move(kernel.error()).at(kernels[i].steps.front());
      failed = true;
      return;
    }
    kernels[i].trace = std::move(kernel->trace);
    kernels[i].scheduled = std::move(kernel->scheduled);
    kernels[i].rules = std::move(kernel->rules);
    kernels[i].decision = std::move(kernel->decision);
    lowered[i] = std::move(kernel->lowered);
  });
  options.observer.end("scheduling");
  if (problem) return tl::unexpected<Error>(std::move(*problem));
  TW_TRY_STATUS(options.observer.check());
  stale_records = stale;
  return lowered;
}

Status generate(KernelTable& table, const CompileOptions& options, CompiledModel& model,
                runtime::Program& program) {
  const std::vector<Func> lowered =
      TW_TRY(lower_all(table.kernels(), options, model.stale_records));
  if (!lowered.empty()) {
    BackendOptions backend;
    backend.target = options.cpu();
    backend.use_c = options.use_c;
    backend.jobs = options.jobs;
    SharedCode code = TW_TRY(compile_shared(lowered, backend));
    model.code = std::move(code.bytes);
    program.kernels = std::move(code.kernels);
  }
  TW_TRY_STATUS(options.observer.check());
  for (KernelReport& kernel : table.kernels()) model.kernels.push_back(std::move(kernel));
  return {};
}

void describe(runtime::Program& program, const CompileOptions& options) {
  backend_of(options.target).describe(program, options);
  program.math = options.math == MathMode::Fast ? "fast" : "exact";
  program.notes["compiler"] = "tilewright 0.1.0";
  program.notes["threads"] = std::to_string(options.threads);
  program.notes["rates"] = hw::rates_label(options.cpu().rates);
  if (!options.command.empty()) program.notes["command"] = options.command;
}

Result<std::vector<graph::Group>> groups_of(const graph::Graph& graph,
                                            const CompileOptions& options) {
  const Backend& backend = backend_of(options.target);
  const std::vector<std::string> devices = TW_TRY(backend.place(graph, options));
  graph::FuseOptions fusion;
  fusion.copies = !options.copies_apart;
  fusion.enable = (options.level > 0 && options.fuse) || backend.always_fuses();
  if (!devices.empty())
    fusion.device = [&](int node) { return devices[static_cast<size_t>(node)]; };
  if (options.level > 1)
    fusion.join = [&](const graph::Group& group) { return backend.joins(graph, group, options); };
  std::vector<graph::Group> groups = graph::fuse(graph, fusion);
  return devices.empty() ? groups : graph::gather_launches(graph, std::move(groups));
}

}  // namespace

Result<CompiledModel> plan_graph(const graph::Graph& graph, const CompileOptions& options) {
  const Backend& backend = backend_of(options.target);
  CompiledModel model;
  model.graph = graph;
  if (const std::string passes = backend.passes(options); options.level > 0 && !passes.empty()) {
    graph::PassContext context;
    context.evaluate = make_evaluate(options.observer);
    context.vector_bytes = options.cpu().vector_bytes;
    context.copies_apart = options.copies_apart;
    context.regroup = options.math == MathMode::Fast;
    backend.set_up(context, options, model.forms);
    graph::PassResult result = TW_TRY(graph::run_passes(std::move(model.graph), passes, context));
    model.graph = std::move(result.graph);
    model.changes = graph::explain(result.reports);
  }
  TW_TRY_STATUS(options.observer.check());
  model.groups = TW_TRY(groups_of(model.graph, options));
  for (std::string& line : graph::explain(model.graph, model.groups))
    model.changes.push_back(std::move(line));
  return model;
}

namespace {

/// Keeps the code under a new name, which it returns.
std::string add_launch(LaunchCode code, CompiledModel& model) {
  model.stale_records += code.stale_records;
  std::string name = fmt::format("{}_{}", code.device, model.launches.size());
  model.launches[name] = std::move(code);
  return name;
}

}  // namespace

std::vector<const KernelReport*> all_kernels(const CompiledModel& model) {
  std::vector<const KernelReport*> kernels;
  for (const KernelReport& kernel : model.kernels) kernels.push_back(&kernel);
  for (const auto& [name, launch] : model.launches)
    for (const KernelReport& kernel : launch.kernels) kernels.push_back(&kernel);
  return kernels;
}

Result<CompiledModel> compile_graph(const graph::Graph& graph, const CompileOptions& options) {
  CompiledModel model = TW_TRY(plan_graph(graph, options));
  auto program = std::make_shared<runtime::Program>();
  KernelTable kernels;
  WeightTable weights;
  const auto compile_launch = [&](const graph::Group& launch) -> Result<std::string> {
    const Backend& backend = backend_of(options.target);
    return add_launch(TW_TRY(backend.compile_launch(model.graph, launch, options)), model);
  };
  const auto form = [&](const Func& kernel) {
    return options.level > 0 ? rules::with_best_axes(kernel, options.cpu(), options.threads)
                             : kernel;
  };
  ProgramBuilder builder(model.graph, model.groups, options.math, form, compile_launch);
  TW_TRY_STATUS(builder.build(*program, kernels, weights));
  describe(*program, options);
  program->weights_bytes = weights.total();
  model.weights = weights.take();
  TW_TRY_STATUS(generate(kernels, options, model, *program));
  program->works = kernel_works(model);
  model.program = std::move(program);
  return model;
}

Status check_func(const Func& func) {
  if (!func.scalars.empty())
    return fail(ErrorKind::Unsupported, fmt::format("'{}' has scalar parameters", func.name), {},
                "give its sizes as numbers");
  for (const Param& param : func.params) {
    const std::string& name = param.buffer.name();
    for (const Expr& extent : param.buffer.shape())
      if (!as_int(extent))
        return fail(ErrorKind::Unsupported, fmt::format("'{}' has a symbolic shape", name), {},
                    "give its sizes as numbers");
    // Nobody could give it the values that it begins with.
    if (param.mode == ParamMode::InOut)
      return fail(ErrorKind::Unsupported, fmt::format("'{}' is changed in place", name),
                  "a program by itself has inputs and outputs",
                  "make two parameters of it: one that is read, and one that is `out`");
  }
  return {};
}

Result<CompiledModel> compile_func(const Func& func, const CompileOptions& options,
                                   const schedule::Trace* trace) {
  TW_TRY_STATUS(check_func(func));
  CompiledModel model;
  auto program = std::make_shared<runtime::Program>();
  program->name = func.name;
  describe(*program, options);
  KernelTable kernels;
  WeightTable weights;
  runtime::StepSpec step;
  step.name = func.name;
  step.num_outputs = 0;
  // Rules know blocks by their names and expect each in a nest of its own; a trace means the
  // program as it is.
  const bool by_rule = trace == nullptr && options.level > 0;
  Func chosen = by_rule ? with_unique_names(separate_nests(func)) : func;
  chosen.math = options.math;
  for (const Param& param : func.params) {
    runtime::ValueSpec spec;
    spec.name = param.buffer.name();
    spec.dtype = param.buffer.dtype();
    for (const Expr& extent : param.buffer.shape()) spec.shape.push_back(*as_int(extent));
    const int id = static_cast<int>(program->values.size());
    if (param.values) {
      spec.place = runtime::ValueSpec::Place::Weights;
      spec.offset = weights.add(*param.values);
    } else if (param.mode == ParamMode::Out) {
      spec.place = runtime::ValueSpec::Place::Output;
      program->outputs.push_back(id);
      ++step.num_outputs;
    } else {
      spec.place = runtime::ValueSpec::Place::Input;
      program->inputs.push_back(id);
    }
    step.args.push_back(id);
    program->values.push_back(std::move(spec));
  }
  if (std::optional<LaunchCode> launch =
          TW_TRY(backend_of(options.target).compile_func(chosen, options))) {
    std::erase_if(step.args, [&](int id) {
      return program->values[static_cast<size_t>(id)].place == runtime::ValueSpec::Place::Weights;
    });
    const std::string device = launch->device;
    step.launch = add_launch(*std::move(launch), model);
    program->launches[step.launch].device = device;
    program->steps.push_back(std::move(step));
    model.program = std::move(program);
    return model;
  }
  if (trace != nullptr) chosen = TW_TRY(schedule::replay(chosen, *trace));
  step.kernel = kernels.add(std::move(chosen), func.name);
  program->steps.push_back(std::move(step));
  program->weights_bytes = weights.total();
  model.weights = weights.take();
  CompileOptions kernel_options = options;
  if (trace != nullptr) kernel_options.level = 0;
  TW_TRY_STATUS(generate(kernels, kernel_options, model, *program));
  program->works = kernel_works(model);
  model.program = std::move(program);
  return model;
}

namespace {

/// The bytes that go into a package, kept alive by whoever holds the pointer.
std::shared_ptr<const std::map<std::string, std::string>> serialised_launches(
    const CompiledModel& model) {
  auto codes = std::make_shared<std::map<std::string, std::string>>();
  for (const auto& [name, launch] : model.launches) (*codes)[name] = launch.bytes;
  return codes;
}

}  // namespace

Result<std::unique_ptr<runtime::Session>> open_session(const CompiledModel& model,
                                                       const runtime::SessionOptions& options) {
  MappedFile weights;
  if (const auto bytes = static_cast<size_t>(model.program->weights_bytes); bytes > 0) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    weights.owner = std::shared_ptr<void>(memory, [bytes](void* p) { ::munmap(p, bytes); });
    weights.bytes = {static_cast<const char*>(memory), bytes};
    for (const auto& [offset, value] : model.weights)
      std::memcpy(static_cast<char*>(memory) + offset, value.data(),
                  static_cast<size_t>(value.bytes()));
  }
  runtime::SessionOptions session = options;
  std::shared_ptr<const runtime::Library> library;
  if (!model.code.empty())
    library = TW_TRY(runtime::Library::load(model.code, model.program->name));
  session.keep_alive = library;
  session.launch_code = [codes = serialised_launches(model)](const std::string& name) {
    return std::string_view(codes->at(name));
  };
  auto lookup = [library](const std::string& symbol) {
    return library ? reinterpret_cast<tw_kernel>(library->find(symbol)) : nullptr;
  };
  return runtime::Session::create(model.program, lookup, std::move(weights), session);
}

namespace {

/// A file that `tilewright records import` reads: the records behind algorithms and tuned kernels;
/// and the schedule of every kernel.
std::string records_of(const CompiledModel& model) {
  std::string text = records::lines_header();
  for (const records::Record& form : model.forms) text += records::line_of(form);
  const std::vector<const KernelReport*> kernels = all_kernels(model);
  for (const KernelReport* kernel : kernels)
    if (kernel->record)
      text +=
          records::workload_line(kernel->record->workload, records::workload_text(kernel->func)) +
          records::line_of(*kernel->record);
  for (const KernelReport* kernel : kernels)
    if (!kernel->symbol.empty())
      text += json_text(nlohmann::json{{"kernel", kernel->symbol},
                                       {"steps", kernel->steps},
                                       {"schedule", schedule::print(kernel->trace)}}) +
              "\n";
  return text;
}

}  // namespace

Status save_package(const std::string& path, const CompiledModel& model,
                    const std::map<std::string, std::string>& extras) {
  runtime::PackageContents contents;
  contents.program = *model.program;
  std::map<graph::ValueId, int64_t> offsets;
  for (size_t i = 0; i < model.graph.values.size(); ++i)
    if (model.program->values[i].place == runtime::ValueSpec::Place::Weights)
      offsets[static_cast<graph::ValueId>(i)] = model.program->values[i].offset;
  graph::ExportOptions export_options;
  export_options.weights = graph::ExportOptions::Weights::External;
  export_options.place = [&](graph::ValueId id) -> std::optional<int64_t> {
    const auto it = offsets.find(id);
    return it == offsets.end() ? std::nullopt : std::optional(it->second);
  };
  std::string graph;
  if (!model.graph.nodes.empty())
    graph = graph::to_onnx(graph::summarise(model.graph, model.groups), export_options);
  contents.graph = graph;
  contents.code = model.code;
  const auto launches = serialised_launches(model);
  for (const auto& [name, code] : *launches) contents.launches[name] = code;
  for (const auto& [offset, value] : model.weights)
    contents.weights.push_back(
        {offset, {static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes())}});
  const std::string records = records_of(model);
  contents.records = records;
  contents.extras.insert(extras.begin(), extras.end());
  return runtime::write_package(path, contents);
}

}  // namespace tilewright::compile
