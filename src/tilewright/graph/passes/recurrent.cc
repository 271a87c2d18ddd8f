// LSTM, GRU and RNN with known weights: the products of all steps with the input become one packed
// product, the recurrence reads its weights in blocks (tensor/ops_recurrent_blocked.cc).
//
//   LSTM, 10 steps, 32 inputs, 64 hidden  =>  GemmPacked: the inputs of all steps times [32, 256]
//                                             RecurrentBlocked: per step the state times [64, 256]
#include "tilewright/tensor/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

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
    if (node.attrs.get_string("direction", "forward") == "bidirectional") return false;
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

  Result<bool> lower(const Node& node) {
    if (!applies(node)) return false;
    const auto layer = tensor::recurrent_layer(op_call(graph(), node));
    if (!layer || layer->hidden < block_) return false;
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
