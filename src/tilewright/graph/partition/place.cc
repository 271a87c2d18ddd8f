#include "tilewright/graph/partition/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/fold.h"

namespace tilewright::graph {
namespace {

class Placer {
 public:
  Placer(const Graph& graph, const PlaceTarget& target) : graph_(graph), target_(target) {}

  Placement place(int n) const {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    Placement p{n, node.name, node.op, Where::Cpu, {}};
    if (is_view(node)) {
      p.where = Where::Nothing;
      return p;
    }
    p.why = problem(node);
    if (p.why.empty()) p.where = Where::Accelerator;
    return p;
  }

 private:
  const tensor::TensorType& type(ValueId id) const {
    return graph_.values[static_cast<size_t>(id)].type;
  }
  bool has(const Node& node, size_t i) const {
    return i < node.inputs.size() && node.inputs[i] >= 0;
  }

  std::string problem(const Node& node) const {
    if (node.domain == "tilewright") {
      if (node.op == "TileConv") return conv_problem(node);
      if (node.op == "Requantize") return requantize_problem(node);
      if (node.op == "TileMaxPool") return tiles_problem(node.inputs[0], target_.tile.block_out);
      if (node.op == "ToTiles" || node.op == "FromTiles")
        return fmt::format("it changes between plain layout and tiles of {} x {}",
                           target_.tile.batch, target_.tile.block_out);
    }
    if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear")
      return fmt::format(
          "it converts between f32 and i8; {} computes with 8- and 32-bit integers only",
          target_.name);
    const auto first =
        std::find_if(node.inputs.begin(), node.inputs.end(), [](ValueId id) { return id >= 0; });
    if (first == node.inputs.end()) return fmt::format("{} has no integer form", node.op);
    const tensor::TensorType& t = type(*first);
    if (t.dtype == DType::I8 && t.shape.size() == 6)
      return fmt::format("it only moves the {} bytes of {}, there is nothing to compute",
                         element_count(t.shape), to_string(t));
    if (t.dtype == DType::I8 || t.dtype == DType::I32)
      return fmt::format("its input {} is not in tiles", to_string(t));
    return fmt::format("{} stays in {}; {} computes with 8- and 32-bit integers only", node.op,
                       to_string(t), target_.name);
  }

  /// Empty if `id` is in tiles of the target.
  std::string tiles_problem(ValueId id, int64_t block) const {
    const Shape& s = type(id).shape;
    if (s.size() == 6 && s[4] == target_.tile.batch && s[5] == block) return {};
    return fmt::format("its input {} is not in tiles of {} x {}", to_string(type(id)),
                       target_.tile.batch, block);
  }

  std::string conv_problem(const Node& node) const {
    if (std::string why = tiles_problem(node.inputs[0], target_.tile.block_in); !why.empty())
      return why;
    const Shape& w = type(node.inputs[1]).shape;
    if (w[4] != target_.tile.block_out)
      return fmt::format("its weight {} has blocks of {}, {} has {}",
                         to_string(type(node.inputs[1])), w[4], target_.name,
                         target_.tile.block_out);
    return {};
  }

  std::string requantize_problem(const Node& node) const {
    if (std::string why = tiles_problem(node.inputs[0], target_.tile.block_out); !why.empty())
      return why;
    // A sum has one accumulator: a residual is added as products with 8-bit weights.
    constexpr int64_t kMaxFactor = 33 * 127;
    const int64_t residual = node.attrs.get_int("residual_multiplier", 1)
                             << node.attrs.get_int("residual_shift", 0);
    if (has(node, 2) && residual > kMaxFactor)
      return fmt::format("it adds its residual {} times, {} can at most {} times", residual,
                         target_.name, kMaxFactor);
    if (target_.has_multiply) return {};
    if (has(node, 3))
      return fmt::format(
          "it scales {} channels by multipliers and {} has no MUL; quantise with "
          "power-of-two scales",
          type(node.inputs[3]).shape[1] * target_.tile.block_out, target_.name);
    if (const int64_t m = node.attrs.get_int("residual_multiplier", 1); m != 1)
      return fmt::format("it scales its residual by {} and {} has no MUL", m, target_.name);
    return {};
  }

  const Graph& graph_;
  const PlaceTarget& target_;
};

}  // namespace

std::vector<Placement> place(const Graph& graph, const PlaceTarget& target) {
  std::vector<Placement> placements;
  const Placer placer(graph, target);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    placements.push_back(placer.place(static_cast<int>(n)));
  // Sums cannot leave the accelerator: a convolution goes with what requantises it.
  const auto users = consumers(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op != "TileConv" || placements[n].where != Where::Accelerator) continue;
    const auto& readers = users[static_cast<size_t>(graph.nodes[n].outputs[0])];
    const bool there =
        readers.size() == 1 && graph.nodes[static_cast<size_t>(readers[0])].op == "Requantize";
    if (there && placements[static_cast<size_t>(readers[0])].where == Where::Accelerator) continue;
    placements[n].where = Where::Cpu;
    placements[n].why =
        there ? fmt::format("its sums are requantised on the CPU, by '{}'",
                            graph.nodes[static_cast<size_t>(readers[0])].name)
              : fmt::format(
                    "its sums are read by {} nodes other than a Requantize; {} stores i8 "
                    "only",
                    readers.size(), target.name);
  }
  return placements;
}

std::vector<std::string> explain(const std::vector<Placement>& placements,
                                 const PlaceTarget& target) {
  const auto count = [&](Where where) {
    return std::count_if(placements.begin(), placements.end(),
                         [&](const Placement& p) { return p.where == where; });
  };
  std::vector<std::string> lines = {fmt::format("{} nodes on {}, {} on the CPU, {} views",
                                                count(Where::Accelerator), target.name,
                                                count(Where::Cpu), count(Where::Nothing))};
  for (const Placement& p : placements)
    if (p.where == Where::Cpu)
      lines.push_back(fmt::format("{} '{}' on the CPU: {}", p.op, p.name, p.why));
  return lines;
}

}  // namespace tilewright::graph
