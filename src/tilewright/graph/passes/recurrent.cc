// LSTM, GRU and RNN with known weights: the products of all steps with the input become one packed
// product, the recurrence reads its weights in blocks (tensor/ops/recurrent_blocked.cc).
//
//   LSTM, 10 steps, 32 inputs, 64 hidden  =>  GemmPacked: the inputs of all steps times [32, 256]
//                                             RecurrentBlocked: per step the state times [64, 256]
//
// One in both directions becomes two, whose results are concatenated.
#include "tilewright/tensor/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// The order of rows: [group of blocks, block, gate, element in block].
struct RowOrder {
  int64_t gates = 1, hidden = 0, block = 1, group = 1;
  int64_t groups() const { return (hidden + block * group - 1) / (block * group); }
  int64_t rows() const { return groups() * group * gates * block; }
  /// The row of the given weights at place `row`, or -1 where rows are filled up.
  int64_t source(int64_t row) const {
    const int64_t element = row % block, gate = row / block % gates;
    const int64_t at = row / (block * gates) * block + element;
    return at < hidden ? gate * hidden + at : -1;
  }
};

/// `rows` (gates * hidden of them, `width` elements each) in order.
Array in_order(const float* rows, const RowOrder& order, int64_t width) {
  Array result(DType::F32, {order.rows(), width});
  float* to = result.as<float>().data();
  for (int64_t r = 0; r < order.rows(); ++r)
    if (const int64_t from = order.source(r); from >= 0)
      std::memcpy(to + r * width, rows + from * width, static_cast<size_t>(width) * sizeof(float));
  return result;
}

class Blocking : private Editor {
 public:
  Blocking(const Graph& graph, PassContext& context)
      : Editor(graph), context_(context), block_(std::max(4, context.vector_bytes / 4)) {}

  Result<Graph> run() {
    for (const Node& node : take_nodes())
      if (!TW_TRY(split_directions(node))) put(node);
    for (const Node& node : take_nodes())
      if (!TW_TRY(lower(node))) put(node);
    if (lowered_ > 0) context_.notes.push_back(fmt::format("{} recurrences blocked", lowered_));
    return std::move(graph());
  }

 private:
  const Value* input(const Node& node, size_t i) const {
    if (i >= node.inputs.size() || node.inputs[i] < 0) return nullptr;
    return &value(node.inputs[i]);
  }
  bool applies(const Node& node) const {
    if (!node.domain.empty() || (node.op != "LSTM" && node.op != "GRU" && node.op != "RNN"))
      return false;
    if (node.op == "GRU" && node.attrs.get_int("linear_before_reset", 0) == 0) return false;
    for (size_t i : {1, 2, 3})
      if (const Value* v = input(node, i); v != nullptr && !v->constant) return false;
    return input(node, 0)->type.dtype == DType::F32 && input(node, 4) == nullptr &&
           input(node, 7) == nullptr;
  }

  /// Rows of weight input `i`, transposed and packed in panels of `panel` of them.
  Result<ValueId> packed(const Node& node, size_t i, const RowOrder& order, int64_t panel) {
    const Array& w = *input(node, i)->constant;
    const ValueId rows = constant(fmt::format("{}.rows{}", node.name, i),
                                  in_order(w.as<float>().data(), order, w.shape()[2]));
    return append_own(fmt::format("{}/PackGemmWeight{}", node.name, i), "PackGemmWeight", {rows},
                      attrs_of({{"transB", int64_t{1}}, {"block", panel}}));
  }

  /// Biases of the projected input and, for the candidate of a GRU, of the state.
  std::pair<ValueId, ValueId> biases(const Node& node, const RowOrder& order) {
    const Value* given = input(node, 3);
    if (given == nullptr) return {-1, -1};
    const int64_t rows = order.gates * order.hidden;
    const float* b = array_of(*given).as<float>().data();
    std::vector<float> of_input(b, b + rows), of_state(static_cast<size_t>(rows), 0.0f);
    for (int64_t r = 0; r < rows; ++r) {
      const bool candidate = node.op == "GRU" && r / order.hidden == 2;
      (candidate ? of_state : of_input)[static_cast<size_t>(r)] += b[rows + r];
    }
    const auto vector_of = [&](const std::vector<float>& values) {
      return in_order(values.data(), order, 1).reshaped({order.rows()});
    };
    const ValueId first = constant(node.name + ".bias", vector_of(of_input));
    if (node.op != "GRU") return {first, -1};
    return {first, constant(node.name + ".state_bias", vector_of(of_state))};
  }

