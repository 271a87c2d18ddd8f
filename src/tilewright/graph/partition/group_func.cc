// A group of operators as one Func, and groups shown as a graph.
//
//   group {Conv, Add, Relu}  ->  func conv_add_relu(x0, const w0, const w1, x1, out y0),
//                                the three tensor expressions joined
//
// Parameters have names by position (x0, w0, y0), not those of the model: groups that compute the
// same thus have the same text and share one kernel.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tilewright/base/check.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/partition/fuse.h"

namespace tilewright::graph {
namespace {

std::string snake(const std::string& op) {
  std::string out;
  for (size_t i = 0; i < op.size(); ++i) {
    const auto c = static_cast<unsigned char>(op[i]);
    const bool word =
        std::isupper(c) && i > 0 && std::islower(static_cast<unsigned char>(op[i - 1]));
    if (word) out += '_';
    out += static_cast<char>(std::isalnum(c) ? std::tolower(c) : '_');
  }
  return out;
}

}  // namespace

std::string group_name(const Graph& graph, const Group& group) {
  std::vector<std::string> parts;
  for (int n : group.nodes) parts.push_back(snake(graph.nodes[static_cast<size_t>(n)].op));
  if (parts.size() > 4) {
    const size_t more = parts.size() - 3;
    parts.resize(3);
    parts.push_back(fmt::format("{}more", more));
  }
  return fmt::format("{}", fmt::join(parts, "_"));
}

Result<GroupFunc> group_func(const Graph& graph, const Group& group, MathMode math) {
  if (group.kind != GroupKind::Kernel)
    return fail(ErrorKind::Unsupported,
                fmt::format("{} is not computed by loops", group_name(graph, group)));
  std::map<ValueId, tensor::Tensor> known;
  std::vector<std::pair<ValueId, tensor::Tensor>> given;
  int inputs = 0, weights = 0;
  for (ValueId id : group.inputs) {
    const Value& value = graph.values[static_cast<size_t>(id)];
    const bool fixed = value.constant.has_value();
    const std::string name = fixed ? fmt::format("w{}", weights++) : fmt::format("x{}", inputs++);
    known[id] = tensor::placeholder(name, value.type.dtype, value.type.shape,
                                    fixed ? ParamMode::Const : ParamMode::In);
    given.emplace_back(id, known[id]);
  }
  for (int n : group.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    const tensor::OpDef* def = tensor::find_op(node.domain, node.op);
    if (def == nullptr || !def->define)
      return fail(ErrorKind::Unsupported,
                  fmt::format("operator {} of node '{}' has no definition", node.op, node.name));
    std::vector<tensor::Tensor> tensors;
    for (ValueId id : node.inputs) tensors.push_back(id < 0 ? tensor::Tensor() : known.at(id));
    const std::vector<tensor::Tensor> made = def->define(op_call(graph, node), tensors);
    TW_CHECK(made.size() >= node.outputs.size(), "{} defines {} of {} outputs", node.op,
             made.size(), node.outputs.size());
    for (size_t i = 0; i < node.outputs.size(); ++i) known[node.outputs[i]] = made[i];
  }
  GroupFunc result;
  std::vector<tensor::Tensor> outputs, parameters;
  std::vector<std::string> names;
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    outputs.push_back(known.at(group.outputs[i]));
    names.push_back(fmt::format("y{}", i));
  }
  const std::vector<tensor::Tensor> read = tensor::reached_inputs(outputs);
  for (const auto& entry : given) {
    const auto same = [&](const tensor::Tensor& t) { return t.get() == entry.second.get(); };
    if (std::none_of(read.begin(), read.end(), same)) continue;
    parameters.push_back(entry.second);
    result.args.push_back(entry.first);
  }
  result.args.insert(result.args.end(), group.outputs.begin(), group.outputs.end());
  result.func = tensor::make_func(group_name(graph, group), parameters, outputs, math, names);
  return result;
}

namespace {

/// The node that stands for a group. What another device holds (`device`) is not shown as weights.
Node node_of(const Graph& graph, const Group& group, const std::string& device, FreshNames& names) {
  Node node;
  const Node& anchor = graph.nodes[static_cast<size_t>(group.anchor)];
  const bool single = group.nodes.size() == 1;
  node.name = names.node(anchor.name);
  node.op = single ? anchor.op : group_name(graph, group);
  node.domain = single ? anchor.domain : "tilewright";
  if (single) node.attrs = anchor.attrs;
  node.inputs = single ? anchor.inputs : group.inputs;
  node.outputs = single ? anchor.outputs : group.outputs;
  if (!single) {
    std::vector<std::string> members;
    for (int n : group.nodes) members.push_back(graph.nodes[static_cast<size_t>(n)].name);
    node.attrs.values["nodes"] = std::move(members);
  }
  if (device.empty()) return node;
  node.attrs.values["device"] = device;
  std::erase_if(node.inputs, [&](ValueId id) {
    return id >= 0 && graph.values[static_cast<size_t>(id)].constant.has_value();
  });
  return node;
}

}  // namespace

Graph summarise(const Graph& graph, const std::vector<Group>& groups) {
  Graph out = graph;
  out.nodes.clear();
  FreshNames names;
  for (const Group& group : groups) {
    if (group.kind != GroupKind::Launch) {
      out.nodes.push_back(node_of(graph, group, "", names));
      continue;
    }
    for (const Group& part : group.parts)
      out.nodes.push_back(node_of(graph, part, device_name(group.device), names));
  }
  return out;
}

std::vector<std::string> explain(const Graph& graph, const std::vector<Group>& groups) {
  int kernels = 0, hosts = 0, aliases = 0;
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    if (group.kind == GroupKind::Launch) {
      lines.push_back(fmt::format("on {}: {} nodes in {} layers", device_name(group.device),
                                  group.nodes.size(), group.parts.size()));
      continue;
    }
    kernels += group.kind == GroupKind::Kernel;
    hosts += group.kind == GroupKind::Host;
    aliases += group.kind == GroupKind::Alias;
    if (group.nodes.size() < 2) continue;
    std::vector<std::string> members;
    for (int n : group.nodes) {
      const Node& node = graph.nodes[static_cast<size_t>(n)];
      members.push_back(fmt::format("{} '{}'", node.op, node.name));
    }
    lines.push_back(fmt::format("fused: {}", fmt::join(members, " + ")));
  }
  lines.insert(lines.begin(), fmt::format("{} nodes: {} kernels, {} host operators, {} aliases",
                                          graph.nodes.size(), kernels, hosts, aliases));
  return lines;
}

}  // namespace tilewright::graph
