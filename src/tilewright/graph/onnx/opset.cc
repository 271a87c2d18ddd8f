#include "tilewright/graph/onnx/opset.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tilewright::graph {
namespace {

using Context = UpgradeContext;
using Edit = Status (*)(Node&, Context&);

Array int_list(const std::vector<int64_t>& values) {
  Array array(DType::I64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.set_int(static_cast<int64_t>(i), values[i]);
  return array;
}

void set_input(Node& node, size_t index, ValueId id) {
  if (node.inputs.size() <= index) node.inputs.resize(index + 1, -1);
  node.inputs[index] = id;
}

/// Attribute `key` (an integer list) becomes input `index`.
void ints_to_input(Node& node, Context& context, const std::string& key, size_t index) {
  if (!node.attrs.has(key)) return;
  set_input(node, index, context.constant(int_list(node.attrs.get_ints(key))));
  node.attrs.values.erase(key);
}

Status axes_to_input(Node& node, Context& context) {
  ints_to_input(node, context, "axes", 1);
  return {};
}

Status split_to_input(Node& node, Context& context) {
  ints_to_input(node, context, "split", 1);
  return {};
}

/// Before opset 18 a Split without sizes means equal parts, one per output.
Status split_in_equal_parts(Node& node, Context&) {
  const bool sized = node.inputs.size() > 1 && node.inputs[1] >= 0;
  if (!sized && !node.attrs.has("num_outputs"))
    node.attrs.values["num_outputs"] = static_cast<int64_t>(node.outputs.size());
  return {};
}

Status slice_to_inputs(Node& node, Context& context) {
  ints_to_input(node, context, "starts", 1);
  ints_to_input(node, context, "ends", 2);
  ints_to_input(node, context, "axes", 3);
  return {};
}

Array scalar_like(const Node& node, Context& context, double value) {
  const DType dtype =
      node.inputs.empty() || node.inputs[0] < 0 ? DType::F32 : context.type(node.inputs[0]).dtype;
  return Array::scalar(dtype, value);
}

/// Attribute `key` (a number) becomes the scalar input `index`, in the type of input 0.
void float_to_input(Node& node, Context& context, const std::string& key, size_t index) {
  if (!node.attrs.has(key)) return;
  const double value = node.attrs.get_float(key, 0);
  set_input(node, index, context.constant(scalar_like(node, context, value)));
  node.attrs.values.erase(key);
}

Status pad_to_inputs(Node& node, Context& context) {
  ints_to_input(node, context, "pads", 1);
  float_to_input(node, context, "value", 2);
  return {};
}

Status clip_to_inputs(Node& node, Context& context) {
  float_to_input(node, context, "min", 1);
  float_to_input(node, context, "max", 2);
  return {};
}

/// A mask without an element kept is how the first versions say that nothing was computed: so does
/// ONNX Runtime, and the definition leaves it open. Before opset 10 it is of the data's type.
Status old_dropout_mask(Node& node, Context& context, bool of_bool) {
  if (node.outputs.size() < 2 || node.inputs.empty() || node.inputs[0] < 0) return {};
  Node negate;
  negate.name = node.name + "/Not";
  negate.op = "Not";
  negate.inputs = {-1};
  context.after.push_back({std::move(negate), 1});
  if (of_bool) return {};
  Node cast;
  cast.name = node.name + "/CastLike";
  cast.op = "CastLike";
  cast.inputs = {-1, node.inputs[0]};
  context.after.push_back({std::move(cast), 1});
  return {};
}

Status dropout_mask_like_data(Node& node, Context& context) {
  return old_dropout_mask(node, context, false);
}

Status dropout_mask_of_bool(Node& node, Context& context) {
  // Nodes of the version before 10 have their mask already.
  return context.after.empty() ? old_dropout_mask(node, context, true) : Status();
}

Status dropout_to_inputs(Node& node, Context& context) {
  if (!node.attrs.has("ratio")) return {};
  const double ratio = node.attrs.get_float("ratio", 0.5);
  node.attrs.values.erase("ratio");
  set_input(node, 1, context.constant(Array::scalar(DType::F32, ratio)));
  return {};
}

Status top_k_to_input(Node& node, Context& context) {
  if (!node.attrs.has("k")) return {};
  set_input(node, 1, context.constant(int_list({node.attrs.get_int("k", 0)})));
  node.attrs.values.erase("k");
  return {};
}

Status upsample_scales_to_input(Node& node, Context& context) {
  if (!node.attrs.has("scales")) return {};
  const std::vector<double> scales = node.attrs.get_floats("scales");
  set_input(node, 1, context.constant(Array::of(DType::F32, scales)));
  node.attrs.values.erase("scales");
  return {};
}

/// Resize of opset 10 and Upsample: (X, scales), no coordinate mode. Nearest takes the floor when
/// enlarging and the ceiling when shrinking. source: the operator's opset-10 examples.
Status old_resize(Node& node, Context& context) {
  node.op = "Resize";
  const ValueId scales = node.inputs.size() > 1 ? node.inputs[1] : -1;
  bool shrinks = false;
  if (scales >= 0 && context.value(scales)) {
    const std::vector<double> factors = context.value(scales)->to_doubles();
    const auto below = [](double f) { return f < 1; };
    shrinks = std::any_of(factors.begin(), factors.end(), below);
    if (shrinks && std::any_of(factors.begin(), factors.end(), [](double f) { return f > 1; }))
      return fail(
          ErrorKind::Unsupported, "this Resize of opset 10 enlarges one axis and shrinks another",
          "its way of rounding would be ambiguous", "convert the model to opset 11 or newer");
  }
  node.inputs = {node.inputs.empty() ? -1 : node.inputs[0], -1, scales};
  node.attrs.values["coordinate_transformation_mode"] = std::string("asymmetric");
  node.attrs.values["nearest_mode"] = std::string(shrinks ? "ceil" : "floor");
  if (node.attrs.get_string("mode", "nearest") == "bilinear")
    node.attrs.values["mode"] = std::string("linear");
  return {};
}

/// Opset 20 calls the modes of GridSample as Resize does.
Status rename_grid_mode(Node& node, Context&) {
  const std::string mode = node.attrs.get_string("mode", "linear");
  if (mode == "bilinear") node.attrs.values["mode"] = std::string("linear");
  if (mode == "bicubic") node.attrs.values["mode"] = std::string("cubic");
  return {};
}

/// Opset 10 has one kind of coordinates, which is not the later default.
Status old_roi_align(Node& node, Context&) {
  node.attrs.values["coordinate_transformation_mode"] = std::string("output_half_pixel");
  return {};
}

/// Before opset 20 the axis of a Fourier transform is an attribute, and another by default.
Status dft_axis_to_input(Node& node, Context& context) {
  Array axis(DType::I64, {});
  axis.set_int(0, node.attrs.get_int("axis", 1));
  set_input(node, 2, context.constant(std::move(axis)));
  node.attrs.values.erase("axis");
  return {};
}

/// Opsets 11 and 12 give an empty tensor for an absent roi or scales.
Status drop_empty_resize_inputs(Node& node, Context& context) {
  for (size_t i = 1; i < node.inputs.size() && i <= 3; ++i) {
    ValueId& id = node.inputs[i];
    if (id >= 0 && element_count(context.type(id).shape) == 0) id = -1;
  }
  return {};
}

/// Before opset 13 the input is seen as a matrix split at `axis` (default 1).
Status coerce_to_matrix(Node& node, Context& context) {
  if (node.inputs.empty() || node.inputs[0] < 0) return {};
  const Shape shape = context.type(node.inputs[0]).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = node.attrs.get_int("axis", 1);
  if (axis < -rank || axis > rank)
    return fail(ErrorKind::Invalid, fmt::format("axis {} is outside rank {}", axis, rank));
  if (axis < 0) axis += rank;
  node.attrs.values["axis"] = int64_t{-1};
  if (axis == rank - 1) return {};
  Node flatten;
  flatten.name = node.name + "/Flatten";
  flatten.op = "Flatten";
  flatten.inputs = {node.inputs[0]};
  flatten.attrs.values["axis"] = axis;
  node.inputs[0] = TW_TRY(context.before(std::move(flatten)));
  Node restore;
  restore.name = node.name + "/Reshape";
  restore.op = "Reshape";
  restore.inputs = {-1, context.constant(int_list(shape))};
  restore.attrs.values["allowzero"] = int64_t{1};
  context.after.push_back({std::move(restore)});
  return {};
}

Status old_batch_norm(Node& node, Context&) {
  if (node.attrs.get_int("spatial", 1) != 1)
    return fail(ErrorKind::Unsupported, "BatchNormalization with spatial=0 is not supported",
                "it has a mean for every element instead of every channel");
  if (node.outputs.size() > 1)
    return fail(ErrorKind::Unsupported, "BatchNormalization in training mode is not supported",
                fmt::format("it has {} outputs", node.outputs.size()),
                "export the model in inference mode");
  node.attrs.values.erase("spatial");
  return {};
}

Status rename_scatter(Node& node, Context&) {
  node.op = "ScatterElements";
  return {};
}

/// Before opset 21 scale and bias have one entry per group: repeat them per channel.
Status group_norm_per_channel(Node& node, Context& context) {
  if (node.inputs.size() < 3) return {};
  const Shape& shape = context.type(node.inputs[0]).shape;
  const int64_t groups = node.attrs.get_int("num_groups", 1);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) return {};
  const int64_t repeat = shape[1] / groups;
  for (size_t i = 1; i <= 2; ++i) {
    if (context.type(node.inputs[i]).shape != Shape{groups}) continue;
    Node column, expand, flat;
    column.op = flat.op = "Reshape";
    expand.op = "Expand";
    column.name = expand.name = flat.name = node.name;
    column.inputs = {node.inputs[i], context.constant(int_list({groups, 1}))};
    expand.inputs = {TW_TRY(context.before(std::move(column))),
                     context.constant(int_list({groups, repeat}))};
    flat.inputs = {TW_TRY(context.before(std::move(expand))),
                   context.constant(int_list({groups * repeat}))};
    node.inputs[i] = TW_TRY(context.before(std::move(flat)));
  }
  return {};
}

/// Applies to nodes whose opset is below `below`; rows of one operator in ascending order.
struct Rule {
  const char* op;
  int64_t below;
  Edit edit;
};
constexpr int64_t kAlways = std::numeric_limits<int64_t>::max();
// source: the ONNX operator changelog.
const Rule kRules[] = {
    {"BatchNormalization", 14, old_batch_norm},
    {"Clip", 11, clip_to_inputs},
    {"DFT", 20, dft_axis_to_input},
    {"Dropout", 10, dropout_mask_like_data},
    {"Dropout", 12, dropout_mask_of_bool},
    {"Dropout", 12, dropout_to_inputs},
    {"GridSample", 20, rename_grid_mode},
    {"GroupNormalization", 21, group_norm_per_channel},
    {"Hardmax", 13, coerce_to_matrix},
    {"LogSoftmax", 13, coerce_to_matrix},
    {"Pad", 11, pad_to_inputs},
    {"ReduceL1", 18, axes_to_input},
    {"ReduceL2", 18, axes_to_input},
    {"ReduceLogSum", 18, axes_to_input},
    {"ReduceLogSumExp", 18, axes_to_input},
    {"ReduceMax", 18, axes_to_input},
    {"ReduceMean", 18, axes_to_input},
    {"ReduceMin", 18, axes_to_input},
    {"ReduceProd", 18, axes_to_input},
    {"ReduceSum", 13, axes_to_input},
    {"ReduceSumSquare", 18, axes_to_input},
    {"Resize", 11, old_resize},
    {"Resize", kAlways, drop_empty_resize_inputs},
    {"RoiAlign", 16, old_roi_align},
    {"Scatter", kAlways, rename_scatter},
    {"Slice", 10, slice_to_inputs},
    {"Softmax", 13, coerce_to_matrix},
    {"Split", 13, split_to_input},
    {"Split", kAlways, split_in_equal_parts},
    {"Squeeze", 13, axes_to_input},
    {"TopK", 10, top_k_to_input},
    {"Unsqueeze", 13, axes_to_input},
    {"Upsample", 9, upsample_scales_to_input},
    {"Upsample", kAlways, old_resize},
};

}  // namespace

Status upgrade(Node& node, int64_t version, UpgradeContext& context) {
  if (!node.domain.empty()) return {};
  const std::string op = node.op;
  for (const Rule& rule : kRules)
    if (op == rule.op && version < rule.below) TW_TRY_STATUS(rule.edit(node, context));
  while (!node.inputs.empty() && node.inputs.back() == -1) node.inputs.pop_back();
  return {};
}

}  // namespace tilewright::graph
