#include "tilewright/compile/fpga/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/graph/ir/fold.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::compile {
namespace {

using graph::Graph;
using graph::Group;
using graph::ValueId;

const hw::FpgaDevice& fpga_device_of(const CompileOptions& options) {
  return fpga_target(options.target)->device;
}

/// `exp` and the like: the model knows no cells for them, and the Verilog has none.
bool calls_functions(const Func& func) {
  bool found = false;
  walk(func.body, {}, [&](const Expr& e) { found |= e.as<MathCall>() != nullptr; });
  return found;
}

Error unsupported_layer(const char* what, const char* why = "") {
  return {ErrorKind::Unsupported, what, {}, why, {}, {}};
}

bool is_fpga_layer(const Group& group) {
  return group.kind == graph::GroupKind::Kernel && group.fusion == tensor::Fusion::Complex;
}

/// Takes nodes away from the FPGA until every group that is left has a design. A group loses its
/// last node first: what cannot be computed behind a sum, and what only the C++ can, so that a
/// package runs on all devices. A sum that only the C++ has stays.
class FpgaPlacer {
 public:
  FpgaPlacer(const Graph& graph, const CompileOptions& options, FpgaMemo& memo)
      : graph_(graph), options_(options), memo_(memo), devices_(graph.nodes.size(), kFpgaTarget) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const graph::Node& node = graph.nodes[n];
      graph::Placement& place = places_.nodes.emplace_back();
      place.node = static_cast<int>(n);
      place.name = node.name;
      place.op = node.op;
      place.where = graph::Where::Accelerator;
      if (!graph::is_view(node)) continue;
      place.where = graph::Where::Nothing;
      devices_[n].clear();
    }
  }

  Result<FpgaPlaces> run() {
    do {
      changed_ = false;
      layers_.clear();
      for (const Group& group : groups()) {
        if (group.device.empty()) continue;
        if (is_fpga_layer(group))
          TW_TRY_STATUS(judge(group));
        else
          for (const int n : group.nodes)
            leave(n, unsupported_layer("no convolution or product"), true);
      }
    } while (changed_);
    options_.observer.end("designs");
    if (fpga_target(options_.target)->share) TW_TRY_STATUS(share());
    places_.devices = devices_of(graph_, places_.nodes, kFpgaTarget);
    places_.summary = summary();
    return std::move(places_);
  }

 private:
  std::vector<Group> groups() const {
    graph::FuseOptions fusion;
    fusion.device = [this](int node) { return devices_[static_cast<size_t>(node)]; };
    return graph::fuse(graph_, fusion);
  }

  Status judge(const Group& group) {
    TW_TRY_STATUS(options_.observer.check());
    const std::string& name = graph_.nodes[static_cast<size_t>(group.anchor)].name;
    options_.observer.step("designs", group.anchor, static_cast<int64_t>(graph_.nodes.size()),
                           name);
    const Result<const FpgaLayer*> layer = layer_of(group);
    const int last = group.nodes.back();
    if (!layer)
      leave(last, layer.error(), last != group.anchor);
    else if ((*layer)->no_verilog && last != group.anchor)
      leave(last, unsupported_layer((*layer)->no_verilog->what.c_str()), true);
    else
      layers_.push_back(*layer);
    return {};
  }

  Result<const FpgaLayer*> layer_of(const Group& group) {
    const graph::GroupFunc made = TW_TRY(graph::group_func(graph_, group, options_.math));
    return memo_.layer(made.func, options_);
  }

  Status share() {
    std::vector<FpgaUse> uses;
    std::map<std::string, size_t> known;
    const std::vector<Group> all = groups();
    for (const Group& group : all) {
      if (group.device.empty() || !is_fpga_layer(group)) continue;
      const graph::GroupFunc made = TW_TRY(graph::group_func(graph_, group, options_.math));
      const auto [at, fresh] = known.try_emplace(fpga_workload(made.func), uses.size());
      if (fresh)
        uses.push_back({made.func, 1});
      else
        ++uses[at->second].times;
    }
    TW_TRY_STATUS(memo_.share(uses, options_));
    layers_.clear();
    for (const Group& group : all)
      if (!group.device.empty() && is_fpga_layer(group)) layers_.push_back(TW_TRY(layer_of(group)));
    return {};
  }

  /// The processor computes node `n`. `meant`: it is no convolution or product.
  void leave(int n, const Error& why, bool meant) {
    changed_ = true;
    devices_[static_cast<size_t>(n)].clear();
    graph::Placement& place = places_.nodes[static_cast<size_t>(n)];
    place.where = graph::Where::Cpu;
    place.meant = meant;
    place.why = why.why.empty() ? why.what : why.what + ": " + why.why;
    place.kind = why.kind;
  }

  std::string summary() const {
    const hw::FpgaDevice& device = fpga_device_of(options_);
    std::set<int> designs;
    double cycles = 0;
    const FpgaProgram* largest = nullptr;
    for (const FpgaLayer* layer : layers_) {
      const FpgaProgram* program = &layer->program;
      cycles += static_cast<double>(program->cycles());
      designs.insert(layer->structure);
      const auto share = [&](const FpgaProgram* p) {
        return p != nullptr && p->model ? share_of_cells(p->model->cells, device) : 0;
      };
      if (share(program) > share(largest)) largest = program;
    }
    const auto here = std::count_if(places_.nodes.begin(), places_.nodes.end(),
                                    [](auto& place) { return place.where == graph::Where::Cpu; });
    std::string text = fmt::format("{}: {}, one after the other; {} nodes stay on the processor",
                                   device.name, layers_text(layers_.size(), designs.size()), here);
    if (cycles > 0)
      text += fmt::format("\n  {:.0f} cycles by the model, {:.4g} ms at {} MHz", cycles,
                          cycles / device.clock_mhz * 1e-3, device.clock_mhz);
    if (largest != nullptr)
      text +=
          fmt::format("\n  the largest design takes {}", cells_text(largest->model->cells, device));
    return text;
  }

  const Graph& graph_;
  const CompileOptions& options_;
  FpgaMemo& memo_;
  std::vector<std::string> devices_;
  FpgaPlaces places_;
  std::vector<const FpgaLayer*> layers_;
  bool changed_ = false;
};

