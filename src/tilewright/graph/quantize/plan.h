// Which nodes of a prepared graph become one integer layer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/graph/ir/graph.h"
#include "tilewright/graph/quantize/abilities.h"

namespace tilewright::graph {

/// Nodes that are quantised together.
struct Unit {
  enum class Kind {
    Product,  ///< convolution (or the value itself), residual addition, activation
    Sum,      ///< one or two values, activation (fixed point)
    Average,  ///< AveragePool (fixed point)
    Pool,     ///< MaxPool
    Move,     ///< data movement: same numbers, same scale
    Float,    ///< stays f32
  };
  Kind kind = Kind::Float;
  int node = -1;  ///< the convolution, or the node itself; -1: a product with 1
  int last = -1;  ///< the unit stands where this node is
  ValueId input = -1, residual = -1, output = -1;  ///< of products; residual: of sums the second
  std::optional<double> lo, hi;                    ///< of the activation
  bool leaky = false;                              ///< the activation is LeakyRelu
  std::string why;                                 ///< Float: the reason
};

struct Plan {
  std::vector<Unit> units;    ///< in topological order
  std::vector<bool> integer;  ///< per value: made as an integer
  std::vector<bool> wanted;   ///< per value: read as an integer
  std::vector<bool> feeds;    ///< per value: some integer layer depends on it
};

/// Groups the nodes of `graph`. `has_scale`: whether a value may be an integer. `boundary`: whether
/// a value has to be rounded to 8 bits, so that nothing is fused across it.
Plan plan_units(const Graph& graph, const std::function<bool(ValueId)>& has_scale,
                const std::function<bool(ValueId)>& boundary, const IntegerAbilities& target = {});

}  // namespace tilewright::graph