  /// The part of a known operand that belongs to direction `d` of two.
  ValueId half(const Node& node, size_t i, int d) {
    if (input(node, i) == nullptr) return -1;
    const Array& both = *input(node, i)->constant;
    Shape shape = both.shape();
    shape[0] = 1;
    Array part(both.dtype(), shape);
    const auto* from = static_cast<const std::byte*>(both.data()) + d * part.bytes();
    std::memcpy(part.data(), from, static_cast<size_t>(part.bytes()));
    return constant(fmt::format("{}.{}{}", node.name, d == 0 ? "forward" : "reverse", i), part);
  }

  /// A recurrence in both directions as one each, with a Concat per result.
  Result<bool> split_directions(const Node& node) {
    const auto layer = layer_of(node);
    if (!layer || layer->directions != 2 || node.attrs.has("activation_alpha") ||
        node.attrs.has("activation_beta"))
      return false;
    std::array<std::vector<ValueId>, 2> states;  // h0 and c0 of each direction
    const int64_t state_axis = layer->batch_first ? 1 : 0;
    for (size_t i : {5, 6}) {
      if (i >= node.inputs.size()) break;
      std::vector<ValueId> parts(2, -1);
      if (node.inputs[i] >= 0)
        parts = TW_TRY(append_like({fmt::format("{}/State{}", node.name, i),
                                    "",
                                    "Split",
                                    attrs_of({{"axis", state_axis}, {"num_outputs", int64_t{2}}}),
                                    {node.inputs[i]},
                                    {}},
                                   2));
      for (size_t d : {0, 1}) states[d].push_back(parts[d]);
    }
    release(node);
    std::array<std::vector<ValueId>, 2> made;
    for (int d : {0, 1}) {
      const std::string direction = d == 0 ? "forward" : "reverse";
      Node one{node.name + "/" + direction, "", node.op, node.attrs, {node.inputs[0]}, {}};
      one.attrs.values["direction"] = direction;
      std::vector<std::string> names = node.attrs.get_strings("activations");
      if (const auto middle = names.begin() + static_cast<long>(names.size() / 2); !names.empty())
        one.attrs.values["activations"] = d == 0 ? std::vector<std::string>(names.begin(), middle)
                                                 : std::vector<std::string>(middle, names.end());
      for (size_t i : {1, 2, 3}) one.inputs.push_back(half(node, i, d));
      one.inputs.push_back(-1);
      one.inputs.insert(one.inputs.end(), states[static_cast<size_t>(d)].begin(),
                        states[static_cast<size_t>(d)].end());
      made[static_cast<size_t>(d)] =
          TW_TRY(append_like(std::move(one), static_cast<int>(node.outputs.size())));
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] < 0) continue;
      const int64_t axis = k > 0 ? state_axis : layer->batch_first ? 2 : 1;
      put({node_name(fmt::format("{}/Both{}", node.name, k)),
           "",
           "Concat",
           attrs_of({{"axis", axis}}),
           {made[0][k], made[1][k]},
           {node.outputs[k]}});
    }
    return true;
  }

  /// What the node computes if it has a form in blocks.
  std::optional<tensor::RecurrentLayer> layer_of(const Node& node) const {
    if (!applies(node)) return std::nullopt;
    const auto layer = tensor::recurrent_layer(op_call(graph(), node));
    return layer && layer->hidden >= block_ ? std::optional(*layer) : std::nullopt;
  }

  Result<bool> lower(const Node& node) {
    const auto layer = layer_of(node);
    if (!layer || layer->directions != 1) return false;
    RowOrder order;
    order.gates = tensor::recurrent_kind(node.op).gates;
    order.hidden = layer->hidden, order.block = block_;
    // Enough sums side by side to hide the latency of an addition.
    constexpr int64_t kSums = 8;
    order.group = layer->batch > 1 ? 1 : (kSums + order.gates - 1) / order.gates;
    const auto [bias, state_bias] = biases(node, order);
    std::vector<ValueId> operands = {node.inputs[0], TW_TRY(packed(node, 1, order, block_))};
    if (bias >= 0) operands.push_back(bias);
    const ValueId projected =
        TW_TRY(append_own(node.name + "/Project", "GemmPacked", std::move(operands),
                          attrs_of({{"n", order.rows()}})));
    const int64_t panel = order.group * order.gates * block_;
    Node core{node.name, "tilewright", "RecurrentBlocked", node.attrs, {}, node.outputs};
    core.attrs.values["kind"] = node.op;
    core.attrs.values["group"] = order.group;
    core.attrs.values["block"] = block_;
    core.inputs = {projected, TW_TRY(packed(node, 2, order, panel)), state_bias, -1, -1};
    for (size_t i : {5, 6})
      if (i < node.inputs.size()) core.inputs[i - 2] = node.inputs[i];
    put(std::move(core));
    ++lowered_;
    return true;
  }

  PassContext& context_;
  int64_t block_;
  int lowered_ = 0;
};

}  // namespace

Result<Graph> block_recurrent(const Graph& graph, PassContext& context) {
  return Blocking(graph, context).run();
}

}  // namespace tilewright::graph