/// For people: what a design is, and its processes.
Result<std::vector<std::string>> program_lines(const FpgaProgram& program,
                                               const hw::FpgaDevice& device) {
  std::vector<std::string> lines;
  if (program.record) lines.push_back(program.remark);
  for (const LayerNote& note : TW_TRY(fpga_notes(program, device)))
    for (const std::string& line : note.lines)
      lines.push_back(note.layer.empty() ? line : note.layer + ": " + line);
  return lines;
}

/// Designs and calls of one launch.
class FpgaLaunchWriter {
 public:
  FpgaLaunchWriter(const Graph& graph, const CompileOptions& options, FpgaMemo& memo)
      : graph_(graph), options_(options), memo_(memo) {
    network_.device = fpga_device_of(options);
  }

  Result<LaunchCode> run(const Group& launch) {
    code_.notes.emplace_back();
    for (const Group& part : launch.parts) {
      if (part.kind == graph::GroupKind::Alias) {
        const graph::Node& node = graph_.nodes[static_cast<size_t>(part.nodes[0])];
        values_[node.outputs[0]] = value_of(node.inputs[0]);
        continue;
      }
      const std::string& name = graph_.nodes[static_cast<size_t>(part.anchor)].name;
      Status added = layer(part, name);
      if (!added) return tl::unexpected<Error>(std::move(added.error()).at(name));
    }
    for (const ValueId id : launch.inputs)
      if (!graph_.values[static_cast<size_t>(id)].constant) network_.inputs.push_back(value_of(id));
    for (const ValueId id : launch.outputs) network_.outputs.push_back(value_of(id));
    return finish();
  }

 private:
  /// The memory of a value: constants that share bytes lie there once.
  int value_of(ValueId id) {
    const auto [it, fresh] = values_.try_emplace(id, static_cast<int>(network_.values.size()));
    if (!fresh) return it->second;
    const graph::Value& value = graph_.values[static_cast<size_t>(id)];
    FpgaNetwork::Value made{storage_bytes(value.type.dtype, element_count(value.type.shape)), -1};
    if (value.constant) made.constant = add_constant(*value.constant);
    network_.values.push_back(made);
    return it->second;
  }

  /// Where it begins; equal bytes lie there once.
  int64_t add_constant(const Array& array) {
    const auto offset = static_cast<int64_t>(network_.constants.size());
    const auto [it, fresh] = constants_.try_emplace(array.data(), offset);
    if (fresh)
      network_.constants.append(static_cast<const char*>(array.data()),
                                static_cast<size_t>(array.bytes()));
    return it->second;
  }

