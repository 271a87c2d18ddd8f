// One image in tiles [1, C/b, H, W, B, b] keeps each block of channels in one run of bytes, so a
// Concat along the blocks puts whole inputs one after the other, and a Slice along them is a run of
// its input.
//
//   Slice of blocks 2 to 4 of i8 [1, 6, 3, 5, 1, 4]  =>  3 * 60 bytes from byte 2 * 60 on
#include "tilewright/graph/partition/moves.h"

#include "tilewright/graph/ir/edit.h"

namespace tilewright::graph {
namespace {

constexpr size_t kRank = 6;  // [N/B, C/b, H, W, B, b]

const Value& value_of(const Graph& graph, ValueId id) {
  return graph.values[static_cast<size_t>(id)];
}

bool is_tiles_of_one_image(const Graph& graph, ValueId id) {
  if (id < 0) return false;
  const Value& value = value_of(graph, id);
  return !value.constant && value.type.dtype == DType::I8 && value.type.shape.size() == kRank &&
         value.type.shape[0] == 1;
}

int64_t bytes_of(const Graph& graph, ValueId id) {
  return element_count(value_of(graph, id).type.shape);
}

/// The only element of a known integer list.
std::optional<int64_t> single(const Graph& graph, const Node& node, size_t input) {
  const auto values = known_ints(graph, node, input);
  if (!values || values->size() != 1) return std::nullopt;
  return (*values)[0];
}

std::optional<BlockMove> concat(const Graph& graph, const Node& node) {
  if (node.attrs.get_int("axis", 0) != 1) return std::nullopt;
  BlockMove move;
  move.whole = node.outputs[0];
  move.gathers = true;
  int64_t offset = 0;
  for (ValueId id : node.inputs) {
    if (!is_tiles_of_one_image(graph, id)) return std::nullopt;
    move.parts.push_back({id, move.whole, offset});
    offset += bytes_of(graph, id);
  }
  return move;
}

std::optional<BlockMove> slice(const Graph& graph, const Node& node) {
  const auto start = single(graph, node, 1), axis = single(graph, node, 3);
  const bool stepped = node.inputs.size() > 4 && node.inputs[4] >= 0 &&
                       single(graph, node, 4) != std::optional<int64_t>(1);
  if (!start || *start < 0 || axis != std::optional<int64_t>(1) || stepped) return std::nullopt;
  const Shape& shape = value_of(graph, node.inputs[0]).type.shape;
  if (*start > shape[1]) return std::nullopt;
  BlockMove move;
  move.whole = node.inputs[0];
  const int64_t offset = *start * (bytes_of(graph, move.whole) / shape[1]);
  move.parts = {{node.outputs[0], move.whole, offset}};
  return move;
}

}  // namespace

std::optional<BlockMove> block_move(const Graph& graph, const Node& node) {
  const bool fits = node.domain.empty() && node.outputs.size() == 1 && !node.inputs.empty() &&
                    is_tiles_of_one_image(graph, node.inputs[0]) &&
                    is_tiles_of_one_image(graph, node.outputs[0]);
  if (!fits) return std::nullopt;
  if (node.op == "Concat") return concat(graph, node);
  if (node.op == "Slice") return slice(graph, node);
  return std::nullopt;
}

}  // namespace tilewright::graph
