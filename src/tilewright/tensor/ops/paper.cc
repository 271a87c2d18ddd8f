// Operators of FlexTensor's table 1 and of HASCO's workloads that ONNX does not have.
#include "tilewright/base/check.h"
#include "tilewright/tensor/op.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

/// Products of small integers are summed, and returned, in i32; floats keep their type.
DType sum_result_type(DType dtype) { return is_float(dtype) ? dtype : accumulator(dtype); }

Status check_numbers(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  return require_same_dtypes(call);
}

Inferred one(const OpCall& call, Shape shape) {
  return std::vector<TensorType>{{sum_result_type(call.inputs[0].dtype), std::move(shape)}};
}

/// A sum of products in the accumulator type, rounded at the end where the result is narrower.
Tensors sum_products(const std::string& name, const std::vector<Dim>& space,
                     const std::vector<Dim>& over, DType dtype,
                     const std::function<std::vector<Expr>(const Indices&, const Indices&)>& f) {
  const DType acc = accumulator(dtype), out = sum_result_type(dtype);
  const Tensor sum =
      reduce(name, space, over, Combine::Add, [&](const Indices& at, const Indices& r) {
        Expr product;
        for (const Expr& factor : f(at, r)) {
          const Expr wide = cast(acc, factor);
          product = product ? product * wide : wide;
        }
        return product;
      });
  if (acc == out) return {sum};
  return {compute(name + "_out", space, [&](const Indices& at) { return cast(out, sum(at)); })};
}

// --- Gemv: A [.., m, k], x [.., k] -> [.., m].

Inferred infer_gemv(const OpCall& call) {
  TW_TRY_STATUS(check_numbers(call));
  const Shape &a = call.inputs[0].shape, &x = call.inputs[1].shape;
  bool fits = a.size() >= 2 && x.size() + 1 == a.size() && x.back() == a.back();
  for (size_t i = 0; fits && i + 2 < a.size(); ++i) fits = a[i] == x[i];
  if (!fits)
    return invalid(call, fmt::format("matrix {} and vector {} do not fit together", to_string(a),
                                     to_string(x)));
  return one(call, {a.begin(), a.end() - 1});
}

Tensors define_gemv(const OpCall&, const Tensors& in) {
  const Tensor &a = in[0], &x = in[1];
  std::vector<std::string> names;
  for (size_t i = 0; i + 2 < a.rank(); ++i) names.push_back("b" + std::to_string(i));
  names.emplace_back("m");
  const Shape shape(a.shape().begin(), a.shape().end() - 1);
  return sum_products("gemv", dims_of(shape, names), {{"k", a.shape().back()}}, a.dtype(),
                      [&](const Indices& at, const Indices& r) {
                        Indices row = at, element(at.begin(), at.end() - 1);
                        row.push_back(r[0]);
                        element.push_back(r[0]);
                        return std::vector<Expr>{a(row), x(element)};
                      });
}

// --- Bilinear: y[b, o] = sum_ij x1[b, i] w[o, i, j] x2[b, j].

Inferred infer_bilinear(const OpCall& call) {
  TW_TRY_STATUS(check_numbers(call));
  TW_TRY_STATUS(require_rank(call, 0, 2));
  TW_TRY_STATUS(require_rank(call, 1, 3));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  TW_TRY_STATUS(require_shape(call, 1, {w[0], x[1], w[2]}));
  TW_TRY_STATUS(require_shape(call, 2, {x[0], w[2]}));
  return one(call, {x[0], w[0]});
}

/// In two steps, x1 first: half of the multiplications, and a matrix product.
Tensors define_bilinear(const OpCall&, const Tensors& in) {
  const Tensor& w = in[1];
  const DType acc = accumulator(w.dtype());
  const Tensor half =
      reduce("bilinear_half", {{"b", in[0].dim(0)}, {"o", w.dim(0)}, {"j", w.dim(2)}},
             {{"i", w.dim(1)}}, Combine::Add, [&](const Indices& at, const Indices& r) {
               return cast(acc, in[0]({at[0], r[0]})) * cast(acc, w({at[1], r[0], at[2]}));
             });
  return sum_products("bilinear", {{"b", in[0].dim(0)}, {"o", w.dim(0)}}, {{"j", w.dim(2)}},
                      w.dtype(), [&](const Indices& at, const Indices& r) {
                        return std::vector<Expr>{half({at[0], at[1], r[0]}), in[2]({at[0], r[0]})};
                      });
}

// --- BlockCirculant: each full tile becomes the circulant matrix nearest to it.

Inferred infer_circulant(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(require_rank(call, 0, 2));
  const int64_t block = call.attrs.get_int("block", 0);
  if (block < 1) return invalid(call, fmt::format("the attribute block is {}", block));
  return one(call, call.inputs[0].shape);
}

Tensors define_circulant(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const int64_t b = call.attrs.get_int("block", 1);
  const int64_t rows = x.dim(0) / b, cols = x.dim(1) / b;
  const DType acc = accumulator(x.dtype());
  const Tensor sum = reduce(
      "circulant_sum", {{"ti", rows}, {"tj", cols}, {"d", b}}, {{"a", b}}, Combine::Add,
      [&](const Indices& at, const Indices& r) {
        return cast(acc, x({affine(at[0], b) + r[0], affine(at[1], b) + (r[0] + at[2]) % b}));
      });
  return {compute("circulant", dims_of(x.shape(), {"i", "j"}), [&](const Indices& at) {
    const Expr &i = at[0], &j = at[1];
    Expr full;
    if (x.dim(0) % b != 0) full = i < rows * b;
    if (x.dim(1) % b != 0) full = both(std::move(full), j < cols * b);
    const Expr mean = sum({i / b, j / b, (j - i) % b}) / const_of(acc, static_cast<double>(b));
    return guarded(std::move(full), cast(x.dtype(), mean), const_of(x.dtype(), 0));
  })};
}

