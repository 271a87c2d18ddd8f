// Appending nodes to the graph being imported: shape inference with constant propagation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/graph/ir/fold.h"
#include "tilewright/graph/onnx/importer.h"
#include "tilewright/tensor/value_limits.h"

namespace tilewright::graph {
namespace {

constexpr int64_t kEagerInput = 1 << 20;   ///< bytes: nodes on constants up to this are folded...
constexpr int64_t kEagerOutput = 1 << 16;  ///< ...at once if they yield at most this
constexpr int64_t kForcedOutput = 1
                                  << 28;  ///< bytes of one value computed because a shape needs it

/// Integers with their scales: what accelerators take as they are. The pass fold_constants makes
/// floats of them for everyone else.
bool carries_scales(const Node& node) {
  return node.op == "QuantizeLinear" || node.op == "DequantizeLinear";
}

}  // namespace

ValueId Importer::add_constant(const std::string& name, Array array) {
  const tensor::TensorType type{array.dtype(), array.shape()};
  const ValueId id = graph_.add_value(names_.value(name), type, std::move(array));
  producer_.push_back(-1);
  runtime_.push_back(false);
  return id;
}

Status Importer::add_bytes(const tensor::TensorType& type) {
  const std::optional<int64_t> bytes = checked_bytes(type.dtype, type.shape);
  if (!bytes)
    return fail(ErrorKind::Capacity, fmt::format("{} has an impossible size", to_string(type)),
                fmt::format("dimensions must be 0 or more, sizes at most {} bytes", kMaxBytes));
  if (*bytes > kMaxBytes - total_bytes_)
    return fail(ErrorKind::Capacity, fmt::format("with {} the values of the model exceed {} bytes",
                                                 to_string(type), kMaxBytes));
  total_bytes_ += *bytes;
  return {};
}

std::set<ValueId> Importer::roots_of(ValueId id) const {
  std::set<ValueId> roots, seen;
  std::vector<ValueId> work{id};
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    if (v < 0 || !runtime_[static_cast<size_t>(v)] || !seen.insert(v).second) continue;
    const int n = producer_[static_cast<size_t>(v)];
    if (n < 0) {
      roots.insert(v);
    } else {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      work.insert(work.end(), node.inputs.begin(), node.inputs.end());
    }
  }
  return roots;
}

std::string Importer::inputs_behind(ValueId id) const {
  std::vector<std::string> names;
  for (ValueId root : roots_of(id))
    names.push_back("input '" + graph_.values[static_cast<size_t>(root)].name + "'");
  return fmt::format("{}", fmt::join(names, ", "));
}

bool Importer::bind_if_offered(ValueId id) {
  const std::set<ValueId> roots = roots_of(id);
  for (ValueId root : roots) {
    const Value& value = graph_.values[static_cast<size_t>(root)];
    const auto offered = options_.constants_if_needed.find(value.name);
    if (offered == options_.constants_if_needed.end() ||
        offered->second.dtype() != value.type.dtype || offered->second.shape() != value.type.shape)
      return false;
  }
  for (ValueId root : roots) {
    Value& value = graph_.values[static_cast<size_t>(root)];
    value.constant = options_.constants_if_needed.at(value.name);
    std::erase(graph_.inputs, root);
    runtime_[static_cast<size_t>(root)] = false;
  }
  for (const Node& node : graph_.nodes) {
    bool runtime = false;
    for (ValueId input : node.inputs) runtime |= input >= 0 && runtime_[static_cast<size_t>(input)];
    for (ValueId output : node.outputs)
      runtime_[static_cast<size_t>(output)] =
          runtime && !graph_.values[static_cast<size_t>(output)].constant;
  }
  return !roots.empty();
}

