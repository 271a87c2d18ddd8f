#include "tilewright/driver/verify/known_differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tilewright/graph/ir/edit.h"

namespace tilewright::driver {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

const graph::Value* operand(const Graph& graph, const Node& node, size_t i) {
  if (i >= node.inputs.size() || node.inputs[i] < 0) return nullptr;
  return &graph.values[static_cast<size_t>(node.inputs[i])];
}

DType dtype_of(const Graph& graph, const Node& node) { return operand(graph, node, 0)->type.dtype; }

bool always(const Graph&, const Node&) { return true; }

bool on_whole_numbers(const Graph& graph, const Node& node) {
  return !is_float(dtype_of(graph, node));
}

bool on_floats(const Graph& graph, const Node& node) { return is_float(dtype_of(graph, node)); }

/// Whether some floating-point operand is the result of a node.
bool on_computed_floats(const Graph& graph, const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    if (input < 0 || !is_float(graph.values[static_cast<size_t>(input)].type.dtype)) return false;
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& other) {
      return std::find(other.outputs.begin(), other.outputs.end(), input) != other.outputs.end();
    });
  });
}

bool on_f16(const Graph& graph, const Node& node) { return dtype_of(graph, node) == DType::F16; }

bool from_float_to_whole(const Graph& graph, const Node& node) {
  const DType to = graph.values[static_cast<size_t>(node.outputs[0])].type.dtype;
  return on_floats(graph, node) && !is_float(to) && to != DType::Bool;
}

bool with_fractional_scales(const Graph& graph, const Node& node) {
  const graph::Value* scales = operand(graph, node, 2);
  if (scales == nullptr || !scales->constant) return false;
  if (node.attrs.get_string("coordinate_transformation_mode", "half_pixel") != "align_corners")
    return false;
  const Shape& shape = operand(graph, node, 0)->type.shape;
  const std::vector<int64_t> axes = node.attrs.get_ints("axes");
  for (int64_t i = 0; i < scales->constant->size(); ++i) {
    const int64_t axis = axes.empty() ? i : axes[static_cast<size_t>(i)];
    const auto at =
        static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
    const double length = scales->constant->get(i) * static_cast<double>(shape[at]);
    if (length != std::floor(length)) return true;
  }
  return false;
}

bool between_whole_numbers(const Graph& graph, const Node& node) {
  return on_whole_numbers(graph, node) && node.attrs.get_string("mode", "nearest") != "nearest";
}

/// Whether a region is cut out along an axis that keeps its extent.
bool with_a_region_of_a_kept_axis(const Graph& graph, const Node& node) {
  const graph::Value* roi = operand(graph, node, 1);
  if (node.attrs.get_string("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize")
    return false;
  if (roi == nullptr || !roi->constant) return false;
  const Shape& from = operand(graph, node, 0)->type.shape;
  const Shape& to = graph.values[static_cast<size_t>(node.outputs[0])].type.shape;
  const std::vector<int64_t> axes = node.attrs.get_ints("axes");
  const int64_t count = roi->constant->size() / 2;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = axes.empty() ? i : axes[static_cast<size_t>(i)];
    const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(from.size()) : axis);
    const bool whole = roi->constant->get(i) == 0 && roi->constant->get(i + count) == 1;
    if (from[at] == to[at] && !whole) return true;
  }
  return false;
}

bool any_below_zero(const std::vector<int64_t>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(), [](int64_t n) { return n < 0; });
}

bool keeps_the_aspect_of_axes_from_behind(const Graph&, const Node& node) {
  return node.attrs.get_string("keep_aspect_ratio_policy", "stretch") != "stretch" &&
         any_below_zero(node.attrs.get_ints("axes"));
}

bool pads_to_same(const Node& node) {
  return node.attrs.get_string("auto_pad", "NOTSET").starts_with("SAME");
}

int64_t entry(const Node& node, const char* key, size_t i) {
  const std::vector<int64_t> list = node.attrs.get_ints(key);
  return i < list.size() ? list[i] : 1;
}

bool with_kernel_below_stride(const Graph& graph, const Node& node) {
  const Shape& weights = operand(graph, node, 1)->type.shape;
  bool below = false;
  for (size_t i = 0; i + 2 < weights.size(); ++i)
    below |= (weights[i + 2] - 1) * entry(node, "dilations", i) + 1 < entry(node, "strides", i);
  return pads_to_same(node) && below;
}

