// Nodes of a model, of its functions and of the graphs within nodes (If, Loop, ...:
// importer_control.cc). They are imported in the order in which they need each other, the file's
// order where that leaves a choice; a function's nodes stand in the place of its call.
//
// Example: nodes `r = Relu(c)`, `c = Conv(x, w)` are imported as Conv, Relu; `c = Conv(r, w)`
// instead is reported as a circle. What a node that failed would make is kUnknown: whoever reads it
// is not reported again.
#include "tilewright/graph/onnx/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <queue>

#include "tilewright/base/counted.h"
#include "tilewright/graph/ir/fold.h"
#include "tilewright/graph/onnx/advice.h"
#include "tilewright/graph/onnx/compose.h"

namespace tilewright::graph {
namespace {

namespace onnx = tilewright_onnx;

constexpr int kMaxReadDepth = 32;  ///< graphs within each other

/// Names of values that a node reads, those of its branches included.
void collect_reads(const onnx::NodeProto& node, std::set<std::string>& reads, int depth = 0) {
  for (const std::string& name : node.input())
    if (!name.empty()) reads.insert(name);
  if (depth > kMaxReadDepth) return;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    std::set<std::string> inside, made;
    for (const auto& tensor : attribute.g().initializer()) made.insert(tensor.name());
    for (const auto& input : attribute.g().input()) made.insert(input.name());
    for (const onnx::NodeProto& inner : attribute.g().node()) {
      collect_reads(inner, inside, depth + 1);
      for (const std::string& name : inner.output()) made.insert(name);
    }
    for (const auto& output : attribute.g().output()) inside.insert(output.name());
    for (const std::string& name : inside)
      if (!made.contains(name)) reads.insert(name);
  }
}

/// What node `index` of a list is called; those without a name by operator and position.
std::string name_of(const onnx::NodeProto& node, int index) {
  return node.name().empty() ? fmt::format("{}_{}", printable(node.op_type()), index)
                             : printable(node.name());
}

}  // namespace

std::set<std::string> names_read(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : nodes) collect_reads(node, names);
  return names;
}

std::set<std::string> names_read(const onnx::GraphProto& graph) {
  std::set<std::string> names = names_read(graph.node());
  for (const auto& output : graph.output()) names.insert(output.name());
  return names;
}

const ValueId* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent)
    if (const auto found = scope->values.find(name); found != scope->values.end())
      return &found->second;
  return nullptr;
}

std::string Importer::node_place(const std::string& name, const std::string& op,
                                 const Body& body) const {
  return fmt::format("node '{}' ({}){}", name, op, body.path.empty() ? "" : " in " + body.path);
}

void Importer::report_cycle(const NodeList& nodes, const Body& body,
                            const std::vector<std::vector<int>>& before,
                            const std::vector<int>& waiting) {
  // Every waiting node has a waiting predecessor: walking back must meet a node again.
  int at = static_cast<int>(
      std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; }) - waiting.begin());
  std::vector<int> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    for (int from : before[static_cast<size_t>(at)])
      if (waiting[static_cast<size_t>(from)] > 0) {
        at = from;
        break;
      }
  }
  std::vector<std::string> names;
  for (auto i = std::find(path.begin(), path.end(), at); i != path.end(); ++i)
    names.push_back(name_of(nodes.Get(*i), *i));
  std::reverse(names.begin(), names.end());
  report(ErrorKind::Invalid,
         fmt::format("nodes depend on each other in a circle: {}", fmt::join(names, " -> ")),
         node_place(names.front(), printable(nodes.Get(path.back()).op_type()), body));
}

