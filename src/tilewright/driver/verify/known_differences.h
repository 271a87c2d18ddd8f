// Where ONNX Runtime is known to compute something else than the definition of ONNX says, or the
// definition leaves the result open: no faults of Tilewright, but differences that `verify` meets.
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::driver {

/// One row of the table.
struct KnownDifference {
  std::vector<std::string> operators;
  std::string condition;   ///< on attributes, types or values, in words
  std::string difference;  ///< one sentence: who computes what
  /// Whether the node's attributes and types admit it.
  bool (*applies)(const graph::Graph&, const graph::Node&);
  bool by_values = false;  ///< whether it shows depends on the values too
};

/// A row that may explain a difference.
struct KnownCause {
  std::string text;  ///< the node, the condition and the difference
  bool by_values = false;
};

/// The whole table; docs/operators.md lists it.
const std::vector<KnownDifference>& known_differences();

/// The table as a section of docs/operators.md.
std::string known_differences_section();

/// Whether a row is about this operator, whatever its attributes and types.
bool may_differ(const std::string& domain, const std::string& op);

/// What may explain that value `id` differs from ONNX Runtime's: the rows that apply to the nodes
/// on which the value depends.
std::vector<KnownCause> known_differences_of(const graph::Graph& graph, graph::ValueId id);

}  // namespace tilewright::driver