// --- ShiftConv2D: channel c is read at the kernel position index[c].

Result<Window> shift_window(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  const Shape& x = call.inputs[0].shape;
  TW_TRY_STATUS(require_types(call, 1, Types::Int));
  TW_TRY_STATUS(require_shape(call, 1, {x[3]}));
  return window_of(call, {x[1], x[2]}, call.attrs.get_ints("kernel_shape"));
}

Inferred infer_shift(const OpCall& call) {
  const Window window = TW_TRY(shift_window(call));
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{
      {call.inputs[0].dtype, {x[0], window.output[0], window.output[1], x[3]}}};
}

Tensors define_shift(const OpCall& call, const Tensors& in) {
  const Window window = *shift_window(call);
  const Tensor& index = in[1];
  const Tensor x = pad_for(window, in[0], "shift_pad", const_of(in[0].dtype(), 0), 1);
  const int64_t taps = window.kernel[0] * window.kernel[1];
  const Shape shape = {x.dim(0), window.output[0], window.output[1], x.dim(3)};
  return {compute("shift", dims_of(shape, {"n", "h", "w", "c"}), [&](const Indices& at) {
    // An index outside the kernel must not read outside the input.
    const Expr tap = max(int_imm(0), min(int_imm(taps - 1), cast(DType::I64, index({at[3]}))));
    return x({at[0], window.position(0, at[1], tap / window.kernel[1]),
              window.position(1, at[2], tap % window.kernel[1]), at[3]});
  })};
}

// --- MTTKRP: d[i, j] = sum_kl a[i, k, l] b[l, j] c[k, j]. TTM: c[i, j, k] = sum_l a[i, j, l] b[l,
// k].

Inferred infer_mttkrp(const OpCall& call) {
  TW_TRY_STATUS(check_numbers(call));
  TW_TRY_STATUS(require_rank(call, 0, 3));
  TW_TRY_STATUS(require_rank(call, 1, 2));
  const Shape &a = call.inputs[0].shape, &b = call.inputs[1].shape;
  TW_TRY_STATUS(require_shape(call, 1, {a[2], b[1]}));
  TW_TRY_STATUS(require_shape(call, 2, {a[1], b[1]}));
  return one(call, {a[0], b[1]});
}

/// In two steps, b first: half of the multiplications, and a matrix product.
Tensors define_mttkrp(const OpCall&, const Tensors& in) {
  const Tensor &a = in[0], &b = in[1], &c = in[2];
  const DType acc = accumulator(a.dtype());
  const Tensor half =
      reduce("mttkrp_half", {{"i", a.dim(0)}, {"k", a.dim(1)}, {"j", b.dim(1)}}, {{"l", a.dim(2)}},
             Combine::Add, [&](const Indices& at, const Indices& r) {
               return cast(acc, a({at[0], at[1], r[0]})) * cast(acc, b({r[0], at[2]}));
             });
  return sum_products("mttkrp", {{"i", a.dim(0)}, {"j", b.dim(1)}}, {{"k", a.dim(1)}}, a.dtype(),
                      [&](const Indices& at, const Indices& r) {
                        return std::vector<Expr>{half({at[0], r[0], at[1]}), c({r[0], at[1]})};
                      });
}

Inferred infer_ttm(const OpCall& call) {
  TW_TRY_STATUS(check_numbers(call));
  TW_TRY_STATUS(require_rank(call, 0, 3));
  TW_TRY_STATUS(require_rank(call, 1, 2));
  const Shape &a = call.inputs[0].shape, &b = call.inputs[1].shape;
  TW_TRY_STATUS(require_shape(call, 1, {a[2], b[1]}));
  return one(call, {a[0], a[1], b[1]});
}

Tensors define_ttm(const OpCall&, const Tensors& in) {
  const Tensor &a = in[0], &b = in[1];
  return sum_products("ttm", {{"i", a.dim(0)}, {"j", a.dim(1)}, {"k", b.dim(1)}}, {{"l", a.dim(2)}},
                      a.dtype(), [&](const Indices& at, const Indices& r) {
                        return std::vector<Expr>{a({at[0], at[1], r[0]}), b({r[0], at[2]})};
                      });
}

}  // namespace

void add_paper_ops(std::vector<OpDef>& table) {
  auto add = [&](const char* name, int inputs, Fusion fusion, auto infer_rule, auto define) {
    table.push_back({"tilewright", name, inputs, inputs, fusion, {}, infer_rule, define, ""});
  };
  add("Gemv", 2, Fusion::Complex, infer_gemv, define_gemv);
  add("Bilinear", 3, Fusion::Complex, infer_bilinear, define_bilinear);
  add("BlockCirculant", 1, Fusion::Complex, infer_circulant, define_circulant);
  add("ShiftConv2D", 2, Fusion::Injective, infer_shift, define_shift);
  add("MTTKRP", 3, Fusion::Complex, infer_mttkrp, define_mttkrp);
  add("TTM", 2, Fusion::Complex, infer_ttm, define_ttm);
}

}  // namespace tilewright::tensor
