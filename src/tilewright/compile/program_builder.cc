#include "tilewright/compile/program_builder.h"

#include <fmt/format.h>

#include <set>

#include "tilewright/base/check.h"
#include "tilewright/compile/evaluate.h"
#include "tilewright/graph/partition/views.h"
#include "tilewright/ir/text.h"
#include "tilewright/tensor/op.h"

namespace tilewright::compile {
namespace {

constexpr int64_t kAlign = 64;
int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// A constant table of an operator as a weight.
int add_table(runtime::Program& program, WeightTable& weights, const std::string& step,
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

}  // namespace

std::string KernelTable::add(Func func, const std::string& name) {
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

int64_t WeightTable::add(const Array& value) {
  const auto [it, fresh] = by_data_.try_emplace({value.data(), value.bytes()}, total_);
  if (fresh) {
    pieces_.emplace_back(total_, value);
    total_ += aligned(std::max<int64_t>(value.bytes(), 1));
  }
  return it->second;
}

ProgramBuilder::ProgramBuilder(const graph::Graph& graph, const std::vector<graph::Group>& groups,
                               MathMode math, KernelForm form, CompileLaunch compile_launch)
    : graph_(graph),
      groups_(groups),
      math_(math),
      form_(std::move(form)),
      compile_launch_(std::move(compile_launch)),
      plan_(graph::plan_memory(graph, groups)) {}

Status ProgramBuilder::build(runtime::Program& program, KernelTable& kernels,
                             WeightTable& weights) {
  program.name = graph_.name;
  add_values(program, weights);
  for (size_t id = 0; id < plan_.made_in.size(); ++id)
    if (plan_.made_in[id] >= 0) show(program, static_cast<graph::ValueId>(id), plan_.made_in[id]);
  for (const graph::Group& group : groups_) {
    if (group.kind == graph::GroupKind::Alias) {
      add_alias(program, group);
    } else if (group.kind == graph::GroupKind::Host) {
      add_host(program, group);
    } else if (group.kind == graph::GroupKind::Launch) {
      TW_TRY_STATUS(add_launch(program, group));
    } else {
      TW_TRY_STATUS(add_kernel(program, group, kernels, weights));
    }
  }
  program.inputs.assign(graph_.inputs.begin(), graph_.inputs.end());
  program.outputs.assign(graph_.outputs.begin(), graph_.outputs.end());
  program.arena_bytes = plan_.arena_bytes;
  program.arena_lower_bound = plan_.lower_bound;
  return {};
}

/// Values that steps of the program name. What stays inside a kernel or a launch takes no memory.
std::set<graph::ValueId> ProgramBuilder::named_values() const {
  std::set<graph::ValueId> named(graph_.inputs.begin(), graph_.inputs.end());
  named.insert(graph_.outputs.begin(), graph_.outputs.end());
  for (const graph::Group& group : groups_) {
    const bool launch = group.kind == graph::GroupKind::Launch;
    for (graph::ValueId id : group.inputs)
      if (id >= 0 && !(launch && graph_.values[static_cast<size_t>(id)].constant)) named.insert(id);
    named.insert(group.outputs.begin(), group.outputs.end());
  }
  return named;
}

void ProgramBuilder::add_values(runtime::Program& program, WeightTable& weights) {
  using Place = runtime::ValueSpec::Place;
  const std::set<graph::ValueId> inputs(graph_.inputs.begin(), graph_.inputs.end());
  const std::set<graph::ValueId> outputs(graph_.outputs.begin(), graph_.outputs.end());
  const std::set<graph::ValueId> named = named_values();
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const graph::Value& value = graph_.values[i];
    const auto id = static_cast<graph::ValueId>(i);
    runtime::ValueSpec spec;
    spec.name = value.name;
    spec.dtype = value.type.dtype;
    spec.shape = value.type.shape;
    spec.dynamic_axis = value.type.dynamic_axis;
    if (!named.contains(id)) {
      spec.shape = {0};
      spec.dynamic_axis = -1;  // the shape has no such axis any more
    } else if (value.constant) {
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

/// Puts `view` where the bytes of `source` are, under its own shape.
void ProgramBuilder::show(runtime::Program& program, graph::ValueId view, graph::ValueId source) {
  using Place = runtime::ValueSpec::Place;
  const runtime::ValueSpec& from = program.values[source];
  runtime::ValueSpec& to = program.values[view];
  const bool border = from.place == Place::Input || from.place == Place::Output;
  to.place = border ? Place::View : from.place;
  to.of = border ? source : from.of;
  to.offset = from.offset;
}

/// A reshape costs nothing inside the arena, nor of an input or of what a kernel makes; else its
/// bytes are copied.
void ProgramBuilder::add_alias(runtime::Program& program, const graph::Group& group) const {
  const graph::Node& node = graph_.nodes[static_cast<size_t>(group.nodes[0])];
  if (graph::parts_of(graph_, node)) return;  // its parts have their places in the arena
  const graph::ValueId in = node.inputs[0], out = node.outputs[0];
  if (program.values[in].of == out) return;  // made where it is wanted
  using Place = runtime::ValueSpec::Place;
  if (program.values[out].place == Place::Arena && plan_.alias[out] >= 0)
    return show(program, out, plan_.alias[out]);
  runtime::StepSpec step;
  step.name = node.name;
  step.host = "Copy";
  step.attrs = "{}";
  step.args = {in, out};
  program.steps.push_back(std::move(step));
}

void ProgramBuilder::add_host(runtime::Program& program, const graph::Group& group) {
  const graph::Node& node = graph_.nodes[static_cast<size_t>(group.nodes[0])];
  runtime::StepSpec step;
  step.name = node.name;
  step.host = tensor::find_op(node.domain, node.op)->host;
  step.attrs = attrs_to_json(node.attrs);
  step.args.assign(node.inputs.begin(), node.inputs.end());
  step.args.insert(step.args.end(), node.outputs.begin(), node.outputs.end());
  step.num_outputs = static_cast<int>(node.outputs.size());
  program.steps.push_back(std::move(step));
}

Status ProgramBuilder::add_kernel(runtime::Program& program, const graph::Group& group,
                                  KernelTable& kernels, WeightTable& weights) {
  const std::string& name = graph_.nodes[static_cast<size_t>(group.anchor)].name;
  Result<graph::GroupFunc> made = graph::group_func(graph_, group, math_);
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
    step.args.push_back(i < made->args.size() ? made->args[i]
                                              : add_table(program, weights, name, param));
  }
  step.args.insert(step.args.end(), group.outputs.begin(), group.outputs.end());
  given.insert(given.end(), outs.begin(), outs.end());
  made->func.params = std::move(given);
  step.kernel = kernels.add(form_(made->func), name);
  program.steps.push_back(std::move(step));
  return {};
}

Status ProgramBuilder::add_launch(runtime::Program& program, const graph::Group& group) {
  runtime::StepSpec step;
  step.launch = TW_TRY(compile_launch_(group));
  step.name = step.launch;
  step.num_outputs = static_cast<int>(group.outputs.size());
  for (graph::ValueId id : group.inputs)
    if (!graph_.values[id].constant) step.args.push_back(id);
  step.args.insert(step.args.end(), group.outputs.begin(), group.outputs.end());
  program.launches[step.launch].device = graph::device_name(group.device);
  program.steps.push_back(std::move(step));
  return {};
}

}  // namespace tilewright::compile
