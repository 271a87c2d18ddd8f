// Products of dequantised values become products of the integers themselves, which dot-product
// instructions compute; the scales go behind the sums.
//
//   x = sx (qx - zx) and w = sw qw:  sum x w = sx sw (sum (qx - zx) qw)
//   Conv(DequantizeLinear(qx), DequantizeLinear(qw), b)
//     =>  Add(Mul(Cast(ConvInteger(qx, qw, zx)), sx sw), b)
//
// A QuantizeLinear behind it divides by its scale: that factor goes into sx sw and b where it can.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/dot_form.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// scale * (q - zero), one scale for all or one per filter.
struct Quantised {
  ValueId q = -1;
  std::vector<double> scales;
  int64_t zero = 0;
};

DType flipped(DType dtype) { return dtype == DType::I8 ? DType::U8 : DType::I8; }
bool is_byte(DType dtype) { return dtype == DType::I8 || dtype == DType::U8; }

class IntegerProducts : private Editor {
 public:
  IntegerProducts(const Graph& graph, PassContext& context)
      : Editor(graph), in_(graph), context_(context) {}

  Result<Graph> run() {
    for (size_t n = 0, count = graph().nodes.size(); n < count; ++n) TW_TRY_STATUS(expand(n));
    producer_ = producers(graph());
    const size_t count = graph().nodes.size();
    for (size_t n = 0; n < count; ++n)
      if (is_quantize(graph().nodes[n])) change_sign(n);
    for (size_t n = 0; n < count; ++n) {
      TW_TRY_STATUS(node(n));
      TW_TRY_STATUS(integer_node(n));
    }
    if (products_ == 0) return in_;
    for (size_t n = 0; n < count; ++n)
      if (is_quantize(graph().nodes[n])) TW_TRY_STATUS(multiply_instead(n));
    context_.notes.push_back(fmt::format("{} products of bytes", products_));
    return compact(graph());
  }

 private:
  static ValueId input(const Node& n, size_t i) { return i < n.inputs.size() ? n.inputs[i] : -1; }
  static bool is(const Node& n, const char* op) { return n.domain.empty() && n.op == op; }
  static bool is_quantize(const Node& n) { return is(n, "QuantizeLinear"); }
  /// Whether the groups of a convolution with this weight make products of bytes.
  bool has_form(const Node& n, const Shape& weight) const {
    const int64_t groups = n.attrs.get_int("group", 1), block = context_.vector_bytes / 4;
    return context_.zero_points_apart || is_depthwise(weight, groups) ||
           merged_groups(weight, groups, block) > 0;
  }
  int64_t depth(DType x) { return context_.dot_depth ? context_.dot_depth(x, DType::I8) : 0; }

  /// QLinearConv and QLinearMatMul as what they stand for: f32 between conversions, where that
  /// becomes an integer product below.
  Status expand(size_t n) {
    const Node old = graph().nodes[n];
    const bool conv = is(old, "QLinearConv");
    if ((!conv && !is(old, "QLinearMatMul")) || value(old.inputs[3]).type.shape.size() < 2)
      return {};
    const Array* x_scale = known(old.inputs[1]);
    const Array* w_scale = known(old.inputs[4]);
    const Array* out_scale = known(old.inputs[6]);
    if (x_scale == nullptr || w_scale == nullptr || out_scale == nullptr || x_scale->size() != 1 ||
        out_scale->size() != 1 || (!conv && w_scale->size() != 1))
      return {};
    const Array* w_zero = known(old.inputs[5]);
    if (known(old.inputs[3]) == nullptr || w_zero == nullptr || w_zero->size() == 0 ||
        known(old.inputs[2]) == nullptr ||
        (conv && !has_form(old, value(old.inputs[3]).type.shape)))
      return {};
    for (int64_t i = 0; i < w_zero->size(); ++i)
      if (w_zero->get_int(i) != w_zero->get_int(0)) return {};
    if (!weights_of({old.inputs[3], {}, w_zero->get_int(0)}, false)) return {};
    const std::vector<double> factors = w_scale->to_doubles();
    const double x_factor = x_scale->get(0);
    const auto real = [&](size_t i) {
      tensor::Attrs attrs;
      if (i == 3) attrs.values["axis"] = int64_t{0};
      return append(old.name + "/Dequantize", "DequantizeLinear",
                    {old.inputs[i], old.inputs[i + 1], old.inputs[i + 2]}, attrs);
    };
    std::vector<ValueId> inputs = {TW_TRY(real(0)), TW_TRY(real(3))};
    if (const ValueId b = input(old, 8); b >= 0) {
      const Array* sums = known(b);
      if (sums == nullptr) return {};
      Array bias(DType::F32, sums->shape());
      for (int64_t k = 0; k < bias.size(); ++k)
        bias.set(k, static_cast<double>(sums->get_int(k)) * x_factor *
                        factors[factors.size() == 1 ? 0 : static_cast<size_t>(k)]);
      inputs.push_back(constant(old.name + ".bias", std::move(bias)));
    }
    const ValueId made = TW_TRY(append(old.name + "/Product", conv ? "Conv" : "MatMul",
                                       std::move(inputs), conv ? old.attrs : tensor::Attrs{}));
    const ValueId out = TW_TRY(
        append(old.name + "/Quantize", "QuantizeLinear", {made, old.inputs[6], old.inputs[7]}));
    forward(graph(), old.outputs[0], out);
    return {};
  }

