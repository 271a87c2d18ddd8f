#include "tilewright/driver/compile.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "tilewright/base/check.h"
#include "tilewright/driver/backend.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/evaluate.h"
#include "tilewright/graph/export.h"
#include "tilewright/graph/fuse.h"
#include "tilewright/graph/memory.h"
#include "tilewright/graph/passes.h"
#include "tilewright/ir/text.h"
#include "tilewright/runtime/library.h"
#include "tilewright/runtime/package.h"
#include "tilewright/tensor/op.h"

namespace tilewright::driver {
namespace {

constexpr int64_t kAlign = 64;
int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Distinct kernels: equal Funcs (names apart) share one symbol.
class KernelTable {
 public:
  /// The symbol of `func`, for the step `name`.
  std::string add(Func func, const std::string& name) {
    const std::string base = func.name;
    func.name = "kernel";
    const auto [it, fresh] = by_text_.try_emplace(print(func), kernels_.size());
    if (fresh) {
      func.name = fmt::format("{}_{}", base, kernels_.size());
      kernels_.push_back({func.name, {}, std::move(func), {}, {}});
    }
    kernels_[it->second].steps.push_back(name);
    return kernels_[it->second].symbol;
  }
  std::vector<KernelReport>& kernels() { return kernels_; }

 private:
  std::map<std::string, size_t> by_text_;
  std::vector<KernelReport> kernels_;
};

/// Weights laid out one after the other; the same bytes under two value ids are stored once.
class WeightTable {
 public:
  int64_t add(const Array& value) {
    const auto [it, fresh] = by_data_.try_emplace({value.data(), value.bytes()}, total_);
    if (fresh) {
      pieces_.emplace_back(total_, value);
      total_ += aligned(std::max<int64_t>(value.bytes(), 1));
    }
    return it->second;
  }
  int64_t total() const { return total_; }
  std::vector<std::pair<int64_t, Array>> take() { return std::move(pieces_); }