Status Importer::evaluate_node(size_t index) {
  const Node node = graph_.nodes[index];
  const auto inputs = known_inputs(graph_, node);
  if (!inputs) return fail(ErrorKind::Invalid, "its inputs are not constant");
  const tensor::OpCall call = op_call(graph_, node);
  std::vector<tensor::TensorType> types;
  for (ValueId id : node.outputs) types.push_back(graph_.values[static_cast<size_t>(id)].type);
  auto arrays = fold_trivially(call, types);
  if (!arrays) {
    if (!options_.evaluate)
      return fail(
          ErrorKind::Unsupported,
          fmt::format("{} '{}' would have to be computed at compile time", node.op, node.name));
    arrays = TW_TRY(options_.evaluate(call, *inputs));
  }
  if (arrays->size() != node.outputs.size())
    return fail(ErrorKind::Invalid, fmt::format("{} '{}' gave {} values instead of {}", node.op,
                                                node.name, arrays->size(), node.outputs.size()));
  for (size_t i = 0; i < arrays->size(); ++i) {
    Value& value = graph_.values[static_cast<size_t>(node.outputs[i])];
    const Array& array = (*arrays)[i];
    const tensor::TensorType type{array.dtype(), array.shape()};
    const bool bounded = value.type.dynamic_axis >= 0;  // its real extent is known now
    if (type.dtype != value.type.dtype || (type.shape != value.type.shape && !bounded))
      return fail(ErrorKind::Invalid,
                  fmt::format("{} '{}' gave {} instead of {}", node.op, node.name, to_string(type),
                              to_string(value.type)));
    value.type = type;
    value.constant = array;
  }
  return {};
}

Status Importer::force(ValueId id) {
  if (id < 0 || runtime_[static_cast<size_t>(id)]) return {};
  std::set<int> needed;  // in node order, which is topological
  std::vector<ValueId> work{id};
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    if (v < 0 || graph_.values[static_cast<size_t>(v)].constant) continue;
    const int n = producer_[static_cast<size_t>(v)];
    if (n < 0 || !needed.insert(n).second) continue;
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    work.insert(work.end(), node.inputs.begin(), node.inputs.end());
  }
  for (int n : needed) {
    for (ValueId out : graph_.nodes[static_cast<size_t>(n)].outputs) {
      const tensor::TensorType& type = graph_.values[static_cast<size_t>(out)].type;
      if (checked_bytes(type.dtype, type.shape).value_or(kMaxBytes) > kForcedOutput)
        return fail(ErrorKind::Capacity,
                    fmt::format("{} is too large to compute at compile time", to_string(type)));
    }
    TW_TRY_STATUS(evaluate_node(static_cast<size_t>(n)));
  }
  return {};
}

Status Importer::need_constants(const Node& node) {
  const tensor::OpDef* op = tensor::find_op(node.domain, node.op);
  if (op == nullptr)
    return fail(ErrorKind::Unsupported, fmt::format("operator {} is not supported", node.op));
  for (int index : op->constant_inputs) {
    if (index >= static_cast<int>(node.inputs.size())) continue;
    const ValueId id = node.inputs[static_cast<size_t>(index)];
    if (id < 0) continue;
    Status status = force(id);
    const Value& value = graph_.values[static_cast<size_t>(id)];
    if (value.constant) continue;
    if (status && bind_if_offered(id)) status = force(id);
    if (value.constant) continue;
    return fail(
        status ? ErrorKind::Unsupported : status.error().kind,
        fmt::format("input {} ('{}') of {} must be known at compile time", index, value.name,
                    node.op),
        status ? "it depends on " + inputs_behind(id) : status.error().what,
        status ? "--const NAME=@FILE.npy binds that input, if its value never changes" : "");
  }
  return {};
}