  /// ConvInteger and MatMulInteger as the target multiplies: signed weights around zero,
  /// activations of its signedness; a zero point that only the run will tell goes behind the sum.
  Status integer_node(size_t n) {
    const Node old = graph().nodes[n];
    const bool conv = is(old, "ConvInteger");
    if (context_.zero_points_apart || (!conv && !is(old, "MatMulInteger")) ||
        known(input(old, 1)) == nullptr)
      return {};
    const Array* w_zero = known(input(old, 3));
    if (input(old, 3) >= 0 && (w_zero == nullptr || w_zero->size() == 0)) return {};
    Quantised w{old.inputs[1], {}, w_zero ? w_zero->get_int(0) : 0};
    for (int64_t i = 1; w_zero != nullptr && i < w_zero->size(); ++i)
      if (w_zero->get_int(i) != w.zero) return {};
    const auto weight = signed_weight(w, false);
    const Array* x_zero = known(input(old, 2));
    const bool dynamic = input(old, 2) >= 0 && x_zero == nullptr;
    const DType x_type = value(old.inputs[0]).type.dtype;
    const DType wanted = depth(x_type) > 0 ? x_type : flipped(x_type);
    const bool plain = wanted == x_type && known(w.q)->dtype() == DType::I8 && !dynamic;
    if (!weight || depth(wanted) == 0 || plain || (x_zero != nullptr && x_zero->size() != 1) ||
        (dynamic && (conv || weight->shape().size() != 2 ||
                     element_count(value(old.inputs[2]).type.shape) != 1)))
      return {};
    const Quantised x =
        TW_TRY(as_type({old.inputs[0], {}, x_zero ? x_zero->get_int(0) : 0}, wanted));
    std::vector<ValueId> inputs = {x.q, constant(old.name + ".weight", *weight)};
    if (!dynamic && x.zero != 0) inputs.push_back(zero_point(old, wanted, x.zero));
    ValueId made = TW_TRY(append(old.name + "/Integer", old.op, std::move(inputs), old.attrs));
    if (dynamic) made = TW_TRY(less_zero_point(old, made, *weight, x.zero));
    if (forward(graph(), old.outputs[0], made)) ++products_;
    return {};
  }

  /// sums - (zero point + shift) * (sums of the weights of each column).
  Result<ValueId> less_zero_point(const Node& old, ValueId sums, const Array& weight,
                                  int64_t shift) {
    const int64_t columns = weight.shape()[1];
    Array totals(DType::I32, {columns}), moved(DType::I32, {1});
    moved.set_int(0, shift);
    for (int64_t i = 0; i < weight.size(); ++i)
      totals.set_int(i % columns, totals.get_int(i % columns) + weight.get_int(i));
    tensor::Attrs wide;
    wide.values["to"] = int64_t{6};  // ONNX: INT32
    ValueId zero = TW_TRY(append(old.name + "/Zero", "Cast", {old.inputs[2]}, wide));
    zero = TW_TRY(append(old.name + "/Zero", "Add", {zero, constant("shift", std::move(moved))}));
    zero = TW_TRY(append(old.name + "/Zero", "Mul", {zero, constant("totals", std::move(totals))}));
    return append(old.name + "/Sub", "Sub", {sums, zero});
  }

