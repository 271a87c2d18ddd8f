#include "tilewright/compile/compile.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "tilewright/base/check.h"
#include "tilewright/compile/conv_record.h"
#include "tilewright/compile/cpu/kernels.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/compile/evaluate.h"
#include "tilewright/compile/kernel_works.h"
#include "tilewright/compile/program_builder.h"
#include "tilewright/compile/vta/place.h"
#include "tilewright/graph/onnx/export.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/partition/launches.h"
#include "tilewright/graph/partition/place.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/separate_nests.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/unique_names.h"
#include "tilewright/records/workload.h"
#include "tilewright/rules/cpu/conv_algorithm.h"
#include "tilewright/rules/cpu/strips.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/winograd.h"
#include "tilewright/runtime/library.h"
#include "tilewright/runtime/package.h"
#include "tilewright/tensor/op.h"

namespace tilewright::compile {
namespace {

/// By a record where there is one that fits, else by the rules. Sets `report.record` and counts
/// records that do not fit.
Result<ScheduledKernel> schedule_kernel(KernelReport& report, const CompileOptions& options,
                                        std::atomic<int64_t>& stale) {
  KernelOptions kernel_options{options.target, options.threads, options.level > 0};
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
  std::atomic<size_t> next = 0;
  std::mutex lock;
  std::optional<Error> problem;
  std::exception_ptr bug;
  auto work = [&] {
    try {
      for (size_t i = next++; i < kernels.size() && !options.observer.stop(); i = next++) {
        Result<ScheduledKernel> kernel = schedule_kernel(kernels[i], options, stale);
        const std::lock_guard<std::mutex> guard(lock);
        options.observer.step("scheduling", static_cast<int64_t>(i),
                              static_cast<int64_t>(kernels.size()), kernels[i].symbol);
        if (!kernel) {
          problem = std::move(kernel.error()).at(kernels[i].steps.front());
          return;
        }
        kernels[i].trace = std::move(kernel->trace);
        kernels[i].scheduled = std::move(kernel->scheduled);
        kernels[i].decision = std::move(kernel->decision);
        lowered[i] = std::move(kernel->lowered);
      }
    } catch (...) {  // a bug: reported by main, not by std::terminate
      const std::lock_guard<std::mutex> guard(lock);
      bug = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < options.jobs; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  options.observer.end("scheduling");
  if (bug) std::rethrow_exception(bug);
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
    backend.target = options.target;
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
  program.target = {options.target.name, options.target.triple, options.target.cpu,
                    options.target.features};
  if (options.gpu)  // what is left for the processor are functions of the runtime
    program.target = {options.gpu->name,
                      options.target.triple,
                      options.gpu->arch.empty() ? options.gpu->name : options.gpu->arch,
                      {}};
  program.math = options.math == MathMode::Fast ? "fast" : "exact";
  if (options.gpu && options.gpu->tf32) program.notes["tf32"] = "factors of f32 products";
  program.notes["compiler"] = "tilewright 0.1.0";
  program.notes["threads"] = std::to_string(options.threads);
  program.notes["rates"] = hw::rates_label(options.target.rates);
  if (!options.command.empty()) program.notes["command"] = options.command;
}

/// The tile for `conv`: by a record of a form that there is, else by the model of the machine.
int64_t winograd_tile(const tensor::Conv2dShape& conv, const CompileOptions& options,
                      std::vector<records::Record>& used) {
  const std::optional<records::Record> record = options.form ? options.form(conv) : std::nullopt;
  const std::optional<int64_t> m = record ? form_in(*record) : std::nullopt;
  const std::vector<int64_t> tiles = rules::winograd_tiles(conv);
  if (!m || (*m != 0 && std::find(tiles.begin(), tiles.end(), *m) == tiles.end()))
    return rules::winograd_tile(conv, options.target, options.threads);
  if (std::find(used.begin(), used.end(), *record) == used.end()) used.push_back(*record);
  return *m;
}

GpuLaunchOptions gpu_options(const CompileOptions& options) {
  return {options.math, options.tuned, options.observer};
}
VtaLaunchOptions vta_options(const CompileOptions& options) {
  VtaLaunchOptions launch = options.launch;
  launch.observer = options.observer;
  return launch;
}

/// The default graph passes; below level 2 layouts stay as they are.
std::string passes_of(const CompileOptions& options) {
  std::string names = graph::default_passes();
  const auto leave_out = [&](const std::string& pass) {
    names.erase(names.find(pass), pass.size());
  };
  if (options.level < 2) leave_out("integer_products,"), leave_out("zero_points,");
  if (options.level < 2 || options.gpu) leave_out("join_groups,"), leave_out("block_layout,");
  if (!options.fuse) leave_out("fold_batch_norm,");
  return names;
}

/// Whether the data decide how large a value of `node` is: launches know all sizes beforehand.
bool has_dynamic_size(const graph::Graph& graph, const graph::Node& node) {
  const auto dynamic = [&](graph::ValueId id) {
    return id >= 0 && graph.values[static_cast<size_t>(id)].type.dynamic_axis >= 0;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), dynamic) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), dynamic);
}

Result<std::vector<graph::Group>> groups_of(const graph::Graph& graph,
                                            const CompileOptions& options) {
  graph::FuseOptions fusion;
  fusion.copies = !options.copies_apart;
  fusion.enable = (options.level > 0 && options.fuse) || options.vta;
  std::vector<std::string> devices;
  if (options.vta) {
    devices = devices_of(graph, TW_TRY(place_on_vta(graph, *options.vta, vta_options(options))));
    fusion.device = [&](int node) { return devices[static_cast<size_t>(node)]; };
  }
  if (options.gpu)
    fusion.device = [&](int node) {
      const graph::Node& n = graph.nodes[static_cast<size_t>(node)];
      const tensor::OpDef* op = tensor::find_op(n.domain, n.op);
      const bool here = !op->host.empty() || has_dynamic_size(graph, n);
      return here ? std::string() : std::string(hw::name(options.gpu->language));
    };
  if (options.level > 1 && !options.vta && !options.gpu)
    fusion.join = [&](const graph::Group& group) {
      const Result<graph::GroupFunc> made = graph::group_func(graph, group, options.math);
      return made && rules::worth_strips(made->func, options.target, options.threads);
    };
  if (options.level > 1 && options.gpu)
    fusion.join = [&](const graph::Group& group) {
      const Result<graph::GroupFunc> made = graph::group_func(graph, group, options.math);
      return made && rules::is_gpu_attention(made->func, *options.gpu);
    };
  std::vector<graph::Group> groups = graph::fuse(graph, fusion);
  return options.vta || options.gpu ? graph::gather_launches(graph, std::move(groups)) : groups;
}

}  // namespace