std::vector<int> Importer::order_nodes(const NodeList& nodes, const Body& body) {
  const int count = nodes.size();
  std::map<std::string, int> maker;
  for (int n = 0; n < count; ++n)
    for (const std::string& output : nodes.Get(n).output()) {
      if (output.empty()) continue;
      const bool taken = body.scope.values.contains(output);
      if (!maker.emplace(output, n).second || taken)
        report(ErrorKind::Invalid, fmt::format("value '{}' is defined twice", printable(output)),
               node_place(name_of(nodes.Get(n), n), printable(nodes.Get(n).op_type()), body));
    }
  std::vector<std::vector<int>> before(static_cast<size_t>(count)), after(before);
  std::vector<int> waiting(static_cast<size_t>(count), 0);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int n = 0; n < count; ++n) {
    std::set<std::string> reads;
    collect_reads(nodes.Get(n), reads);
    for (const std::string& name : reads) {
      const auto found = maker.find(name);
      if (found == maker.end()) continue;
      before[static_cast<size_t>(n)].push_back(found->second);
      after[static_cast<size_t>(found->second)].push_back(n);
      ++waiting[static_cast<size_t>(n)];
    }
    if (waiting[static_cast<size_t>(n)] == 0) ready.push(n);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.push_back(n);
    for (int next : after[static_cast<size_t>(n)])
      if (--waiting[static_cast<size_t>(next)] == 0) ready.push(next);
  }
  if (static_cast<int>(order.size()) < count) report_cycle(nodes, body, before, waiting);
  return order;
}

void Importer::import_nodes(const NodeList& nodes, Body& body) {
  const std::vector<int> order = order_nodes(nodes, body);
  // What a circle would produce is unknown, not undefined.
  if (static_cast<int>(order.size()) < nodes.size())
    for (const onnx::NodeProto& node : nodes)
      for (const std::string& output : node.output())
        body.scope.values.try_emplace(output, kUnknown);
  for (int n : order) {
    if (++node_count_ > kMaxNodes) {
      if (node_count_ == kMaxNodes + 1)
        report(ErrorKind::Capacity, fmt::format("more than {} nodes after inlining", kMaxNodes),
               body.path);
      return;
    }
    const onnx::NodeProto& node = nodes.Get(n);
    import_node(node, body.prefix + name_of(node, n), body);
  }
}

bool Importer::read_node_inputs(const NodeProto& proto, const Body& body, Node& node) {
  bool known = true;
  for (const std::string& input : proto.input()) {
    if (input.empty()) {
      node.inputs.push_back(-1);
      continue;
    }
    const ValueId* id = body.scope.find(input);
    if (id == nullptr)
      report(ErrorKind::Invalid, fmt::format("value '{}' is never defined", printable(input)),
             node_place(node.name, node.op, body));
    known = known && id != nullptr && *id != kUnknown;  // -1: absent where a function is called
    node.inputs.push_back(id == nullptr ? kUnknown : *id);
  }
  while (!node.inputs.empty() && node.inputs.back() == -1) node.inputs.pop_back();
  return known;
}

const onnx::FunctionProto* Importer::find_function(const NodeProto& proto) const {
  for (const onnx::FunctionProto& function : model_.functions())
    if (function.name() == proto.op_type() && function.domain() == proto.domain() &&
        function.overload() == proto.overload())
      return &function;
  return nullptr;
}

void Importer::poison_outputs(const NodeProto& proto, Body& body) {
  for (const std::string& output : proto.output())
    if (!output.empty()) body.scope.values.try_emplace(output, kUnknown);
}

void Importer::define_outputs(const NodeProto& proto, Body& body, const std::vector<ValueId>& ids) {
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& output = proto.output(i);
    if (output.empty()) continue;
    const bool given = i < static_cast<int>(ids.size());
    body.scope.values[output] = given ? ids[static_cast<size_t>(i)] : kUnknown;
  }
}

void Importer::report_unsupported(const Node& node, const std::string& where) {
  const Advice advice = explained_.insert(node.domain + ":" + node.op).second
                            ? advice_for(node.domain, node.op)
                            : Advice{};
  report(ErrorKind::Unsupported,
         node.op.empty() ? std::string("a node does not say which operator it is")
         : node.domain.empty()
             ? fmt::format("operator {} is not supported", node.op)
             : fmt::format("operator {} of domain '{}' is not supported", node.op, node.domain),
         where, advice.why, advice.fix);
}