  /// A QuantizeLinear to the signedness the target multiplies, with all readers that dequantise.
  void change_sign(size_t n) {
    Node& quantize = graph().nodes[n];
    const Array* zero = known(input(quantize, 2));
    const ValueId q = quantize.outputs[0];
    const DType from = value(q).type.dtype, to = flipped(from);
    if (zero == nullptr || zero->size() != 1 || !is_byte(from) || depth(from) > 0 ||
        depth(to) == 0 || quantize.attrs.has("output_dtype"))
      return;
    std::vector<size_t> users;
    for (size_t u = 0; u < graph().nodes.size(); ++u)
      for (const ValueId id : graph().nodes[u].inputs)
        if (id == q) users.push_back(u);
    for (const ValueId id : graph().outputs)
      if (id == q) return;
    for (const size_t u : users) {
      const Array* read = known(input(graph().nodes[u], 2));
      if (!is(graph().nodes[u], "DequantizeLinear") || read == nullptr || read->size() != 1) return;
    }
    const int64_t shift = to == DType::U8 ? 128 : -128;
    auto moved = [&](const Array& old) {
      Array out(to, old.shape());
      out.set_int(0, old.get_int(0) + shift);
      return constant("zero", std::move(out));
    };
    for (const size_t u : users)
      graph().nodes[u].inputs[2] = moved(*known(graph().nodes[u].inputs[2]));
    graph().nodes[n].inputs[2] = moved(*known(graph().nodes[n].inputs[2]));
    new_value(q).type.dtype = to;
  }

  /// The integers behind a dequantised value whose parameters are known.
  std::optional<Quantised> dequantised(ValueId id, bool weights, size_t axis) {
    const int p = id < 0 || static_cast<size_t>(id) >= producer_.size() ? -1 : producer_[id];
    if (p < 0 || !is(graph().nodes[static_cast<size_t>(p)], "DequantizeLinear"))
      return std::nullopt;
    const Node& from = graph().nodes[static_cast<size_t>(p)];
    const Array* scale = known(input(from, 1));
    const Array* zero = known(input(from, 2));
    if (scale == nullptr || (from.inputs.size() > 2 && zero == nullptr) ||
        from.attrs.has("block_size"))
      return std::nullopt;
    Quantised out{from.inputs[0], scale->to_doubles(), zero ? zero->get_int(0) : 0};
    for (int64_t i = 1; zero != nullptr && i < zero->size(); ++i)
      if (zero->get_int(i) != out.zero) return std::nullopt;
    if (weights != (known(out.q) != nullptr) || !is_byte(value(out.q).type.dtype))
      return std::nullopt;
    const Shape& shape = value(out.q).type.shape;
    if (out.scales.size() == 1) return out;
    const auto along = from.attrs.get_int("axis", 1);
    const auto rank = static_cast<int64_t>(shape.size());
    const bool fits = weights && (along < 0 ? along + rank : along) == static_cast<int64_t>(axis);
    return fits ? std::optional(out) : std::nullopt;
  }

  Status node(size_t n) {
    const Node& old = graph().nodes[n];
    const bool conv = is(old, "Conv"), gemm = is(old, "Gemm");
    if (!conv && !gemm && !is(old, "MatMul")) return {};
    const bool transposed = gemm && old.attrs.get_int("transB", 0) != 0;
    if (gemm && (old.attrs.get_int("transA", 0) != 0 || old.attrs.get_float("alpha", 1) != 1 ||
                 old.attrs.get_float("beta", 1) != 1))
      return {};
    const size_t axis = conv || transposed ? 0 : 1;
    auto x = dequantised(input(old, 0), false, 0);
    const auto w = dequantised(input(old, 1), true, axis);
    if (!x || !w) return {};
    const Shape& shape = value(w->q).type.shape;
    if (shape.size() != (conv ? 4u : 2u) || (conv && !has_form(old, shape))) return {};
    const int64_t filters = shape[axis];
    const auto bias = bias_of(input(old, 2), filters);
    const auto weight = weights_of(*w, transposed);
    if (!bias || !weight) return {};
    const DType x_type = value(x->q).type.dtype;
    const DType wanted = depth(x_type) > 0 ? x_type : flipped(x_type);
    if (depth(wanted) == 0 || (!conv && weight->bytes.shape()[0] % depth(wanted) != 0)) return {};
    return replace(n, TW_TRY(as_type(*x, wanted)), *w, *weight, *bias, conv);
  }

