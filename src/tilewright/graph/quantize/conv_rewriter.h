// What the rewritings of prepare_quantize share: convolutions in place of other nodes.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/quantize/abilities.h"
#include "tilewright/tensor/fixed_point.h"

namespace tilewright::graph {

/// Geometry of a convolution on two spatial axes.
struct Geometry {
  Ints strides = {1, 1}, pads = {0, 0, 0, 0}, dilations = {1, 1};
  int64_t groups = 1;
};

/// A Rewriter that makes convolutions, and takes in what follows them.
class ConvRewriter : protected Rewriter {
 public:
  ConvRewriter(const Graph& graph, PassContext& context, const std::set<std::string>& boundaries,
               const IntegerAbilities& target)
      : Rewriter(graph),
        target_(target),
        context_(context),
        boundaries_(boundaries),
        producer_(producers(graph)),
        users_(consumers(graph)),
        output_(is_output(graph)) {}

 protected:
  bool is_f32(ValueId id) const { return value(id).type.dtype == DType::F32; }
  /// A computed or given f32 image.
  bool is_image(ValueId id) const {
    return id >= 0 && !known(id) && is_f32(id) && shape(id).size() == 4 &&
           value(id).type.dynamic_axis < 0 && element_count(shape(id)) > 0;
  }

  /// Read by one node, needed nowhere else and free of rounding of its own.
  bool inner(ValueId id) const {
    return users_[static_cast<size_t>(id)].size() == 1 && !output_[static_cast<size_t>(id)] &&
           !boundaries_.contains(value(id).name);
  }

  void define(ValueId old, ValueId made) {
    Rewriter::define(old, made);
    ++rewritten_;
  }
  /// `x` itself where it has that shape already.
  Result<ValueId> reshape(const std::string& name, ValueId x, const Shape& target) {
    return new_shape(x) == target ? Result<ValueId>(x) : Rewriter::reshape(name, x, target);
  }
  /// Elements [begin, end) of spatial axes 2 and 3.
  Result<ValueId> slice(const std::string& name, ValueId x, const Ints& begin, const Ints& end) {
    const Shape& s = new_shape(x);
    if (begin[0] == 0 && begin[1] == 0 && end[0] == s[2] && end[1] == s[3]) return x;
    return append(name, "Slice",
                  {x, ints(name + ".starts", begin), ints(name + ".ends", end),
                   ints(name + ".axes", {2, 3})});
  }
  Result<ValueId> conv(const std::string& name, ValueId x, Array weight, std::optional<Array> bias,
                       const Geometry& g) {
    const Shape w = weight.shape();
    std::vector<ValueId> inputs = {x, constant(name + ".weight", std::move(weight))};
    if (bias) inputs.push_back(constant(name + ".bias", *std::move(bias)));
    return append(name, "Conv", std::move(inputs),
                  attrs_of({{"kernel_shape", Ints{w[2], w[3]}},
                            {"strides", g.strides},
                            {"pads", g.pads},
                            {"dilations", g.dilations},
                            {"group", g.groups}}));
  }
  /// One kernel of equal weights for every channel.
  Result<ValueId> mean_conv(const std::string& name, ValueId x, const Ints& kernel, double weight,
                            Geometry g) {
    const int64_t channels = new_shape(x)[1];
    Array w(DType::F32, {channels, 1, kernel[0], kernel[1]});
    for (float& element : w.as<float>()) element = static_cast<float>(weight);
    g.groups = channels;
    return conv(name, x, std::move(w), std::nullopt, g);
  }
  /// y = weight[c] * x + bias[c].
  Result<ValueId> scale_conv(const std::string& name, ValueId x, const std::vector<double>& weight,
                             const std::vector<double>& bias = {}) {
    const auto channels = static_cast<int64_t>(weight.size());
    Array w = Array::of(DType::F32, weight).reshaped({channels, 1, 1, 1});
    Geometry g;
    g.groups = channels;
    std::optional<Array> b;
    if (!bias.empty()) b = Array::of(DType::F32, bias);
    return conv(name, x, std::move(w), std::move(b), g);
  }