void Importer::import_node(const NodeProto& proto, const std::string& name, Body& body) {
  Node node;
  node.name = name;
  node.op = printable(proto.op_type());
  node.domain = proto.domain() == "ai.onnx" ? "" : printable(proto.domain());
  const std::string where = node_place(name, node.op, body);
  const bool inputs_known = read_node_inputs(proto, body, node);
  if (const onnx::FunctionProto* function = find_function(proto)) {
    if (!inputs_known) return poison_outputs(proto, body);
    return import_function(proto, *function, node, body);
  }
  const Structural special = structural(node);
  if (special == nullptr && !tensor::find_op(node.domain, node.op) && node.op != "Constant" &&
      node.op != "Upsample" && node.op != "Scatter" && !is_composed(node)) {
    report_unsupported(node, where);
    return poison_outputs(proto, body);
  }
  const auto opset = body.opsets.find(node.domain);
  if (opset == body.opsets.end() && node.domain.empty()) {
    report(
        ErrorKind::Invalid,
        fmt::format("operator {} is used, but the model does not import its operator set", node.op),
        where);
    return poison_outputs(proto, body);
  }
  if (node.op == "Constant" && proto.output_size() == 1 && !body.read.contains(proto.output(0)))
    return poison_outputs(proto, body);  // it may be of a type that there is no room for
  auto attrs = read_attributes(proto, body, name);
  if (!attrs || !inputs_known) return poison_outputs(proto, body);
  node.attrs = *std::move(attrs);
  if (special != nullptr) return import_structural(special, {proto, node, body, where});
  if (node.domain.empty() && node.op == "Constant") {
    if (!import_constant(proto, node, body)) poison_outputs(proto, body);
    return;
  }
  import_operator(proto, std::move(node), opset == body.opsets.end() ? 1 : opset->second, body);
}

void Importer::import_operator(const NodeProto& proto, Node node, int64_t version, Body& body) {
  const std::string where = node_place(node.name, node.op, body);
  int num_outputs = proto.output_size();
  while (num_outputs > 0 && proto.output(num_outputs - 1).empty()) --num_outputs;
  if (num_outputs == 0) return;  // nobody can see it
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] > kSequence) continue;
    report(ErrorKind::Invalid, fmt::format("input {} of {} is a sequence", i, node.op), where,
           "it takes tensors");
    return poison_outputs(proto, body);
  }
  node.outputs.assign(static_cast<size_t>(num_outputs), -1);
  UpgradeContext context;
  context.constant = [&](Array array) { return add_constant(node.name + ".const", array); };
  context.type = [&](ValueId id) -> const tensor::TensorType& {
    return graph_.values[static_cast<size_t>(id)].type;
  };
  context.value = [&](ValueId id) -> const std::optional<Array>& {
    return graph_.values[static_cast<size_t>(id)].constant;
  };
  context.before = [&](Node extra) -> Result<ValueId> {
    return TW_TRY(add(std::move(extra), 1))[0];
  };
  const auto give_up = [&](Error error) {
    report(std::move(error), where);
    poison_outputs(proto, body);
  };
  if (Status status = upgrade(node, version, context); !status)
    return give_up(std::move(status.error()));
  auto outputs = is_composed(node) ? compose(node, context) : add(node, num_outputs);
  if (outputs && static_cast<int>(outputs->size()) < num_outputs)
    return give_up(fail(ErrorKind::Invalid,
                        fmt::format("{} has no {}", node.op, counted(num_outputs, "output")))
                       .value());
  for (size_t i = 0; outputs && i < context.after.size(); ++i) {
    auto& [behind, output] = context.after[i];
    behind.inputs[0] = (*outputs)[output];
    if (auto made = add(behind, 1))
      (*outputs)[output] = made->front();
    else
      outputs = tl::unexpected<Error>(std::move(made.error()));
  }
  if (!outputs) return give_up(std::move(outputs.error()));
  define_outputs(proto, body, *outputs);
  for (int i = 0; i < num_outputs; ++i) {
    const std::string name = body.prefix + printable(proto.output(i));
    if (!proto.output(i).empty())
      graph_.values[static_cast<size_t>((*outputs)[static_cast<size_t>(i)])].name =
          names_.value(name);
  }
}