  /// The bias as real numbers (none: empty); nothing if it is unknown or of another form.
  std::optional<std::vector<double>> bias_of(ValueId id, int64_t filters) {
    if (id < 0) return std::vector<double>{};
    const Array* array = known(id);
    double scale = 1;
    std::vector<double> scales;
    if (array == nullptr) {
      const int p = static_cast<size_t>(id) < producer_.size() ? producer_[id] : -1;
      if (p < 0 || !is(graph().nodes[static_cast<size_t>(p)], "DequantizeLinear"))
        return std::nullopt;
      const Node& from = graph().nodes[static_cast<size_t>(p)];
      const Array* number = known(input(from, 1));
      const Array* zero = known(input(from, 2));
      array = known(from.inputs[0]);
      if (array == nullptr || number == nullptr) return std::nullopt;
      for (int64_t i = 0; zero != nullptr && i < zero->size(); ++i)
        if (zero->get_int(i) != 0) return std::nullopt;
      scales = number->to_doubles();
      scale = scales.empty() ? 1 : scales[0];
    }
    // One number may have no axes.
    if (array->size() != filters || (filters != 1 && array->shape().back() != filters))
      return std::nullopt;
    std::vector<double> out = array->to_doubles();
    for (size_t i = 0; i < out.size(); ++i)
      out[i] *= scales.size() == out.size() ? scales[i] : scale;
    return out;
  }

  /// Signed weights around zero, [k, n] for products; nothing if their zero point lies elsewhere.
  std::optional<Array> signed_weight(const Quantised& w, bool transposed) {
    const int64_t centre = known(w.q)->dtype() == DType::U8 ? 128 : 0;
    if (w.zero != centre) return std::nullopt;
    return less(*known(w.q), centre, DType::I8, transposed);
  }

  static Array less(const Array& from, int64_t zero, DType dtype, bool transposed) {
    const Shape& s = from.shape();
    Array out(dtype, transposed ? Shape{s[1], s[0]} : s);
    for (int64_t i = 0; i < from.size(); ++i)
      out.set_int(transposed ? i % s[1] * s[0] + i / s[1] : i, from.get_int(i) - zero);
    return out;
  }

  struct Weights {
    Array bytes;
    int64_t zero = 0;
  };
  /// The weights of an integer product: signed and around zero, unless zero points go apart later.
  std::optional<Weights> weights_of(const Quantised& w, bool transposed) {
    const Array& from = *known(w.q);
    if (context_.zero_points_apart) return Weights{less(from, 0, from.dtype(), transposed), w.zero};
    auto around_zero = signed_weight(w, transposed);
    if (!around_zero) return std::nullopt;
    return Weights{*std::move(around_zero), 0};
  }

  /// The same numbers as bytes of the other signedness.
  Result<Quantised> as_type(const Quantised& x, DType wanted) {
    const DType from = value(x.q).type.dtype;
    if (from == wanted) return x;
    const int64_t shift = wanted == DType::U8 ? 128 : -128;
    ValueId& made = shifted_[x.q];
    if (made == 0) {
      const std::string base = value(x.q).name + "/Shift";
      tensor::Attrs wide, narrow;
      wide.values["to"] = int64_t{6};  // ONNX: INT32
      narrow.values["to"] = int64_t{wanted == DType::U8 ? 2 : 3};
      Array number(DType::I32, {1});
      number.set_int(0, shift);
      made = TW_TRY(append(base, "Cast", {x.q}, wide));
      made = TW_TRY(append(base, "Add", {made, constant("shift", std::move(number))}));
      made = TW_TRY(append(base, "Cast", {made}, narrow));
    }
    return Quantised{made, x.scales, x.zero + shift};
  }

  ValueId zero_point(const Node& old, DType dtype, int64_t number) {
    Array zero(dtype, {});
    zero.set_int(0, number);
    return constant(old.name + ".zero", std::move(zero));
  }

