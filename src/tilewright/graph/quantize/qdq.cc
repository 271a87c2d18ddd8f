// QDQ models in: pairs of QuantizeLinear and DequantizeLinear become scales of values, constants
// behind a DequantizeLinear become f32 arrays that round back to the same integers.
//
//   Conv -> QuantizeLinear(s) -> DequantizeLinear(s) -> Relu  =>  Conv -> Relu, with the scale s
//                                                                 for the value between them
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/quantize/emit.h"
#include "tilewright/graph/quantize/prepare.h"
#include "tilewright/graph/quantize/quantize.h"
#include "tilewright/graph/quantize/scale.h"

namespace tilewright::graph {
namespace {

bool is_quantize(const Node& node) { return node.domain.empty() && node.op == "QuantizeLinear"; }
bool is_dequantize(const Node& node) {
  return node.domain.empty() && node.op == "DequantizeLinear";
}

/// The f32 graph between the conversions, and the scales they gave.
struct Stripped {
  Graph graph;
  std::map<std::string, double> value_scale;                ///< by name of the value
  std::map<std::string, std::vector<double>> weight_scale;  ///< by name of the node that reads it
};

class Stripper : private Rewriter {
 public:
  explicit Stripper(const Graph& graph)
      : Rewriter(graph), users_(consumers(graph)), output_(is_output(graph)) {}

  Result<Stripped> run() {
    for (const Node& node : old().nodes) release(node);
    for (const Node& node : old().nodes) {
      Status done = is_quantize(node)     ? quantize_node(node)
                    : is_dequantize(node) ? dequantize_node(node)
                                          : copy(node);
      if (!done) errors_.push_back(std::move(done.error()).at("node '" + node.name + "'"));
    }
    if (!errors_.empty()) {
      Error first = errors_.front();
      first.others.assign(errors_.begin() + 1, errors_.end());
      return tl::unexpected<Error>(std::move(first));
    }
    for (ValueId id : old().outputs) {
      ValueId made = keep(id);
      if (new_name(made) != value(id).name) made = TW_TRY(output_named(made, value(id).name));
      output(made);
    }
    result_.graph = finish();
    return std::move(result_);
  }

 private:
  const std::string& new_name(ValueId id) const { return new_value(id).name; }
  std::optional<double> scale_of(ValueId made) const {
    const auto found = result_.value_scale.find(new_name(made));
    if (found == result_.value_scale.end()) return std::nullopt;
    return found->second;
  }

  Status copy(const Node& node) {
    Rewriter::copy(node);
    if (node.inputs.size() < 2) return {};
    const auto found = weights_.find(node.inputs[1]);
    if (found != weights_.end() &&
        (found->second.scales.size() == 1 || found->second.axis == output_axis(node)))
      result_.weight_scale[graph().nodes.back().name] = found->second.scales;
    return {};
  }

  /// The axis of a weight that runs over output channels.
  static int64_t output_axis(const Node& node) {
    if (node.op == "Conv") return 0;
    return node.op == "Gemm" && node.attrs.get_int("transB", 0) != 0 ? 0 : 1;
  }

  /// `made` under another name, by an Identity.
  Result<ValueId> renamed(ValueId made, const std::string& wanted, std::optional<double> scale) {
    const ValueId id = TW_TRY(append(wanted + "/Identity", "Identity", {made}));
    new_value(id).name = wanted;
    if (scale) result_.value_scale[wanted] = *scale;
    return id;
  }

  /// An output behind its conversions: the value before them takes its name.
  Result<ValueId> output_named(ValueId made, const std::string& wanted) {
    const auto listed = [&](const std::vector<ValueId>& ids) {
      return std::find(ids.begin(), ids.end(), made) != ids.end();
    };
    const auto scale = scale_of(made);
    if (listed(graph().inputs) || listed(graph().outputs) || new_value(made).constant)
      return renamed(made, wanted, scale);
    result_.value_scale.erase(new_name(made));
    if (scale) result_.value_scale[wanted] = *scale;
    new_value(made).name = wanted;
    return made;
  }

