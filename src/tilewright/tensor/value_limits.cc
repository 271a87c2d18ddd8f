#include "tilewright/tensor/value_limits.h"

#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/recurrent.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

using All = std::vector<ValueLimits>;

/// Indices into axes of these extents; negative ones count from the end.
ValueLimits indices(size_t input, const Shape& extents) {
  ValueLimits limits{input, "index", {}, {}};
  for (const int64_t extent : extents) {
    limits.least.push_back(-extent);
    limits.most.push_back(extent - 1);
  }
  return limits;
}

All along_axis(const OpCall& call) {
  const Shape& data = call.inputs[0].shape;
  const auto axis =
      static_cast<size_t>(*normalize_axis(call.attrs.get_int("axis", 0), data.size()));
  return {indices(1, {data[axis]})};
}

/// Tuples that name an element, or a part, of the data behind its batch axes.
All by_tuple(const OpCall& call) {
  const Shape& data = call.inputs[0].shape;
  const auto first = data.begin() + call.attrs.get_int("batch_dims", 0);
  const int64_t depth = call.inputs[1].shape.back();
  if (depth == 0) return {};
  return {indices(1, Shape(first, first + depth))};
}

All sequences(const OpCall& call) {
  const auto time = static_cast<size_t>(call.attrs.get_int("time_axis", 0));
  return {{1, "length", {0}, {call.inputs[0].shape[time]}}};
}

All recurrent(const OpCall& call) {
  if (!call.input(4)) return {};
  return {{4, "length", {0}, {recurrent_layer(call)->steps}}};
}

/// The image that each region lies in.
All regions(const OpCall& call) { return {{2, "index", {0}, {call.inputs[0].shape[0] - 1}}}; }

/// Positions in the tensor that the pool has read, whatever the output's shape.
All unpooled(const OpCall& call) {
  OpCall natural = call;
  natural.inputs.resize(2);
  return {{1, "position", {0}, {element_count((*infer(natural))[0].shape) - 1}}};
}

struct Row {
  const char* op;
  All (*limits)(const OpCall&);
};
// Sorted by name. OneHot and Trilu take any number; the rest of ONNX's sizes and axes must be known
// at compile time (OpDef::constant_inputs).
constexpr Row kRows[] = {{"GRU", recurrent},
                         {"Gather", along_axis},
                         {"GatherElements", along_axis},
                         {"GatherND", by_tuple},
                         {"LSTM", recurrent},
                         {"MaxUnpool", unpooled},
                         {"RNN", recurrent},
                         {"ReverseSequence", sequences},
                         {"RoiAlign", regions},
                         {"Scatter", along_axis},
                         {"ScatterElements", along_axis},
                         {"ScatterND", by_tuple}};

Inferred infer_check(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Int));
  const size_t limits = call.attrs.get_ints("least").size();
  if (limits == 0 || limits != call.attrs.get_ints("most").size())
    return invalid(call, "needs as many values of `least` as of `most`");
  return std::vector<TensorType>{{call.inputs[0].dtype, call.inputs[0].shape}};
}

}  // namespace

All value_limits(const OpCall& call) {
  if (!call.domain.empty()) return {};
  for (const Row& row : kRows)
    if (call.op == row.op) return row.limits(call);
  return {};
}

std::vector<std::string> ops_with_limits() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.op);
  return names;
}

void add_check_op(std::vector<OpDef>& table) {
  OpDef def = movement_row("CheckRange", 1, 2, infer_check, nullptr);
  def.domain = "tilewright";
  def.fusion = Fusion::Opaque;
  def.host = "CheckRange";
  table.push_back(std::move(def));
}

}  // namespace tilewright::tensor
