// Nodes with the same operator, attributes and inputs give the same values: one of them is enough.
//
//   a = Relu(x), b = Relu(x), c = Add(a, b)  =>  a = Relu(x), c = Add(a, a)
//
// Small constants are compared by what they hold, large ones by where they lie.
#include <fmt/format.h>

#include <map>
#include <string>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

constexpr int64_t kSmallConstant = 4096;  ///< bytes: larger ones are compared by identity only

/// Appends the bytes of a value, with its length, so that different lists never look alike.
template <class T>
void put(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& key, const std::string& text) {
  put(key, text.size());
  key += text;
}
void put_array(std::string& key, const Array& array) {
  put(key, array.dtype());
  put(key, array.shape().size());
  for (int64_t extent : array.shape()) put(key, extent);
  key.append(static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes()));
}

void put_attribute(std::string& key, const tensor::AttrValue& value) {
  put(key, value.index());
  std::visit(Overloaded{[&](int64_t v) { put(key, v); }, [&](double v) { put(key, v); },
                        [&](const std::string& v) { put_text(key, v); },
                        [&](const std::vector<int64_t>& v) {
                          put(key, v.size());
                          for (int64_t item : v) put(key, item);
                        },
                        [&](const std::vector<double>& v) {
                          put(key, v.size());
                          for (double item : v) put(key, item);
                        },
                        [&](const std::vector<std::string>& v) {
                          put(key, v.size());
                          for (const std::string& item : v) put_text(key, item);
                        },
                        [&](const Array& v) { put_array(key, v); }},
             value);
}

std::string key_of(const Node& node) {
  std::string key;
  put_text(key, node.domain);
  put_text(key, node.op);
  put(key, node.outputs.size());
  put(key, node.inputs.size());
  for (ValueId id : node.inputs) put(key, id);
  for (const auto& [name, value] : node.attrs.values) {
    put_text(key, name);
    put_attribute(key, value);
  }
  return key;
}

/// Constants with equal bytes become one value.
void merge_constants(Graph& graph) {
  std::map<std::string, ValueId> first;
  std::vector<ValueId> same(graph.values.size());
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    same[v] = id;
    const auto& constant = graph.values[v].constant;
    if (!constant) continue;
    std::string key;
    if (constant->bytes() <= kSmallConstant) {
      put_array(key, *constant);
    } else {
      put(key, constant->data());
      put(key, constant->dtype());
      put_text(key, to_string(constant->shape()));
    }
    same[v] = first.emplace(std::move(key), id).first->second;
  }
  for (Node& node : graph.nodes)
    for (ValueId& id : node.inputs)
      if (id >= 0) id = same[static_cast<size_t>(id)];
}

}  // namespace

Result<Graph> merge_common(const Graph& graph, PassContext& context) {
  Graph out = graph;
  merge_constants(out);
  std::map<std::string, size_t> first;
  for (size_t n = 0; n < out.nodes.size(); ++n) {
    const auto [place, inserted] = first.emplace(key_of(out.nodes[n]), n);
    if (inserted) continue;
    const std::vector<ValueId> from = out.nodes[n].outputs;
    const std::vector<ValueId> to = out.nodes[place->second].outputs;
    bool all = true;
    for (size_t i = 0; i < from.size(); ++i) all = forward(out, from[i], to[i]) && all;
    if (!all) continue;
    context.notes.push_back(
        fmt::format("'{}' is '{}'", out.nodes[n].name, out.nodes[place->second].name));
  }
  return compact(out);
}

}  // namespace tilewright::graph
