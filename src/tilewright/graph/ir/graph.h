// The graph IR: operators on values, with shapes known.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::graph {

using tilewright::to_string;

using ValueId = int;  ///< index into Graph::values; -1 stands for an absent optional input

struct Value {
  std::string name;
  tensor::TensorType type;
  std::optional<Array> constant;  ///< weights and folded values
};

struct Node {
  std::string name;  ///< unique; the ONNX name where it has one
  std::string domain, op;
  tensor::Attrs attrs;
  std::vector<ValueId> inputs, outputs;
};

/// Nodes are in topological order. Plain data: passes return a new graph.
struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> warnings;  ///< what a user should know of the model (NaN weights, ...)

  ValueId add_value(std::string name, tensor::TensorType type,
                    std::optional<Array> constant = std::nullopt);
};

/// The node as the operator library sees it (input types and known values filled in).
tensor::OpCall op_call(const Graph& graph, const Node& node);

/// Value of an operator on known inputs; handed in by the driver (interpreter, compiled code or
/// host function). An absent optional input is an array with an empty handle.
using Evaluate =
    std::function<Result<std::vector<Array>>(const tensor::OpCall&, const std::vector<Array>&)>;

/// errors: Invalid. Topological order, ids in range, every value produced once, types as `infer`
/// says.
Status verify(const Graph& graph);

/// Text for people and golden tests: one node per line with shapes.
std::string print(const Graph& graph);

/// `f32[1, 64, 56, 56]`; a dynamic axis prints as `<=N`.
std::string to_string(const tensor::TensorType& type);

/// Largest value Tilewright handles, in bytes; also the limit for all values of a model together.
inline constexpr int64_t kMaxBytes = int64_t{1} << 40;
/// Bytes of a value, or nothing if a dimension is negative or the size is beyond kMaxBytes.
std::optional<int64_t> checked_bytes(DType dtype, const Shape& shape);

}  // namespace tilewright::graph