  /// If only an Add of one constant per channel follows, it goes to `bias`: the value behind it.
  ValueId absorb_channel_bias(ValueId id, std::optional<Array>& bias) {
    if (!inner(id)) return id;
    const int n = users_[static_cast<size_t>(id)][0];
    const Node& next = old().nodes[static_cast<size_t>(n)];
    const auto affine = affine_of(next);
    if (!affine || affine->x != id || next.op != "Add") return id;
    Array sum(DType::F32, {static_cast<int64_t>(affine->bias.size())});
    for (int64_t c = 0; c < sum.size(); ++c)
      sum.set(c, (bias ? bias->get(c) : 0) + affine->bias[static_cast<size_t>(c)]);
    bias = std::move(sum);
    release(next);
    absorbed_.insert(n);
    return next.outputs[0];
  }

  /// Applies activations that follow `id` to `made` first, then `move`: data movement commutes
  /// with them, and next to the convolution they cost nothing.
  Result<bool> behind_activations(ValueId id, ValueId made,
                                  const std::function<Result<ValueId>(ValueId)>& move) {
    while (inner(id)) {
      const int n = users_[static_cast<size_t>(id)][0];
      const Node& next = old().nodes[static_cast<size_t>(n)];
      const bool bounds = std::all_of(next.inputs.begin() + 1, next.inputs.end(),
                                      [&](ValueId bound) { return bound < 0 || known(bound); });
      const bool activation = next.op == "Relu" || next.op == "Clip" || is_native_leaky(next);
      if (!next.domain.empty() || !activation || !bounds) break;
      std::vector<ValueId> inputs = {made};
      for (size_t i = 1; i < next.inputs.size(); ++i) inputs.push_back(keep(next.inputs[i]));
      release(next);
      made = TW_TRY(append(next.name, next.op, std::move(inputs), next.attrs));
      absorbed_.insert(n);
      id = next.outputs[0];
    }
    define(id, TW_TRY(move(made)));
    return true;
  }

  /// A LeakyRelu that the target computes itself.
  bool is_native_leaky(const Node& node) const {
    return target_.leaky_relu && node.domain.empty() && node.op == "LeakyRelu" &&
           is_native_slope(node.attrs.get_float("alpha", 0.01));
  }
  bool is_native_slope(double slope) const {
    return target_.leaky_relu && std::fabs(slope - tensor::kLeakySlope) <= kSlopeTolerance;
  }

  /// A constant that depends on the channel alone, one value per channel of an image.
  std::optional<std::vector<double>> per_channel(ValueId id, const Shape& image) const {
    if (!known(id) || !is_f32(id)) return std::nullopt;
    const Array& array = array_of(value(id));
    const auto channels = static_cast<size_t>(image[1]);
    if (array.size() == 1) return std::vector<double>(channels, array.get(0));
    Shape wide(array.shape().size() > 4 ? 0 : 4 - array.shape().size(), 1);
    wide.insert(wide.end(), array.shape().begin(), array.shape().end());
    if (wide != Shape{1, image[1], 1, 1}) return std::nullopt;
    return array.to_doubles();
  }

  /// y[c] = weight[c] * x[c] + bias[c] for an image x.
  struct Affine {
    ValueId x = -1;
    std::vector<double> weight, bias;
  };
  std::optional<Affine> affine_of(const Node& node) const {
    const bool arithmetic =
        node.op == "Mul" || node.op == "Div" || node.op == "Add" || node.op == "Sub";
    if (!node.domain.empty() || !arithmetic || node.inputs.size() != 2) return std::nullopt;
    const bool left = known(node.inputs[0]);
    Affine affine;
    affine.x = node.inputs[left ? 1 : 0];
    const Shape& y = shape(node.outputs[0]);
    if (!is_image(affine.x) || shape(affine.x) != y || (left && node.op == "Div"))
      return std::nullopt;
    const auto factors = per_channel(node.inputs[left ? 0 : 1], y);
    if (!factors) return std::nullopt;
    affine.weight.assign(factors->size(), 1);
    affine.bias.assign(factors->size(), 0);
    for (size_t c = 0; c < factors->size(); ++c) {
      const double f = (*factors)[c];
      if (node.op == "Mul") affine.weight[c] = f;
      if (node.op == "Div" && f == 0) return std::nullopt;
      if (node.op == "Div") affine.weight[c] = 1 / f;
      if (node.op == "Add") affine.bias[c] = f;
      if (node.op == "Sub") affine.bias[c] = left ? f : -f;
      if (node.op == "Sub" && left) affine.weight[c] = -1;
    }
    return affine;
  }

  const IntegerAbilities target_;
  PassContext& context_;
  const std::set<std::string>& boundaries_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> output_;
  std::set<int> absorbed_;
  int rewritten_ = 0;
};

}  // namespace tilewright::graph
