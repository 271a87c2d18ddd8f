#include "tilewright/graph/ir/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "tilewright/base/check.h"

namespace tilewright::graph {

std::vector<int> producers(const Graph& graph) {
  std::vector<int> producer(graph.values.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId id : graph.nodes[n].outputs)
      if (id >= 0) producer[static_cast<size_t>(id)] = static_cast<int>(n);
  return producer;
}

std::vector<std::vector<int>> consumers(const Graph& graph) {
  std::vector<std::vector<int>> users(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId id : graph.nodes[n].inputs)
      if (id >= 0) users[static_cast<size_t>(id)].push_back(static_cast<int>(n));
  return users;
}

std::vector<bool> is_output(const Graph& graph) {
  std::vector<bool> flags(graph.values.size(), false);
  for (ValueId id : graph.outputs) flags[static_cast<size_t>(id)] = true;
  return flags;
}

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
}

bool forward(Graph& graph, ValueId from, ValueId to) {
  const auto is_listed = [](const std::vector<ValueId>& ids, ValueId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  if (is_listed(graph.outputs, from)) {
    const bool produced = !graph.values[static_cast<size_t>(to)].constant &&
                          !is_listed(graph.inputs, to) && !is_listed(graph.outputs, to);
    if (!produced) return false;
    std::swap(graph.values[static_cast<size_t>(from)].name,
              graph.values[static_cast<size_t>(to)].name);
  }
  replace_uses(graph, from, to);
  return true;
}

std::optional<std::vector<int64_t>> known_ints(const Graph& graph, const Node& node, size_t input) {
  if (input >= node.inputs.size() || node.inputs[input] < 0) return std::nullopt;
  const auto& value = graph.values[static_cast<size_t>(node.inputs[input])].constant;
  if (!value || !is_int(value->dtype())) return std::nullopt;
  return value->to_ints();
}

namespace {

/// Nodes that some graph output needs.
std::vector<bool> live_nodes(const Graph& graph) {
  const std::vector<int> producer = producers(graph);
  std::vector<bool> live(graph.nodes.size(), false);
  std::vector<ValueId> work = graph.outputs;
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (id < 0 || graph.values[static_cast<size_t>(id)].constant) continue;
    const int n = producer[static_cast<size_t>(id)];
    if (n < 0 || live[static_cast<size_t>(n)]) continue;
    live[static_cast<size_t>(n)] = true;
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    work.insert(work.end(), node.inputs.begin(), node.inputs.end());
  }
  return live;
}

/// The live nodes in topological order; of those that are ready, the earliest first.
std::vector<int> order_of(const Graph& graph, const std::vector<bool>& live) {
  const std::vector<int> producer = producers(graph);
  std::vector<int> waiting(graph.nodes.size(), 0);
  std::vector<std::vector<int>> unblocks(graph.nodes.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!live[n]) continue;
    for (ValueId id : graph.nodes[n].inputs) {
      if (id < 0 || graph.values[static_cast<size_t>(id)].constant) continue;
      const int from = producer[static_cast<size_t>(id)];
      if (from < 0) continue;
      unblocks[static_cast<size_t>(from)].push_back(static_cast<int>(n));
      ++waiting[n];
    }
    if (waiting[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.push_back(n);
    for (int next : unblocks[static_cast<size_t>(n)])
      if (--waiting[static_cast<size_t>(next)] == 0) ready.push(next);
  }
  return order;
}

}  // namespace

Graph compact(const Graph& graph) {
  const std::vector<bool> live = live_nodes(graph);
  Graph out;
  out.name = graph.name;
  out.warnings = graph.warnings;
  std::vector<bool> used(graph.values.size(), false);
  const auto mark = [&](const std::vector<ValueId>& ids) {
    for (ValueId id : ids)
      if (id >= 0) used[static_cast<size_t>(id)] = true;
  };
  const std::vector<int> order = order_of(graph, live);
  TW_CHECK(order.size() == static_cast<size_t>(std::count(live.begin(), live.end(), true)),
           "the graph has a cycle");
  for (int n : order) {
    mark(graph.nodes[static_cast<size_t>(n)].inputs);
    mark(graph.nodes[static_cast<size_t>(n)].outputs);
  }
  mark(graph.inputs);
  mark(graph.outputs);
  std::vector<ValueId> renumber(graph.values.size(), -1);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!used[v]) continue;
    renumber[v] = static_cast<ValueId>(out.values.size());
    out.values.push_back(graph.values[v]);
  }
  const auto map_ids = [&](std::vector<ValueId> ids) {
    for (ValueId& id : ids)
      if (id >= 0) id = renumber[static_cast<size_t>(id)];
    return ids;
  };
  for (int n : order) {
    Node node = graph.nodes[static_cast<size_t>(n)];
    node.inputs = map_ids(std::move(node.inputs));
    node.outputs = map_ids(std::move(node.outputs));
    out.nodes.push_back(std::move(node));
  }
  out.inputs = map_ids(graph.inputs);
  out.outputs = map_ids(graph.outputs);
  return out;
}

FreshNames::FreshNames(const Graph& graph) {
  for (const Value& value : graph.values) values_.names.insert(value.name);
  for (const Node& node : graph.nodes) nodes_.names.insert(node.name);
}

std::string FreshNames::fresh(Taken& taken, const std::string& base) {
  if (taken.names.insert(base).second) return base;
  int& next = taken.next.try_emplace(base, 2).first->second;
  for (;;) {
    std::string candidate = fmt::format("{}_{}", base, next++);
    if (taken.names.insert(candidate).second) return candidate;
  }
}

ValueId add_constant(Graph& graph, FreshNames& names, const std::string& base, Array array) {
  const tensor::TensorType type{array.dtype(), array.shape()};
  return graph.add_value(names.value(base), type, std::move(array));
}

Result<std::vector<ValueId>> append_node(Graph& graph, FreshNames& names, Node node,
                                         int num_outputs) {
  node.name = names.node(node.name.empty() ? node.op : node.name);
  node.outputs.assign(static_cast<size_t>(num_outputs), -1);
  auto types = tensor::infer(op_call(graph, node));
  if (!types) return tl::unexpected<Error>(std::move(types.error()).at("node '" + node.name + "'"));
  TW_CHECK(types->size() >= node.outputs.size(), "{} {}: {} types for {} outputs", node.op,
           node.name, types->size(), node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string base = num_outputs == 1 ? node.name : fmt::format("{}.{}", node.name, i);
    node.outputs[i] = graph.add_value(names.value(base), (*types)[i]);
  }
  graph.nodes.push_back(node);
  return node.outputs;
}

Result<ValueId> append_node(Graph& graph, FreshNames& names, Node node) {
  return TW_TRY(append_node(graph, names, std::move(node), 1))[0];
}

}  // namespace tilewright::graph