  /// Known weights with their axes in another order.
  int weights_of(ValueId id, const std::vector<int>& order) {
    const auto next = static_cast<int>(network_.values.size());
    const auto [it, fresh] = weights_.try_emplace({id, order}, next);
    if (!fresh) return it->second;
    const Array array = in_order(*graph_.values[static_cast<size_t>(id)].constant, order);
    network_.values.push_back({array.bytes(), static_cast<int64_t>(network_.constants.size())});
    network_.constants.append(static_cast<const char*>(array.data()),
                              static_cast<size_t>(array.bytes()));
    return it->second;
  }

  Status layer(const Group& part, const std::string& name) {
    const graph::GroupFunc made = TW_TRY(graph::group_func(graph_, part, options_.math));
    const FpgaLayer* best = TW_TRY(memo_.layer(made.func, options_));
    const auto [it, fresh] = designs_.try_emplace(best, static_cast<int>(network_.designs.size()));
    if (fresh) TW_TRY_STATUS(design(*best));
    FpgaNetwork::Call call{name, it->second, {}};
    for (size_t i = 0; i < made.args.size(); ++i) {
      const bool other = best->order && best->order->param == i;
      call.values.push_back(other ? weights_of(made.args[i], best->order->order)
                                  : value_of(made.args[i]));
    }
    code_.kernels[static_cast<size_t>(it->second)].steps.push_back(name);
    LayerNote note{name, lines_[static_cast<size_t>(it->second)]};
    note.lines.insert(note.lines.begin(), fmt::format("design {}", memo_.design_number(*best)));
    code_.notes.push_back(std::move(note));
    network_.calls.push_back(std::move(call));
    return {};
  }

  Status design(const FpgaLayer& layer) {
    const FpgaProgram& program = layer.program;
    network_.designs.push_back({program.func, program.cycles(), memo_.design_number(layer)});
    lines_.push_back(TW_TRY(program_lines(program, network_.device)));
    detail_->programs.push_back(program);
    code_.stale_records += program.stale_records;
    if (program.record) code_.record = program.record;
    KernelReport& report = code_.kernels.emplace_back();
    report.func = program.source;
    report.trace = program.steps;
    report.scheduled = program.func;
    report.record = program.record;
    report.predicted = static_cast<double>(program.cycles());
    return {};
  }

  LaunchCode finish() {
    code_.kernel_count = static_cast<int64_t>(network_.designs.size());
    add_designs_of_other_launches();
    code_.notes[0].lines = {
        fmt::format("{}; {} cycles by the model", layers_text(network_), network_.cycles())};
    code_.device = kFpgaTarget;
    code_.weight_bytes = static_cast<int64_t>(network_.constants.size());
    code_.bytes = serialise(network_);
    code_.detail = std::move(detail_);
    return std::move(code_);
  }

  void add_designs_of_other_launches() {
    std::set<const FpgaLayer*> missing;
    for (const auto& [layer, index] : designs_)
      for (const FpgaLayer* other : memo_.sharing(*layer))
        if (!designs_.contains(other)) missing.insert(other);
    std::map<std::string, FpgaNetwork::Design> by_text;  // in an order that no address decides
    for (const FpgaLayer* layer : missing)
      by_text[print(layer->program.func)] = {layer->program.func, layer->program.cycles(),
                                             memo_.design_number(*layer)};
    for (auto& [text, design] : by_text) network_.designs.push_back(std::move(design));
  }

  const Graph& graph_;
  const CompileOptions& options_;
  FpgaMemo& memo_;
  FpgaNetwork network_;
  LaunchCode code_;
  std::shared_ptr<FpgaLaunchCode> detail_ = std::make_shared<FpgaLaunchCode>();
  std::map<ValueId, int> values_;
  std::map<const void*, int64_t> constants_;
  std::map<std::pair<ValueId, std::vector<int>>, int> weights_;
  std::map<const FpgaLayer*, int> designs_;
  std::vector<std::vector<std::string>> lines_;  ///< of each design
};

/// By the model, or why there is none.
FpgaLayer best_layer(const Func& func, const hw::FpgaDevice& device) {
  FpgaLayer best;
  FpgaProgram& program = best.program;
  if (calls_functions(func)) {
    program.unscheduled =
        unsupported_layer("it computes a function", "the model knows no cells for functions");
    return best;
  }
  program = fpga_program(func, device);
  if (program.unscheduled) return best;
  for (AxisOrder& order : weight_orders(func)) {
    FpgaProgram other = fpga_program(with_order(func, order), device);
    if (!other.model || other.model->time.cycles >= program.model->time.cycles) continue;
    program = std::move(other);
    best.order = std::move(order);
  }
  if (const Status cpp = check_cpp(program.func, device); !cpp) program.unscheduled = cpp.error();
  const Result<fpga::Design> design = fpga_design(program.func, device);
  if (!design)
    best.no_verilog = design.error();
  else if (const Status verilog = fpga::rtl_supports(*design); !verilog)
    best.no_verilog = verilog.error();
  return best;
}

}  // namespace