  /// Scales of a conversion. errors: Unsupported: a type or zero point that is not symmetric i8.
  struct Parameters {
    std::vector<double> scales;
    int64_t zero = 0;
  };
  Result<Parameters> parameters(const Node& node, DType dtype) const {
    if (!known(node.inputs[1]))
      return fail(ErrorKind::Unsupported, fmt::format("the scale of {} is computed", node.op));
    Parameters p;
    p.scales = array_of(value(node.inputs[1])).to_doubles();
    const bool shifted = node.inputs.size() > 2 && node.inputs[2] >= 0;
    if (shifted && !known(node.inputs[2]))
      return fail(ErrorKind::Unsupported, fmt::format("the zero point of {} is computed", node.op));
    std::vector<int64_t> zeros{0};
    if (shifted) zeros = array_of(value(node.inputs[2])).to_ints();
    // Unsigned numbers around 128 are signed numbers around 0.
    const int64_t middle = dtype == DType::U8 ? 128 : 0;
    for (const int64_t zero : zeros) {
      if (zero != middle)
        return fail(ErrorKind::Unsupported,
                    fmt::format("{} of {} with zero point {}", node.op, name(dtype), zero),
                    "sums of products need zero points of 0 (i8) or 128 (u8)",
                    "quantise symmetrically to QInt8");
    }
    p.zero = middle;
    for (const double scale : p.scales)
      if (!(scale > 0) || !std::isfinite(scale))
        return fail(ErrorKind::Invalid, fmt::format("{} has a scale of {}", node.op, scale));
    if (node.attrs.get_int("block_size", 0) != 0)
      return fail(ErrorKind::Unsupported, fmt::format("{} in blocks", node.op));
    return p;
  }

  static bool is_byte(DType dtype) { return dtype == DType::I8 || dtype == DType::U8; }

  Status quantize_node(const Node& node) {
    if (known(node.inputs[0])) return constant_quantize(node);
    if (!is_byte(value(node.outputs[0]).type.dtype) ||
        value(node.inputs[0]).type.dtype != DType::F32)
      return copy(node);
    const Parameters p = TW_TRY(parameters(node, value(node.outputs[0]).type.dtype));
    if (p.scales.size() != 1)
      return fail(ErrorKind::Unsupported,
                  fmt::format("activations with {} scales", p.scales.size()),
                  "sums over channels need one scale");
    codes_[node.outputs[0]] = {node.inputs[0], p.scales[0]};
    return copy(node);  // dropped unless somebody reads the integers themselves
  }

  /// QuantizeLinear of a constant: the integers, for the DequantizeLinear behind it.
  Status constant_quantize(const Node& node) {
    const DType dtype = value(node.outputs[0]).type.dtype;
    const Parameters p = TW_TRY(parameters(node, dtype));
    const Array& x = array_of(value(node.inputs[0]));
    const int64_t inner = inner_of(node, x.shape(), p.scales.size());
    Array codes(dtype, x.shape());
    const double lo = dtype == DType::U8 ? 0 : -128, hi = lo + 255;
    for (int64_t i = 0; i < x.size(); ++i) {
      const double scale = p.scales[static_cast<size_t>(i / inner) % p.scales.size()];
      const double code = round_even(x.get(i) / scale) + static_cast<double>(p.zero);
      codes.set_int(i, static_cast<int64_t>(std::clamp(code, lo, hi)));
    }
    constants_[node.outputs[0]] = std::move(codes);
    return {};
  }

  /// Elements that share a scale, when scales run along the node's axis.
  static int64_t inner_of(const Node& node, const Shape& shape, size_t scales) {
    if (scales == 1) return std::max<int64_t>(1, element_count(shape));
    int64_t axis = node.attrs.get_int("axis", 1), inner = 1;
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
    return inner;
  }

