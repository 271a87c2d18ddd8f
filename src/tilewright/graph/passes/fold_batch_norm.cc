// A factor and an offset per channel go into the weights and the bias of the product before them.
//
//   BatchNormalization: y = s x + t per channel, with s = gamma / sqrt(variance + epsilon) and
//                       t = beta - mean s; Add, Sub, Mul and Div by known values are the same
//   behind a Conv:      s (w * x + b) + t = (s w) * x + (s b + t)
//
// A BatchNormalization behind anything else becomes a Mul and an Add.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// y[c] = scale[c] * x[c] + shift[c].
struct Affine {
  std::vector<double> scale, shift;
};

class BatchNormFolder : private Editor {
 public:
  BatchNormFolder(const Graph& graph, PassContext& context) : Editor(graph), context_(context) {}

  Result<Graph> run() {
    read_edges();
    for (size_t n = 0; n < graph().nodes.size(); ++n) {
      const std::optional<Affine> affine = affine_of(n);
      if (!affine) continue;
      if (fold_into_product(n, *affine)) {
        ++folded_;
      } else if (node(n).op == "BatchNormalization") {
        split(n, *affine);
        ++split_;
      } else {
        continue;
      }
      read_edges();  // only after changes: once per node would take quadratic time
    }
    if (folded_ > 0)
      context_.notes.push_back(fmt::format("{} scalings folded into weights", folded_));
    if (split_ > 0)
      context_.notes.push_back(fmt::format("{} BatchNormalization became Mul and Add", split_));
    return compact(graph());
  }

 private:
  void read_edges() {
    producer_ = producers(graph());
    users_ = consumers(graph());
  }

  Node& node(size_t n) { return graph().nodes[n]; }
  /// The per-channel scale and shift a node applies to its input 0 (axis 1 holds the channels).
  std::optional<Affine> affine_of(size_t n) {
    const Node& v = node(n);
    if (!v.domain.empty() || v.outputs.size() != 1 || v.inputs.size() < 2) return std::nullopt;
    if (!is_float(value(v.outputs[0]).type.dtype)) return std::nullopt;
    if (v.op == "BatchNormalization") return of_batch_norm(v);
    if (v.op == "Add" || v.op == "Mul" || v.op == "Sub" || v.op == "Div") return of_arithmetic(n);
    return std::nullopt;
  }

  std::optional<Affine> of_batch_norm(const Node& v) const {
    if (v.inputs.size() != 5 || v.attrs.get_int("training_mode", 0) != 0) return std::nullopt;
    for (size_t i = 1; i < 5; ++i)
      if (!known(v.inputs[i])) return std::nullopt;
    const double epsilon = v.attrs.get_float("epsilon", 1e-5);
    const auto list = [&](size_t i) { return array_of(value(v.inputs[i])).to_doubles(); };
    const auto gamma = list(1), beta = list(2), mean = list(3), variance = list(4);
    Affine affine;
    for (size_t c = 0; c < gamma.size(); ++c) {
      affine.scale.push_back(gamma[c] / std::sqrt(variance[c] + epsilon));
      affine.shift.push_back(beta[c] - mean[c] * affine.scale[c]);
    }
    return affine;
  }

  /// Values of a constant that depends on the channel alone, one per channel of `out`.
  std::optional<std::vector<double>> per_channel(ValueId id, const Shape& out) const {
    if (!known(id) || out.size() < 2) return std::nullopt;
    const Shape& own = shape(id);
    const auto channels = static_cast<size_t>(out[1]);
    const std::vector<double> values = array_of(value(id)).to_doubles();
    if (values.size() == 1) return std::vector<double>(channels, values[0]);
    if (values.size() != channels || own.size() > out.size()) return std::nullopt;
    const size_t axis = own.size() + 1 - out.size();  // where the channels are in the constant
    if (own.size() + 1 < out.size() || own[axis] != out[1]) return std::nullopt;
    return values;
  }

  std::optional<Affine> of_arithmetic(size_t n) {
    Node& v = node(n);
    const bool left = known(v.inputs[0]);
    if (v.inputs.size() != 2 || left == (known(v.inputs[1]) != nullptr)) return std::nullopt;
    const Shape& out = shape(v.outputs[0]);
    const auto values = per_channel(v.inputs[left ? 0 : 1], out);
    if (!values || shape(v.inputs[left ? 1 : 0]) != out || (left && v.op == "Div"))
      return std::nullopt;
    Affine affine{std::vector<double>(values->size(), 1), std::vector<double>(values->size(), 0)};
    for (size_t c = 0; c < values->size(); ++c) {
      const double x = (*values)[c];
      if (v.op == "Add") affine.shift[c] = x;
      if (v.op == "Sub") affine.shift[c] = left ? x : -x;
      if (v.op == "Sub" && left) affine.scale[c] = -1;
      if (v.op == "Mul") affine.scale[c] = x;
      if (v.op == "Div") affine.scale[c] = 1 / x;
      if (v.op == "Div" && x == 0) return std::nullopt;
    }
    return affine;
  }

