// Bilinear forms with a known weight as two matrix products.
#include <fmt/format.h>

#include <cstring>

#include "tilewright/graph/edit.h"
#include "tilewright/graph/passes.h"

namespace tilewright::graph {
namespace {

/// w [o, i, j] as [i, o * j]
Array by_first_factor(const Array& w) {
  const Shape& s = w.shape();
  Array result(w.dtype(), {s[1], s[0] * s[2]});
  const auto row = static_cast<size_t>(s[2] * bit_width(w.dtype()) / 8);
  char* to = static_cast<char*>(result.data());
  for (int64_t i = 0; i < s[1]; ++i)
    for (int64_t o = 0; o < s[0]; ++o, to += row)
      std::memcpy(to, static_cast<const char*>(w.data()) + static_cast<size_t>(o * s[1] + i) * row,
                  row);
  return result;
}

}  // namespace

Result<Graph> split_bilinear(const Graph& graph, PassContext& context) {
  Graph out = graph;
  Names names(out);
  out.nodes.clear();
  int count = 0;
  for (const Node& node : graph.nodes) {
    const bool ours = node.domain == "tilewright" && node.op == "Bilinear";
    const Value* w = ours ? &graph.values[static_cast<size_t>(node.inputs[1])] : nullptr;
    if (w == nullptr || !w->constant || !is_float(w->type.dtype)) {
      out.nodes.push_back(node);
      continue;
    }
    const Shape s = w->type.shape;
    const int64_t batch = graph.values[static_cast<size_t>(node.inputs[0])].type.shape[0];
    const auto constant = [&](const std::string& name, Array array) {
      const tensor::TensorType type{array.dtype(), array.shape()};
      return out.add_value(names.value(node.name + name), type, std::move(array));
    };
    const auto reshape = [&](const std::string& name, ValueId id, const Shape& shape) {
      const std::vector<double> sizes(shape.begin(), shape.end());
      const ValueId target = constant(name + ".shape", Array::of(DType::I64, sizes));
      return append_node(out, names, {node.name + name, "", "Reshape", {}, {id, target}, {}}, 1);
    };
    const auto product = [&](const std::string& name, ValueId a, ValueId b) {
      return append_node(out, names, {node.name + name, "", "MatMul", {}, {a, b}, {}}, 1);
    };
    const ValueId matrix = constant(".matrix", by_first_factor(*w->constant));
    const ValueId half = TW_TRY(product("/half", node.inputs[0], matrix))[0];
    const ValueId rows = TW_TRY(reshape("/rows", half, {batch, s[0], s[2]}))[0];
    const ValueId column = TW_TRY(reshape("/column", node.inputs[2], {batch, s[2], 1}))[0];
    const ValueId sums = TW_TRY(product("/sum", rows, column))[0];
    const std::vector<double> sizes = {static_cast<double>(batch), static_cast<double>(s[0])};
    const ValueId target = constant(".shape", Array::of(DType::I64, sizes));
    out.nodes.push_back({node.name, "", "Reshape", {}, {sums, target}, node.outputs});
    ++count;
  }
  if (count > 0) context.notes.push_back(fmt::format("{} bilinear forms split", count));
  return out;
}

}  // namespace tilewright::graph