bool with_pool_below_stride(const Graph&, const Node& node) {
  const std::vector<int64_t> kernel = node.attrs.get_ints("kernel_shape");
  bool below = false;
  for (size_t i = 0; i < kernel.size(); ++i)
    below |= (kernel[i] - 1) * entry(node, "dilations", i) + 1 < entry(node, "strides", i);
  return pads_to_same(node) && below;
}

bool with_same_and_dilations(const Graph&, const Node& node) {
  const std::vector<int64_t> dilations = node.attrs.get_ints("dilations");
  return pads_to_same(node) &&
         std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; });
}

/// Whether all elements of some window lie in the padding, and padding does not count.
bool with_an_empty_window(const Graph& graph, const Node& node) {
  if (node.attrs.get_int("count_include_pad", 0) != 0 || pads_to_same(node)) return false;
  const Shape& from = operand(graph, node, 0)->type.shape;
  const Shape& to = graph.values[static_cast<size_t>(node.outputs[0])].type.shape;
  const std::vector<int64_t> kernel = node.attrs.get_ints("kernel_shape");
  const std::vector<int64_t> pads = node.attrs.get_ints("pads");
  for (size_t i = 0; i < kernel.size(); ++i)
    for (int64_t at = 0; at < to[i + 2]; ++at) {
      const int64_t first = at * entry(node, "strides", i) - (pads.empty() ? 0 : pads[i]);
      bool empty = true;
      for (int64_t k = 0; k < kernel[i]; ++k) {
        const int64_t place = first + k * entry(node, "dilations", i);
        empty = empty && (place < 0 || place >= from[i + 2]);
      }
      if (empty) return true;
    }
  return false;
}

/// Whether `node` pads by zeros, at the ends of spatial axes only.
bool pads_by_zeros(const Graph& graph, const Node& node) {
  if (node.attrs.get_string("mode", "constant") != "constant") return false;
  const graph::Value* fill = operand(graph, node, 2);
  if (fill != nullptr && !(fill->constant && fill->constant->get(0) == 0)) return false;
  const auto amounts = graph::known_ints(graph, node, 1);
  if (!amounts || operand(graph, node, 3) != nullptr) return false;
  const size_t rank = amounts->size() / 2;
  for (size_t i = 0; i < amounts->size(); ++i)
    if ((*amounts)[i] < 0 || (i % rank < 2 && (*amounts)[i] > 0)) return false;
  return true;
}

bool behind_a_pad_of_zeros(const Graph& graph, const Node& node) {
  if (node.attrs.get_string("auto_pad", "NOTSET") != "NOTSET") return false;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& pad) {
    return pad.domain.empty() && pad.op == "Pad" && pad.outputs[0] == node.inputs[0] &&
           pads_by_zeros(graph, pad);
  });
}

/// Whether the weights, the second tensor of a product of bytes, are signed.
bool with_signed_weights(const Graph& graph, const Node& node) {
  const bool scaled = node.op.starts_with("QLinear");  // a scale and a zero point follow a tensor
  return operand(graph, node, scaled ? 3 : 1)->type.dtype == DType::I8;
}

bool over_nothing(const Graph& graph, const Node& node) {
  return element_count(operand(graph, node, 0)->type.shape) == 0;
}

bool over_nothing_from_behind(const Graph& graph, const Node& node) {
  const auto axes = graph::known_ints(graph, node, 1);
  const bool below = node.attrs.get_int("axis", 0) < 0 || (axes && any_below_zero(*axes));
  return over_nothing(graph, node) && below;
}

/// Whether the sums have no terms and C is scaled.
bool of_scaled_c_alone(const Graph& graph, const Node& node) {
  const double beta = node.attrs.get_float("beta", 1.0);
  return over_nothing(graph, node) && operand(graph, node, 2) != nullptr && beta != 0 && beta != 1;
}

bool with_a_shape_of_its_own(const Graph& graph, const Node& node) {
  return operand(graph, node, 2) != nullptr;
}

bool unsorted(const Graph&, const Node& node) { return node.attrs.get_int("sorted", 1) == 0; }