bool Importer::import_constant(const NodeProto& proto, const Node& node, Body& body) {
  const std::string where = node_place(node.name, node.op, body);
  if (proto.output_size() != 1 || proto.output(0).empty() || node.attrs.values.size() != 1) {
    report(ErrorKind::Unsupported, "a Constant needs one output and one numeric value", where);
    return false;
  }
  const auto& [key, value] = *node.attrs.values.begin();
  std::optional<Array> array;
  if (const Array* a = std::get_if<Array>(&value); a && key == "value") array = *a;
  if (const double* d = std::get_if<double>(&value); d && key == "value_float")
    array = Array::scalar(DType::F32, *d);
  if (const auto* d = std::get_if<std::vector<double>>(&value); d && key == "value_floats")
    array = Array::of(DType::F32, *d);
  const int64_t* scalar = std::get_if<int64_t>(&value);
  const auto* list = std::get_if<std::vector<int64_t>>(&value);
  if (scalar && key == "value_int") {
    array = Array(DType::I64, {});
    array->set_int(0, *scalar);
  }
  if (list && key == "value_ints") {
    array = Array(DType::I64, {static_cast<int64_t>(list->size())});
    std::copy(list->begin(), list->end(), array->as<int64_t>().begin());
  }
  if (!array) {
    report(ErrorKind::Unsupported,
           fmt::format("a Constant with the value '{}' is not supported", printable(key)), where,
           key == "value_string" || key == "value_strings" ? "it holds text" : "");
    return false;
  }
  const std::string name = body.prefix + printable(proto.output(0));
  body.scope.values[proto.output(0)] = add_constant(name, *std::move(array));
  return true;
}

void Importer::import_function(const NodeProto& proto, const onnx::FunctionProto& function,
                               const Node& node, Body& body) {
  const std::string where = node_place(node.name, node.op, body);
  poison_outputs(proto, body);
  std::vector<std::string> calls = body.calls;
  calls.push_back(fmt::format("'{}{}{}'", node.domain, node.domain.empty() ? "" : ".", node.op));
  if (std::find(body.calls.begin(), body.calls.end(), calls.back()) != body.calls.end())
    return report(ErrorKind::Invalid, fmt::format("function {} calls itself", calls.back()), where,
                  fmt::format("{}", fmt::join(calls, " -> ")));
  if (body.depth >= kMaxDepth)
    return report(ErrorKind::Invalid,
                  fmt::format("functions call each other more than {} levels deep", kMaxDepth),
                  where);
  if (proto.input_size() > function.input_size() || proto.output_size() > function.output_size())
    report(
        ErrorKind::Invalid, fmt::format("function '{}' is called with too much", node.op), where,
        fmt::format("it has {} and {}, the call {} and {}", counted(function.input_size(), "input"),
                    counted(function.output_size(), "output"), counted(proto.input_size(), "input"),
                    counted(proto.output_size(), "output")));
  Body inner;
  inner.calls = std::move(calls);
  inner.prefix = node.name + "/";
  inner.path = fmt::format("function '{}' of {}", node.op, where);
  inner.depth = body.depth + 1;
  for (const auto& entry : function.opset_import()) {
    const std::string domain = entry.domain() == "ai.onnx" ? "" : printable(entry.domain());
    if (inner.opsets.emplace(domain, entry.version()).second && !body.opsets.contains(domain))
      check_opset(domain, entry.version());
  }
  if (inner.opsets.empty()) inner.opsets = body.opsets;
  for (const onnx::AttributeProto& attribute : function.attribute_proto())
    inner.arguments[attribute.name()] = &attribute;
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      inner.arguments[attribute.name()] = &attribute;
    } else if (const auto outer = body.arguments.find(attribute.ref_attr_name());
               outer != body.arguments.end()) {
      inner.arguments[attribute.name()] = outer->second;
    }
  }
  std::set<std::string> absent;
  for (int i = 0; i < function.input_size(); ++i) {
    const bool given = i < static_cast<int>(node.inputs.size());
    inner.scope.values[function.input(i)] = given ? node.inputs[static_cast<size_t>(i)] : -1;
  }
  inner.read = names_read(function.node());
  inner.read.insert(function.output().begin(), function.output().end());
  import_nodes(function.node(), inner);
  std::vector<ValueId> outputs;
  for (const std::string& output : function.output()) {
    const ValueId* id = inner.scope.find(output);
    if (id == nullptr)
      report(ErrorKind::Invalid, fmt::format("output '{}' is never produced", printable(output)),
             inner.path);
    outputs.push_back(id == nullptr ? kUnknown : *id);
  }
  define_outputs(proto, body, outputs);
}

}  // namespace tilewright::graph