  Status dequantize_node(const Node& node) {
    const ValueId q = node.inputs[0];
    if (known(q) || constants_.contains(q)) return constant_dequantize(node);
    const auto code = codes_.find(q);
    if (code == codes_.end()) return copy_dequantize(node);
    const Parameters p = TW_TRY(parameters(node, value(q).type.dtype));
    if (p.scales.size() != 1 || p.scales[0] != code->second.scale) return copy(node);
    const ValueId x = code->second.x;
    const ValueId made = keep(x);
    const auto& readers = users_[static_cast<size_t>(x)];
    const bool only = std::all_of(readers.begin(), readers.end(), [&](int n) {
      return is_quantize(old().nodes[static_cast<size_t>(n)]);
    });
    const auto own = scale_of(made);
    if (only && !output_[static_cast<size_t>(x)] && (!own || *own == p.scales[0])) {
      result_.value_scale[new_name(made)] = p.scales[0];
      replace(node.outputs[0], made);
    } else {
      // Others read the value before it is rounded, or rounded otherwise.
      replace(node.outputs[0], TW_TRY(renamed(made, value(node.outputs[0]).name, p.scales[0])));
    }
    return {};
  }

  /// Integers that come from elsewhere (an input of the graph, MaxPool on i8).
  Status copy_dequantize(const Node& node) {
    const DType dtype = value(node.inputs[0]).type.dtype;
    TW_TRY_STATUS(copy(node));
    if (!is_byte(dtype)) return {};
    const Parameters p = TW_TRY(parameters(node, dtype));
    if (p.scales.size() == 1) result_.value_scale[value(node.outputs[0]).name] = p.scales[0];
    return {};
  }

  Status constant_dequantize(const Node& node) {
    const ValueId q = node.inputs[0];
    const Array codes = known(q) ? array_of(value(q)) : constants_.at(q);
    const Parameters p = TW_TRY(parameters(node, codes.dtype()));
    const int64_t inner = inner_of(node, codes.shape(), p.scales.size());
    Array real(DType::F32, codes.shape());
    for (int64_t i = 0; i < codes.size(); ++i) {
      const double scale = p.scales[static_cast<size_t>(i / inner) % p.scales.size()];
      real.set(i, static_cast<double>(codes.get_int(i) - p.zero) * scale);
    }
    const ValueId out = node.outputs[0];
    replace(out, graph().add_value(value(out).name, value(out).type, std::move(real)));
    const auto rank = static_cast<int64_t>(codes.shape().size());
    int64_t axis = node.attrs.get_int("axis", 1);
    if (axis < 0) axis += rank;
    if (is_byte(codes.dtype())) weights_[out] = {p.scales, axis};
    return {};
  }

  struct Code {
    ValueId x;
    double scale;
  };
  Stripped result_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> output_;
  std::map<ValueId, Code> codes_;       ///< integers -> what they stand for
  std::map<ValueId, Array> constants_;  ///< integers of constants
  struct Weight {
    std::vector<double> scales;
    int64_t axis;
  };
  std::map<ValueId, Weight> weights_;  ///< constants behind a DequantizeLinear
  std::vector<Error> errors_;
};

/// Gives scales to values that have none but are moved from or to values that do.
void spread(const Graph& graph, std::vector<double>& scales) {
  static const std::set<std::string> kViews = {"DepthToSpace", "Flatten",   "Identity", "Im2Col",
                                               "MaxPool",      "Pad",       "Reshape",  "Slice",
                                               "Split",        "Squeeze",   "Tile",     "Transpose",
                                               "SpaceToDepth", "Unsqueeze", "Expand"};
  const auto scale = [&](ValueId id) -> double& { return scales[static_cast<size_t>(id)]; };
  for (const Node& node : graph.nodes)
    if (kViews.contains(node.op))
      for (const ValueId id : node.outputs)
        if (id >= 0 && scale(id) == 0) scale(id) = scale(node.inputs[0]);
  const auto users = consumers(graph);
  const auto output = is_output(graph);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    const bool joins = node.op == "Concat";
    if (node.outputs.size() != 1) continue;
    if (!joins && !kViews.contains(node.op)) continue;
    for (size_t i = 0; i < (joins ? node.inputs.size() : 1); ++i) {
      const auto x = static_cast<size_t>(node.inputs[i]);
      if (scales[x] == 0 && users[x].size() == 1 && !output[x]) scales[x] = scale(node.outputs[0]);
    }
  }
}

/// errors: Unsupported: every scale that is no power of two, and those that differ by channel.
Status require_powers(const Stripped& stripped) {
  std::vector<Error> errors;
  const auto require = [&](const std::string& what, const std::vector<double>& scales) {
    double odd = 0;
    for (const double scale : scales)
      if (!exact_log2(scale) || scale != scales[0]) odd = scale;
    if (odd == 0) return;
    Error error;
    error.kind = ErrorKind::Unsupported;
    error.what = fmt::format("{} has the scale {:.6g}", what, odd);
    error.why = "the target shifts: it takes powers of two, one per tensor";
    error.fix = "quantise with such scales, or give the f32 model and --quantize";
    errors.push_back(std::move(error));
  };
  for (const auto& [name, scale] : stripped.value_scale)
    require(fmt::format("tensor '{}'", name), {scale});
  for (const auto& [node, scales] : stripped.weight_scale)
    require(fmt::format("the weight of '{}'", node), scales);
  if (errors.empty()) return {};
  Error first = errors.front();
  first.others.assign(errors.begin() + 1, errors.end());
  return tl::unexpected<Error>(std::move(first));
}

}  // namespace