Result<const FpgaLayer*> FpgaMemo::layer(const Func& func, const CompileOptions& options) {
  const hw::FpgaDevice& device = fpga_device_of(options);
  const std::string key = fpga_workload(func);
  const auto [it, fresh] = layers_.try_emplace(key);
  if (fresh) {
    it->second = best_layer(func, device);
    it->second.structure = structures_++;
  }
  const auto shared = shared_.find(key);
  const FpgaLayer& best = shared != shared_.end() ? shared->second : it->second;
  if (best.program.unscheduled) return tl::unexpected<Error>(*best.program.unscheduled);
  // Records are of the program with its weights in order.
  const std::string workload = fpga_workload(best.program.source);
  if (!options.network || !options.network(workload)) return &best;
  const auto [known, first] = layers_.try_emplace("recorded " + workload);
  if (first)
    known->second = {.program = fpga_program(best.program.source, device, options.network),
                     .order = best.order,
                     .structure = structures_++};
  return &known->second;
}

Status FpgaMemo::share(const std::vector<FpgaUse>& uses, const CompileOptions& options) {
  const hw::FpgaDevice& device = fpga_device_of(options);
  std::map<std::string, std::vector<FpgaUse>> forms;
  for (const FpgaUse& use : uses)
    if (!shared_.contains(fpga_workload(use.func))) forms[form_of(use.func, device)].push_back(use);
  int64_t at = 0;
  for (const auto& [form, alike] : forms) {
    TW_TRY_STATUS(options.observer.check());
    options.observer.step("common designs", at++, static_cast<int64_t>(forms.size()),
                          alike[0].func.name);
    if (form.empty() || alike.size() < 2) continue;
    auto layers = shared_layers(alike, device, structures_);
    if (!layers) continue;
    for (size_t i = 0; i < alike.size(); ++i) {
      structures_ = std::max(structures_, (*layers)[i].structure + 1);
      shared_[fpga_workload(alike[i].func)] = std::move((*layers)[i]);
    }
  }
  options.observer.end("common designs");
  return {};
}

int FpgaMemo::design_number(const FpgaLayer& layer) {
  return numbers_.try_emplace(layer.structure, static_cast<int>(numbers_.size())).first->second;
}

std::vector<const FpgaLayer*> FpgaMemo::sharing(const FpgaLayer& layer) const {
  std::vector<const FpgaLayer*> all;
  for (const auto& [workload, other] : shared_)
    if (other.structure == layer.structure) all.push_back(&other);
  return all;
}

Result<FpgaPlaces> place_on_fpga(const Graph& graph, const CompileOptions& options,
                                 FpgaMemo& memo) {
  return FpgaPlacer(graph, options, memo).run();
}

Result<LaunchCode> compile_fpga_layers(const Graph& graph, const Group& launch,
                                       const CompileOptions& options, FpgaMemo& memo) {
  return FpgaLaunchWriter(graph, options, memo).run(launch);
}

Result<LaunchCode> compile_fpga_program(const Func& func, const CompileOptions& options) {
  const hw::FpgaDevice& device = fpga_device_of(options);
  auto detail = std::make_shared<FpgaLaunchCode>();
  FpgaProgram& program = detail->programs.emplace_back(fpga_program(func, device, options.network));
  options.observer.say(program.remark);
  LaunchCode made;
  made.device = kFpgaTarget;
  made.bytes = serialise(TW_TRY(network_of(program.func, program.cycles(), device)));
  TW_TRY_STATUS(check_cpp(program.func, device));
  made.notes = TW_TRY(fpga_notes(program, device));
  made.stale_records = program.stale_records;
  made.record = program.record;
  if (!program.steps.empty()) {
    KernelReport& report = made.kernels.emplace_back();
    report.steps = {func.name};
    report.func = func;
    report.trace = program.steps;
    report.scheduled = program.func;
    report.record = program.record;
  }
  made.detail = std::move(detail);
  return made;
}

}  // namespace tilewright::compile