  Status replace(size_t n, const Quantised& x, const Quantised& w, const Weights& weights,
                 const std::vector<double>& bias, bool conv) {
    const Node old = graph().nodes[n];
    const Array& weight = weights.bytes;
    std::vector<ValueId> factors = {x.q, constant(old.name + ".weight", weight),
                                    zero_point(old, value(x.q).type.dtype, x.zero)};
    if (weights.zero != 0) factors.push_back(zero_point(old, weight.dtype(), weights.zero));
    const ValueId sum = TW_TRY(append(old.name + "/Integer", conv ? "ConvInteger" : "MatMulInteger",
                                      std::move(factors), conv ? old.attrs : tensor::Attrs{}));
    tensor::Attrs real;
    real.values["to"] = int64_t{1};  // ONNX: FLOAT
    ValueId made = TW_TRY(append(old.name + "/Real", "Cast", {sum}, real));
    const int64_t filters = weight.shape()[conv ? 0 : 1];
    const Shape along = conv ? Shape{1, filters, 1, 1} : Shape{filters};
    Array scale(DType::F32, along), offset(DType::F32, along);
    for (int64_t k = 0; k < filters; ++k) {
      const auto i = static_cast<size_t>(k);
      scale.set(k, x.scales[0] * w.scales[w.scales.size() == 1 ? 0 : i]);
      if (!bias.empty()) offset.set(k, bias[i]);
    }
    const ValueId scale_id = constant(old.name + ".scale", std::move(scale));
    ValueId offset_id = -1;
    made = TW_TRY(append(old.name + "/Scale", "Mul", {made, scale_id}));
    if (!bias.empty()) {
      offset_id = constant(old.name + ".offset", std::move(offset));
      made = TW_TRY(append(old.name + "/Bias", "Add", {made, offset_id}));
    }
    if (!forward(graph(), old.outputs[0], made)) return {};
    ++products_;
    tails_[made] = Tail{scale_id, offset_id};
    return {};
  }

  /// QuantizeLinear divides; the factor goes into those behind a sum if the way there is free, else
  /// into a product.
  Status multiply_instead(size_t n) {
    const Array* scale = known(input(graph().nodes[n], 1));
    if (scale == nullptr || scale->size() != 1 || scale->dtype() != DType::F32) return {};
    const double divisor = scale->get(0);
    if (!(divisor > 0)) return {};
    const std::vector<std::vector<int>> users = consumers(graph());
    const std::vector<int> made_by = producers(graph());
    const std::vector<bool> is_out = is_output(graph());
    const auto only_user = [&](ValueId id) {
      return users[static_cast<size_t>(id)].size() == 1 && !is_out[static_cast<size_t>(id)];
    };
    ValueId x = graph().nodes[n].inputs[0];
    while (only_user(x) && made_by[static_cast<size_t>(x)] >= 0 && !tails_.contains(x) &&
           is(graph().nodes[static_cast<size_t>(made_by[static_cast<size_t>(x)])], "Relu"))
      x = graph().nodes[static_cast<size_t>(made_by[static_cast<size_t>(x)])].inputs[0];
    // Where the zero point is the least value, saturation is a Relu.
    const Array* zero = known(input(graph().nodes[n], 2));
    const DType out = value(graph().nodes[n].outputs[0]).type.dtype;
    const double least = out == DType::I8 ? -128 : 0;
    if (zero != nullptr && zero->size() == 1 && is_byte(out) && zero->get(0) == least)
      graph().nodes[n].inputs[0] = x;
    const auto tail = tails_.find(x);
    if (divisor == 1) return {};
    if (tail != tails_.end() && only_user(x)) {
      for (const ValueId id : {tail->second.scale, tail->second.offset}) {
        if (id < 0) continue;
        Array& factors = *new_value(id).constant;
        for (int64_t i = 0; i < factors.size(); ++i) factors.set(i, factors.get(i) / divisor);
      }
    } else {
      const std::string base = graph().nodes[n].name + "/Scale";
      const ValueId factor =
          constant(base + ".factor", Array::of(DType::F32, std::vector<double>{1 / divisor}));
      graph().nodes[n].inputs[0] =
          TW_TRY(append(base, "Mul", {graph().nodes[n].inputs[0], factor}));
    }
    graph().nodes[n].inputs[1] = constant("one", Array::scalar(DType::F32, 1));
    return {};
  }

  const Graph& in_;
  PassContext& context_;
  std::vector<int> producer_;
  /// The factors and offsets behind a sum.
  struct Tail {
    ValueId scale = -1, offset = -1;
  };
  std::map<ValueId, Tail> tails_;
  std::map<ValueId, ValueId> shifted_;
  int products_ = 0;
};

}  // namespace

Result<Graph> integer_products(const Graph& graph, PassContext& context) {
  if (!context.dot_depth) return graph;
  return IntegerProducts(graph, context).run();
}

}  // namespace tilewright::graph