bool with_nan_bound(const Graph& graph, const Node& node) {
  for (const size_t i : {1, 2}) {
    const graph::Value* bound = operand(graph, node, i);
    if (bound != nullptr && bound->constant && bound->constant->size() == 1 &&
        is_float(bound->type.dtype) && std::isnan(bound->constant->get(0)))
      return true;
  }
  return false;
}

/// Whether a recurrence has this activation. Its name is the same in capitals and small letters.
bool activates_by(const Node& node, std::string_view function) {
  const auto same = [&](std::string name) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name == function;
  };
  const std::vector<std::string> functions = node.attrs.get_strings("activations");
  return std::any_of(functions.begin(), functions.end(), same);
}

bool with_a_threshold_left_out(const Graph&, const Node& node) {
  return node.attrs.get_floats("activation_alpha").empty() && activates_by(node, "thresholdedrelu");
}

bool activated_by_softplus(const Graph&, const Node& node) {
  return activates_by(node, "softplus");
}

bool on_i64(const Graph& graph, const Node& node) { return dtype_of(graph, node) == DType::I64; }

std::vector<KnownDifference> make_table() {
  return {
      {{"Resize"},
       "align_corners and scales that give a fractional length",
       "the definition places samples by the fractional length, ONNX Runtime by the rounded one",
       with_fractional_scales},
      {{"Resize"},
       "whole numbers, mode linear or cubic",
       "Tilewright and onnx's reference round to the nearest, ONNX Runtime cuts off",
       between_whole_numbers},
      {{"Resize"},
       "tf_crop_and_resize and a region along an axis that keeps its size",
       "by the definition the region is stretched to that size, ONNX Runtime takes the whole axis",
       with_a_region_of_a_kept_axis},
      {{"Resize"},
       "axes below 0 with a keep_aspect_ratio_policy other than stretch",
       "by the definition they are counted from the last, ONNX Runtime resizes along axes that are "
       "not below 0 only",
       keeps_the_aspect_of_axes_from_behind},
      {{"ConvTranspose"},
       "auto_pad SAME_* and a kernel that reaches less far than the stride",
       "by the definition the output is the input times the stride, ONNX Runtime's is smaller",
       with_kernel_below_stride},
      {{"MaxPool", "AveragePool", "LpPool"},
       "auto_pad SAME_* and dilations",
       "the definition pads for the dilated window, ONNX Runtime ignores the dilation",
       with_same_and_dilations},
      {{"MaxPool", "AveragePool", "LpPool"},
       "auto_pad SAME_* and a kernel that reaches less far than the stride",
       "the definition pads nothing then, ONNX Runtime begins later, as if it cut the input off",
       with_pool_below_stride},
      {{"AveragePool"},
       "a window with nothing but padding in it, which does not count",
       "by the definition it is 0 / 0, NaN; ONNX Runtime gives 0",
       with_an_empty_window},
      {{"MaxPool"},
       "a window with nothing but padding in it",
       "the definition leaves it open; Tilewright gives minus infinity and a place outside of the "
       "input, ONNX Runtime the lowest finite number and a place before it, onnx's reference NaN",
       with_an_empty_window},
      {{"MaxPool"},
       "behind a Pad by zeros, values below zero in a window at the border",
       "by the definition the zeros are elements, ONNX Runtime folds the Pad into the pool's own "
       "padding, which no maximum takes",
       behind_a_pad_of_zeros,
       true},
      {{"DynamicQuantizeLinear"},
       "all values are zero",
       "the scale is 1/255 by the definition, 1 in ONNX Runtime",
       always,
       true},
      {{"MeanVarianceNormalization"},
       "values that are (almost) equal along the axes",
       "the difference of two large squares in ONNX Runtime and in onnx's reference is rounding, "
       "even "
       "negative, and its root NaN; Tilewright sums the squares of differences from the mean",
       on_floats,
       true},
      {{"ReduceMean"},
       "axes without any element",
       "by the definition it is 0 / 0, NaN; ONNX Runtime gives 0",
       over_nothing},
      {{"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin"},
       "an input without any element, axes below 0",
       "by the definition they are counted from the last, ONNX Runtime reduces along axes that are "
       "not below 0 only",
       over_nothing_from_behind},
      {{"Gemm"},
       "sums without any term (K is 0), and beta",
       "by the definition the result is beta times C, ONNX Runtime's is C",
       of_scaled_c_alone},
      {{"MaxUnpool"},
       "output_shape is given",
       "by onnx's cases places count in the image that the window makes, ONNX Runtime counts them "
       "in output_shape",
       with_a_shape_of_its_own},
      {{"TopK"},
       "sorted is 0",
       "the definition leaves the order open; Tilewright sorts all the same",
       unsorted},
      {{"Clip"},
       "a bound that is NaN",
       "Tilewright hands NaN on, ONNX Runtime ignores such a bound",
       with_nan_bound},
      {{"LSTM", "GRU", "RNN"},
       "activation ThresholdedRelu without activation_alpha",
       "the threshold is 1 by the definition, as the operator's of that name; ONNX Runtime takes 0",
       with_a_threshold_left_out},
      {{"LSTM", "GRU", "RNN"},
       "activation Softplus of a value above 88",
       "it is close to that value; ONNX Runtime gives infinity, as the exponential in it is",
       activated_by_softplus,
       true},
      {{"ReduceLogSumExp"},
       "whole numbers",
       "onnx has no reference for them; results may be one apart",
       on_whole_numbers},
      {{"ReduceProd"},
       "i64, the product is out of range",
       "Tilewright wraps around, ONNX Runtime saturates",
       on_i64,
       true},
      {{"ArgMax", "ArgMin", "Hardmax", "MaxPool", "ReduceMax", "ReduceMin"},
       "NaN among the values",
       "the definition leaves open which value is chosen",
       on_floats,
       true},
      {{"ArgMax", "ArgMin", "Hardmax", "NonMaxSuppression", "TopK", "Unique"},
       "computed floats that are equal but for rounding",
       "the order of sums decides which of them comes first, which box is kept, or how many values "
       "there are; results that depend on that choice differ by whole values",
       on_computed_floats,
       true},
      {{"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"},
       "weights of i8, a processor without VNNI, large values",
       "ONNX Runtime adds two products of bytes in 16 bits there and saturates; Tilewright is "
       "exact",
       with_signed_weights,
       true},
      {{"Cast", "CastLike"},
       "floats out of the range of whole numbers",
       "Tilewright takes the nearest number of the type and 0 for NaN; elsewhere it depends on the "
       "processor",
       from_float_to_whole,
       true},
      {{"Tan"},
       "f16 near a pole",
       "one unit in the last place of the angle changes the result by any amount",
       on_f16,
       true},
  };
}

}  // namespace