 private:
  std::map<std::pair<const void*, int64_t>, int64_t> by_data_;
  std::vector<std::pair<int64_t, Array>> pieces_;
  int64_t total_ = 0;
};

/// Schedules and lowers all kernels on `jobs` threads.
Result<std::vector<Func>> lower_all(std::vector<KernelReport>& kernels,
                                    const CompileOptions& options) {
  std::vector<Func> lowered(kernels.size());
  std::atomic<size_t> next = 0;
  std::mutex lock;
  std::optional<Error> problem;
  std::exception_ptr bug;
  Progress progress("scheduling");
  auto work = [&] {
    try {
      for (size_t i = next++; i < kernels.size() && !interrupted(); i = next++) {
        const KernelOptions kernel_options{options.target, options.threads, options.level > 0};
        Result<ScheduledKernel> kernel = schedule_and_lower(kernels[i].func, kernel_options);
        const std::lock_guard<std::mutex> guard(lock);
        progress.update(static_cast<int64_t>(i), static_cast<int64_t>(kernels.size()),
                        kernels[i].symbol);
        if (!kernel) {
          problem = std::move(kernel.error()).at(kernels[i].steps.front());
          return;
        }
        kernels[i].trace = std::move(kernel->trace);
        kernels[i].scheduled = std::move(kernel->scheduled);
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
  if (bug) std::rethrow_exception(bug);
  if (problem) return tl::unexpected<Error>(std::move(*problem));
  TW_TRY_STATUS(check_interrupt());
  return lowered;
}

Status generate(KernelTable& table, const CompileOptions& options, CompiledModel& model,
                runtime::Program& program) {
  const std::vector<Func> lowered = TW_TRY(lower_all(table.kernels(), options));
  if (!lowered.empty()) {
    BackendOptions backend;
    backend.target = options.target;
    backend.use_c = options.use_c;
    backend.jobs = options.jobs;
    SharedCode code = TW_TRY(compile_shared(lowered, backend));
    model.code = std::move(code.bytes);
    program.kernels = std::move(code.kernels);
  }
  TW_TRY_STATUS(check_interrupt());
  model.kernels = std::move(table.kernels());
  return {};
}

void describe(runtime::Program& program, const CompileOptions& options) {
  program.target = {options.target.name, options.target.triple, options.target.cpu,
                    options.target.features};
  program.math = options.math == MathMode::Fast ? "fast" : "exact";
  program.notes["compiler"] = "tilewright 0.1.0";
  program.notes["threads"] = std::to_string(options.threads);
  if (!options.command.empty()) program.notes["command"] = options.command;
}

/// Builds the Program of one graph.
class ProgramBuilder {
 public:
  ProgramBuilder(const graph::Graph& graph, const std::vector<graph::Group>& groups,
                 const CompileOptions& options)
      : graph_(graph),
        groups_(groups),
        options_(options),
        plan_(graph::plan_memory(graph, groups)) {}

  Status build(runtime::Program& program, KernelTable& kernels, WeightTable& weights) {
    program.name = graph_.name;
    add_values(program, weights);
    for (const graph::Group& group : groups_) {
      if (group.kind == graph::GroupKind::Alias) {
        TW_TRY_STATUS(add_alias(program, group));
      } else if (group.kind == graph::GroupKind::Host) {
        add_host(program, group);
      } else {
        TW_TRY_STATUS(add_kernel(program, group, kernels, weights));
      }
    }
    empty_border_views(program);
    program.inputs.assign(graph_.inputs.begin(), graph_.inputs.end());
    program.outputs.assign(graph_.outputs.begin(), graph_.outputs.end());
    program.arena_bytes = plan_.arena_bytes;
    program.arena_lower_bound = plan_.lower_bound;
    return {};
  }

 private:
  void add_values(runtime::Program& program, WeightTable& weights) {
    using Place = runtime::ValueSpec::Place;
    const std::set<graph::ValueId> inputs(graph_.inputs.begin(), graph_.inputs.end());
    const std::set<graph::ValueId> outputs(graph_.outputs.begin(), graph_.outputs.end());
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const graph::Value& value = graph_.values[i];
      const auto id = static_cast<graph::ValueId>(i);
      runtime::ValueSpec spec;
      spec.name = value.name;
      spec.dtype = value.type.dtype;
      spec.shape = value.type.shape;
      spec.dynamic_axis = value.type.dynamic_axis;
      if (value.constant) {
        spec.place = Place::Weights;
        spec.offset = weights.add(*value.constant);
      } else if (inputs.contains(id)) {
        spec.place = Place::Input;
      } else if (outputs.contains(id)) {
        spec.place = Place::Output;
      } else {
        spec.offset = std::max<int64_t>(plan_.offset[i], 0);
      }
      program.values.push_back(std::move(spec));
    }
  }

  /// A reshape costs nothing inside the arena; at the program's border its bytes are copied.
  Status add_alias(runtime::Program& program, const graph::Group& group) {
    const graph::Node& node = graph_.nodes[static_cast<size_t>(group.nodes[0])];
    const graph::ValueId out = node.outputs[0];
    using Place = runtime::ValueSpec::Place;
    if (program.values[out].place == Place::Arena && plan_.alias[out] >= 0) {
      const graph::ValueId source = plan_.alias[out];
      program.values[out].place = program.values[source].place;
      program.values[out].offset = program.values[source].offset;
      alias_of_[out] = alias_of_.contains(source) ? alias_of_[source] : source;
      return {};
    }
    runtime::StepSpec step;
    step.name = node.name;
    step.host = "Copy";
    step.attrs = "{}";
    step.args = {resolve(program, node.inputs[0]), out};
    program.steps.push_back(std::move(step));
    return {};
  }

  /// Aliases of inputs and outputs are those values themselves: only arena and weights have views.
  int resolve(const runtime::Program& program, graph::ValueId id) const {
    using Place = runtime::ValueSpec::Place;
    const auto it = alias_of_.find(id);
    const bool border =
        it != alias_of_.end() && (program.values[it->second].place == Place::Input ||
                                  program.values[it->second].place == Place::Output);
    return border ? it->second : id;
  }

  /// Steps name the input or output itself (`resolve`), so its views hold no bytes.
  void empty_border_views(runtime::Program& program) const {
    using Place = runtime::ValueSpec::Place;
    for (const auto& [view, source] : alias_of_) {
      const Place place = program.values[source].place;
      if (place != Place::Input && place != Place::Output) continue;
      runtime::ValueSpec empty;
      empty.name = program.values[view].name;
      empty.dtype = program.values[view].dtype;
      empty.shape = {0};
      program.values[view] = std::move(empty);
    }
  }

  void add_host(runtime::Program& program, const graph::Group& group) {
    const graph::Node& node = graph_.nodes[static_cast<size_t>(group.nodes[0])];
    runtime::StepSpec step;
    step.name = node.name;
    step.host = tensor::find_op(node.domain, node.op)->host;
    step.attrs = attrs_to_json(node.attrs);
    for (graph::ValueId id : node.inputs) step.args.push_back(id < 0 ? -1 : resolve(program, id));
    step.args.insert(step.args.end(), node.outputs.begin(), node.outputs.end());
    step.num_outputs = static_cast<int>(node.outputs.size());
    program.steps.push_back(std::move(step));
  }

  Status add_kernel(runtime::Program& program, const graph::Group& group, KernelTable& kernels,
                    WeightTable& weights) {
    const std::string& name = graph_.nodes[static_cast<size_t>(group.anchor)].name;
    Result<graph::GroupFunc> made = graph::group_func(graph_, group, options_.math);
    if (!made) return tl::unexpected<Error>(std::move(made.error()).at(name));
    runtime::StepSpec step;
    step.name = name;
    step.num_outputs = static_cast<int>(group.outputs.size());
    // Constant tables of the operators themselves come after the arguments; outputs must be last.
    std::vector<Param> given, outs;
    for (size_t i = 0; i < made->func.params.size(); ++i) {
      const Param& param = made->func.params[i];
      const bool out = param.mode == ParamMode::Out;
      (out ? outs : given).push_back(param);
      if (out) continue;
      step.args.push_back(i < made->args.size() ? resolve(program, made->args[i])
                                                : add_table(program, weights, name, param));
    }
    step.args.insert(step.args.end(), group.outputs.begin(), group.outputs.end());
    given.insert(given.end(), outs.begin(), outs.end());
    made->func.params = std::move(given);
    step.kernel = kernels.add(std::move(made->func), name);
    program.steps.push_back(std::move(step));
    return {};
  }

  static int add_table(runtime::Program& program, WeightTable& weights, const std::string& step,
                       const Param& table) {
    TW_CHECK(table.values.has_value(), "parameter {} of {}", table.buffer.name(), step);
    runtime::ValueSpec spec;
    spec.place = runtime::ValueSpec::Place::Weights;
    spec.name = fmt::format("{}.{}", step, table.buffer.name());
    spec.dtype = table.values->dtype();
    spec.shape = table.values->shape();
    spec.offset = weights.add(*table.values);
    program.values.push_back(std::move(spec));
    return static_cast<int>(program.values.size()) - 1;
  }

  const graph::Graph& graph_;
  const std::vector<graph::Group>& groups_;
  const CompileOptions& options_;
  graph::MemoryPlan plan_;
  std::map<graph::ValueId, graph::ValueId> alias_of_;
};

/// The default graph passes; below level 2 layouts stay as they are.
std::string passes_of(int level) {
  std::string names = graph::default_passes();
  const std::string layout = "block_layout,";
  if (level < 2) names.erase(names.find(layout), layout.size());
  return names;
}

}  // namespace

Result<CompiledModel> compile_graph(const graph::Graph& graph, const CompileOptions& options) {
  CompiledModel model;
  model.graph = graph;
  if (options.level > 0) {
    graph::PassContext context;
    context.evaluate = make_evaluate();
    context.vector_bytes = options.target.vector_bytes;
    graph::PassResult result =
        TW_TRY(graph::run_passes(std::move(model.graph), passes_of(options.level), context));
    model.graph = std::move(result.graph);
    model.changes = graph::explain(result.reports);
  }
  TW_TRY_STATUS(check_interrupt());
  const std::vector<graph::Group> groups = graph::fuse(model.graph, {.enable = options.level > 0});
  for (std::string& line : graph::explain(model.graph, groups))
    model.changes.push_back(std::move(line));
  auto program = std::make_shared<runtime::Program>();
  KernelTable kernels;
  WeightTable weights;
  TW_TRY_STATUS(ProgramBuilder(model.graph, groups, options).build(*program, kernels, weights));
  describe(*program, options);
  program->weights_bytes = weights.total();
  model.weights = weights.take();
  TW_TRY_STATUS(generate(kernels, options, model, *program));
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
  Func chosen = func;
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
  if (trace != nullptr) chosen = TW_TRY(schedule::replay(chosen, *trace));
  step.kernel = kernels.add(std::move(chosen), func.name);
  program->steps.push_back(std::move(step));
  program->weights_bytes = weights.total();
  model.weights = weights.take();
  CompileOptions kernel_options = options;
  if (trace != nullptr) kernel_options.level = 0;
  TW_TRY_STATUS(generate(kernels, kernel_options, model, *program));
  model.program = std::move(program);
  return model;
}

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
  auto lookup = [library](const std::string& symbol) {
    return library ? reinterpret_cast<tw_kernel>(library->find(symbol)) : nullptr;
  };
  return runtime::Session::create(model.program, lookup, std::move(weights), session);
}

Status save_package(const std::string& path, const CompiledModel& model) {
  runtime::PackageContents contents;
  contents.program = *model.program;
  std::map<graph::ValueId, int64_t> offsets;
  for (size_t i = 0; i < model.graph.values.size(); ++i)
    if (model.graph.values[i].constant)
      offsets[static_cast<graph::ValueId>(i)] = model.program->values[i].offset;
  graph::ExportOptions export_options;
  export_options.weights = graph::ExportOptions::Weights::External;
  export_options.place = [&](graph::ValueId id) -> std::optional<int64_t> {
    const auto it = offsets.find(id);
    return it == offsets.end() ? std::nullopt : std::optional(it->second);
  };
  std::string graph;
  if (!model.graph.nodes.empty()) {
    const std::vector<graph::Group> groups = graph::fuse(model.graph);
    graph = graph::to_onnx(graph::summarise(model.graph, groups), export_options);
  }
  contents.graph = graph;
  contents.code = model.code;
  for (const auto& [offset, value] : model.weights)
    contents.weights.push_back(
        {offset, {static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes())}});
  std::string records;
  for (const KernelReport& kernel : model.kernels)
    records += nlohmann::json{{"kernel", kernel.symbol},
                              {"steps", kernel.steps},
                              {"schedule", schedule::print(kernel.trace)}}
                   .dump() +
               "\n";
  contents.records = records;
  return runtime::write_package(path, contents);
}

}  // namespace tilewright::driver