  /// The convolution or product before `n` whose only reader is `n`.
  Node* product_before(size_t n) {
    for (ValueId id : node(n).inputs) {
      if (id < 0 || known(id)) continue;
      const int p = producer_[static_cast<size_t>(id)];
      const bool output =
          std::find(graph().outputs.begin(), graph().outputs.end(), id) != graph().outputs.end();
      if (p < 0 || users_[static_cast<size_t>(id)].size() != 1 || output) return nullptr;
      Node& product = node(static_cast<size_t>(p));
      const bool linear =
          product.op == "Conv" || product.op == "ConvTranspose" || product.op == "Gemm";
      if (!linear || !product.domain.empty() || !known(product.inputs[1])) return nullptr;
      if (product.inputs.size() > 2 && product.inputs[2] >= 0 && !known(product.inputs[2]))
        return nullptr;
      if (product.op != "Gemm") return &product;
      const bool plain =
          product.attrs.get_float("alpha", 1) == 1 && product.attrs.get_float("beta", 1) == 1;
      return plain ? &product : nullptr;
    }
    return nullptr;
  }

  /// Output channel of each slab of `inner` consecutive weights.
  static int64_t channel_of(const Node& product, const Shape& weights, int64_t slab) {
    if (product.op == "Conv") return slab / weights[1];
    if (product.op == "ConvTranspose") {
      const int64_t groups = product.attrs.get_int("group", 1);
      const int64_t group = slab / weights[1] / (weights[0] / groups);
      return group * weights[1] + slab % weights[1];
    }
    return product.attrs.get_int("transB", 0) != 0 ? slab / weights[1] : slab % weights[1];
  }

  ValueId scaled_weights(const Node& product, const std::vector<double>& scale) {
    const ValueId old = product.inputs[1];
    const Array& from = array_of(value(old));
    Array to(from.dtype(), from.shape());
    const Shape& dims = from.shape();
    const int64_t slabs = dims[0] * dims[1];
    const int64_t inner = slabs == 0 ? 0 : from.size() / slabs;
    for (int64_t slab = 0; slab < slabs; ++slab) {
      const double factor = scale[static_cast<size_t>(channel_of(product, dims, slab))];
      for (int64_t i = slab * inner; i < (slab + 1) * inner; ++i) to.set(i, from.get(i) * factor);
    }
    return constant(value(old).name + ".scaled", std::move(to));
  }

  bool fold_into_product(size_t n, const Affine& affine) {
    Node* product = product_before(n);
    if (product == nullptr) return false;
    const std::string op = product->op;
    const auto channels = static_cast<int64_t>(affine.scale.size());
    std::vector<double> bias(affine.scale.size(), 0);
    if (product->inputs.size() > 2 && product->inputs[2] >= 0) {
      const std::vector<double> old = array_of(value(product->inputs[2])).to_doubles();
      if (old.size() != bias.size() && old.size() != 1) return false;
      const Shape& own = shape(product->inputs[2]);
      if (!own.empty() && own.back() != static_cast<int64_t>(old.size())) return false;
      for (size_t c = 0; c < bias.size(); ++c) bias[c] = old[old.size() == 1 ? 0 : c];
    }
    if (shape(product->outputs[0])[1] != channels) return false;
    if (!forward(graph(), node(n).outputs[0], product->outputs[0])) return false;
    node(n).inputs.clear();  // dead from here on: it must not count as a reader
    const DType dtype = value(product->outputs[0]).type.dtype;
    for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * affine.scale[c] + affine.shift[c];
    if (std::any_of(affine.scale.begin(), affine.scale.end(), [](double s) { return s != 1; }))
      product->inputs[1] = scaled_weights(*product, affine.scale);
    product->inputs.resize(3, -1);
    product->inputs[2] = constant(product->name + ".bias", Array::of(dtype, bias));
    return true;
  }

  /// BatchNormalization on something else: Mul and Add by constants of shape [C, 1, ...].
  void split(size_t n, const Affine& affine) {
    const Shape out = shape(node(n).outputs[0]);
    const DType dtype = value(node(n).outputs[0]).type.dtype;
    Shape own(out.size() - 1, 1);
    own[0] = out[1];
    const std::string name = node(n).name;
    const auto of_channels = [&](const char* suffix, const std::vector<double>& values) {
      return constant(name + suffix, Array::of(dtype, values).reshaped(own));
    };
    Node shift = node(n);
    Node scale;
    scale.name = node_name(name + ".scale");
    scale.op = "Mul";
    scale.inputs = {shift.inputs[0], of_channels(".factor", affine.scale)};
    scale.outputs = {graph().add_value(value_name(name + ".scaled"), {dtype, out})};
    shift.op = "Add";
    shift.attrs.values.clear();
    shift.inputs = {scale.outputs[0], of_channels(".offset", affine.shift)};
    node(n) = std::move(shift);
    put(std::move(scale));  // `compact` puts it before its reader
  }

  PassContext& context_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> users_;
  int folded_ = 0, split_ = 0;
};

}  // namespace

Result<Graph> fold_batch_norm(const Graph& graph, PassContext& context) {
  return BatchNormFolder(graph, context).run();
}

}  // namespace tilewright::graph