const std::vector<KnownDifference>& known_differences() {
  static const std::vector<KnownDifference> table = make_table();
  return table;
}

std::string known_differences_section() {
  std::string text =
      "\n## Known differences from ONNX Runtime\n\nThe definition of ONNX and ONNX Runtime "
      "disagree "
      "here, or the definition leaves the result open.\n`verify --against ort` names the row if an "
      "output that differs depends on such a node.\n\n| operator | when | difference "
      "|\n|---|---|---|\n";
  for (const KnownDifference& d : known_differences())
    text +=
        fmt::format("| {} | {} | {} |\n", fmt::join(d.operators, ", "), d.condition, d.difference);
  return text;
}

bool may_differ(const std::string& domain, const std::string& op) {
  return domain.empty() &&
         std::any_of(
             known_differences().begin(), known_differences().end(), [&](const KnownDifference& d) {
               return std::find(d.operators.begin(), d.operators.end(), op) != d.operators.end();
             });
}

std::vector<KnownCause> known_differences_of(const Graph& graph, ValueId id) {
  std::vector<bool> needed(graph.values.size(), false);
  needed[static_cast<size_t>(id)] = true;
  std::vector<KnownCause> causes;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto used = [&](ValueId output) {
      return output >= 0 && needed[static_cast<size_t>(output)];
    };
    if (std::none_of(node->outputs.begin(), node->outputs.end(), used)) continue;
    for (const ValueId input : node->inputs)
      if (input >= 0) needed[static_cast<size_t>(input)] = true;
    for (const KnownDifference& d : known_differences()) {
      const auto& names = d.operators;
      if (node->domain.empty() && std::find(names.begin(), names.end(), node->op) != names.end() &&
          d.applies(graph, *node))
        causes.push_back(
            {fmt::format("{} '{}' ({}): {}", node->op, node->name, d.condition, d.difference),
             d.by_values});
    }
  }
  return causes;
}

}  // namespace tilewright::driver