bool is_qdq(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& n) { return is_quantize(n) || is_dequantize(n); });
}

Result<QuantizedGraph> from_qdq(const Graph& graph, PassContext& context,
                                const IntegerAbilities& target) {
  const Stripped stripped = TW_TRY(Stripper(graph).run());
  if (target.fixed_point) TW_TRY_STATUS(require_powers(stripped));
  std::set<std::string> boundaries;
  for (const auto& entry : stripped.value_scale) boundaries.insert(entry.first);
  const Graph prepared = TW_TRY(to_convolutions(stripped.graph, context, boundaries, target));
  Scales scales;
  const size_t count = prepared.values.size();
  scales.value.assign(count, 0);
  scales.mean.resize(count);
  scales.rounded.assign(count, false);
  bool powers = true;
  for (size_t v = 0; v < count; ++v) {
    const auto found = stripped.value_scale.find(prepared.values[v].name);
    if (found == stripped.value_scale.end()) continue;
    scales.value[v] = found->second;
    scales.rounded[v] = true;
    powers = powers && exact_log2(found->second).has_value();
  }
  spread(prepared, scales.value);
  for (const Node& node : prepared.nodes) {
    if (!node.domain.empty() || (node.op != "Conv" && node.op != "ConvTranspose")) continue;
    const auto& weight = prepared.values[static_cast<size_t>(node.inputs[1])].constant;
    if (!weight || weight->dtype() != DType::F32) continue;
    if (const auto found = stripped.weight_scale.find(node.name);
        found != stripped.weight_scale.end()) {
      // The phases of a transposed convolution share the scales of its channels.
      std::vector<double> all = found->second;
      const auto outs = static_cast<size_t>(weight->shape()[0]);
      while (all.size() > 1 && all.size() < outs)
        all.push_back(all[all.size() - found->second.size()]);
      scales.weight[node.inputs[1]] = std::move(all);
      continue;
    }
    // Weights the model does not round (means): a power of two only if that saves the multiplier.
    const int exponent = best_exponent(weight->as<float>());
    double most = 0;
    for (const float w : weight->as<float>()) most = std::max<double>(most, std::fabs(w));
    scales.weight[node.inputs[1]] = {powers || most == 0 ? std::ldexp(1.0, exponent)
                                                         : most / kInt8Max};
  }
  const std::function<bool(ValueId)> has_scale = [&](ValueId id) {
    return scales.value[static_cast<size_t>(id)] > 0;
  };
  const std::function<bool(ValueId)> boundary = [&](ValueId id) {
    return static_cast<bool>(scales.rounded[static_cast<size_t>(id)]);
  };
  QuantizeOptions options;
  options.correct_bias = options.wide_outputs = false;
  options.target = target;
  return emit_quantized(prepared, plan_units(prepared, has_scale, boundary, target), scales,
                        options);
}

}  // namespace tilewright::graph