Result<CompiledModel> plan_graph(const graph::Graph& graph, const CompileOptions& options) {
  CompiledModel model;
  model.graph = graph;
  if (options.level > 0 && !options.vta) {  // tiled graphs went through the passes before
    graph::PassContext context;
    context.evaluate = make_evaluate(options.observer);
    context.vector_bytes = options.target.vector_bytes;
    context.copies_apart = options.copies_apart;
    context.regroup = options.math == MathMode::Fast;
    const auto depth = [&](hw::DotKind kind) {
      return [&options, kind](DType a, DType b) -> int64_t {
        const auto dot = hw::find_dot(options.target, a, b, 0, kind);
        // Floats are summed in another order.
        return dot && (!is_float(a) || options.math == MathMode::Fast) ? dot->depth : 0;
      };
    };
    if (options.gpu) {
      context.zero_points_apart = true;
      context.dot_depth = [&options](DType a, DType b) -> int64_t {
        const std::string factors = hw::factor_types(std::string(name(a)), std::string(name(b)));
        return hw::multiplies_matrices(*options.gpu, factors) ? 1 : 0;
      };
    } else {
      context.dot_depth = depth(hw::DotKind::Repeated);
      context.tile_depth = depth(hw::DotKind::Tile);
    }
    if (options.math == MathMode::Fast && !options.direct && !options.gpu)
      context.winograd_tile = [&](const tensor::Conv2dShape& conv) {
        return winograd_tile(conv, options, model.forms);
      };
    if (options.math == MathMode::Fast && !options.gpu)
      context.direct_form = [&](const tensor::Conv2dShape& conv) {
        return rules::direct_form(conv, options.target, options.threads);
      };
    if (options.math == MathMode::Fast && !options.direct && options.gpu && !options.gpu->tf32)
      context.plain_winograd_tile = [&](const tensor::Conv2dShape& conv) {
        return rules::gpu_winograd_tile(conv, *options.gpu);
      };
    graph::PassResult result =
        TW_TRY(graph::run_passes(std::move(model.graph), passes_of(options), context));
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

/// Keeps the code under a new name, and its kernels for people to look at.
std::string add_gpu_launch(GpuLaunchCode code, CompiledModel& model) {
  for (const KernelReport& kernel : code.kernels) {
    model.kernels.push_back(kernel);
    model.kernels.back().symbol = kernel.func.name;
  }
  model.stale_records += code.stale_records;
  std::string name = fmt::format("{}_{}", code.program.language, model.gpu_launches.size());
  model.gpu_launches[name] = std::move(code);
  return name;
}

}  // namespace

Result<CompiledModel> compile_graph(const graph::Graph& graph, const CompileOptions& options) {
  CompiledModel model = TW_TRY(plan_graph(graph, options));
  auto program = std::make_shared<runtime::Program>();
  KernelTable kernels;
  WeightTable weights;
  const auto compile_launch = [&](const graph::Group& launch) -> Result<std::string> {
    if (options.gpu)
      return add_gpu_launch(
          TW_TRY(compile_gpu_launch(model.graph, launch, *options.gpu, gpu_options(options))),
          model);
    std::string name = fmt::format("{}_{}", launch.device, model.launches.size());
    model.launches[name] =
        TW_TRY(compile_vta_launch(model.graph, launch, *options.vta, vta_options(options)));
    return name;
  };
  ProgramBuilder builder(model.graph, model.groups, options.math, compile_launch);
  TW_TRY_STATUS(builder.build(*program, kernels, weights));
  describe(*program, options);
  program->weights_bytes = weights.total();
  model.weights = weights.take();
  TW_TRY_STATUS(generate(kernels, options, model, *program));
  program->works = kernel_works(model);
  model.program = std::move(program);
  return model;
}

Result<CompiledModel> compile_func(const Func& func, const CompileOptions& options,
                                   const schedule::Trace* trace) {
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
  if (!func.scalars.empty())
    return fail(ErrorKind::Unsupported, fmt::format("'{}' has scalar parameters", func.name), {},
                "give its sizes as numbers");
  for (const Param& param : func.params) {
    runtime::ValueSpec spec;
    spec.name = param.buffer.name();
    spec.dtype = param.buffer.dtype();
    for (const Expr& extent : param.buffer.shape()) {
      const std::optional<int64_t> value = as_int(extent);
      if (!value)
        return fail(ErrorKind::Unsupported, fmt::format("'{}' has a symbolic shape", spec.name));
      spec.shape.push_back(*value);
    }
    const int id = static_cast<int>(program->values.size());
    if (param.values) {
      spec.place = runtime::ValueSpec::Place::Weights;
      spec.offset = weights.add(*param.values);
    } else if (param.mode == ParamMode::Out || param.mode == ParamMode::InOut) {
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
  if (options.gpu) {
    std::erase_if(step.args, [&](int id) {
      return program->values[static_cast<size_t>(id)].place == runtime::ValueSpec::Place::Weights;
    });
    step.launch =
        add_gpu_launch(TW_TRY(compile_gpu_func(chosen, *options.gpu, gpu_options(options))), model);
    program->launches[step.launch].device = std::string(hw::name(options.gpu->language));
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
  for (const auto& [name, launch] : model.launches) (*codes)[name] = serialise(launch.program);
  for (const auto& [name, launch] : model.gpu_launches)
    (*codes)[name] = runtime::serialise(launch.program);
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
  for (const KernelReport& kernel : model.kernels)
    if (kernel.record)
      text += records::workload_line(kernel.record->workload, records::workload_text(kernel.func)) +
              records::line_of(*kernel.record);
  for (const auto& [name, launch] : model.launches)
    for (const LayerCode& layer : launch.layers)
      if (layer.record)
        text += records::workload_line(layer.record->workload, records::workload_text(layer.func)) +
                records::line_of(*layer.record);
  for (const KernelReport& kernel : model.kernels)
    text += nlohmann::json{{"kernel", kernel.symbol},
                           {"steps", kernel.steps},
                           {"schedule", schedule::print(kernel.trace)}}
                .dump() +
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