Status Importer::check_operands(Node& node, const tensor::OpCall& call) {
  if (!tensor::find_op(node.domain, node.op)->host.empty()) return {};  // looks at each itself
  for (const tensor::ValueLimits& limits : tensor::value_limits(call)) {
    ValueId& operand = node.inputs[limits.input];
    const Value& value = graph_.values[static_cast<size_t>(operand)];
    if (value.constant) continue;  // the shape rule has seen it
    Node check;
    check.domain = "tilewright";
    check.op = "CheckRange";
    check.name = node.name + "." + limits.what;
    check.inputs = {operand};
    if (dynamic_.guard >= 0) check.inputs.push_back(dynamic_.guard);
    check.attrs.values["least"] = limits.least;
    check.attrs.values["most"] = limits.most;
    check.attrs.values["what"] = limits.what;
    check.attrs.values["of"] =
        fmt::format("input {} ('{}') of {} '{}'", limits.input, value.name, node.op, node.name);
    // Named after what it hands on: files do not hold it, and read back it is to be called the
    // same.
    const std::string name = names_.value(fmt::format("#{}.{}", value.name, limits.what));
    operand = TW_TRY(add(std::move(check), 1))[0];
    graph_.values[static_cast<size_t>(operand)].name = name;
  }
  return {};
}

Result<std::vector<ValueId>> Importer::add(Node node, int num_outputs) {
  if (auto made = TW_TRY(dynamic_.add(node, num_outputs))) return *std::move(made);
  TW_TRY_STATUS(need_constants(node));
  node.outputs.assign(static_cast<size_t>(num_outputs), -1);
  const tensor::OpCall call = op_call(graph_, node);
  std::vector<tensor::TensorType> types = TW_TRY(tensor::infer(call));
  if (static_cast<int>(types.size()) < num_outputs)
    return fail(ErrorKind::Invalid, fmt::format("{} has {} outputs here, but yields {}", node.op,
                                                num_outputs, types.size()));
  types.resize(static_cast<size_t>(num_outputs), types[0]);  // optional outputs nobody reads
  const std::vector<Extent> extents = TW_TRY(dynamic_.place(call, node, types));
  for (size_t i = 0; i < types.size(); ++i) types[i].dynamic_axis = extents[i].axis;
  TW_TRY_STATUS(check_operands(node, call));
  return append(std::move(node), call, types, extents);
}

Result<std::vector<ValueId>> Importer::append(Node node, const tensor::OpCall& call,
                                              const std::vector<tensor::TensorType>& types,
                                              const std::vector<Extent>& extents) {
  for (const tensor::TensorType& type : types) TW_TRY_STATUS(add_bytes(type));
  node.name = names_.node(node.name);
  int64_t input_bytes = 0, output_bytes = 0;
  bool runtime = false;
  for (ValueId id : node.inputs) {
    if (id < 0) continue;
    const Value& value = graph_.values[static_cast<size_t>(id)];
    runtime = runtime || runtime_[static_cast<size_t>(id)];
    input_bytes += *checked_bytes(value.type.dtype, value.type.shape);
  }
  const auto index = static_cast<int>(graph_.nodes.size());
  for (size_t i = 0; i < types.size(); ++i) {
    node.outputs[i] = graph_.add_value(fmt::format("#{}.{}", index, i), types[i]);
    producer_.push_back(index);
    runtime_.push_back(runtime);
    output_bytes += *checked_bytes(types[i].dtype, types[i].shape);
  }
  dynamic_.note(node, call, extents, runtime);
  graph_.nodes.push_back(node);
  auto known = fold_trivially(call, types);
  if (known) {
    graph_.values[static_cast<size_t>(node.outputs[0])].constant = std::move((*known)[0]);
    runtime_[static_cast<size_t>(node.outputs[0])] = false;
  } else if (auto settled = dynamic_.settled(node.outputs[0])) {
    graph_.values[static_cast<size_t>(node.outputs[0])].constant = *std::move(settled);
    runtime_[static_cast<size_t>(node.outputs[0])] = false;
  } else if (!runtime && !carries_scales(node) && input_bytes <= kEagerInput &&
             output_bytes <= kEagerOutput && known_inputs(graph_, node)) {
    (void)evaluate_node(static_cast<size_t>(index));  // it stays a node if it cannot be computed
  }
  return node.outputs;
}

}  // namespace tilewright::graph
