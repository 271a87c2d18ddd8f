// Matrix products.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

// --- Gemm: alpha * A' * B' + beta * C.

struct GemmSizes {
  int64_t m, n, k;
  bool trans_a, trans_b;
};

Result<GemmSizes> gemm_sizes(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 2));
  TW_TRY_STATUS(require_rank(call, 1, 2));
  const Shape &a = call.inputs[0].shape, &b = call.inputs[1].shape;
  GemmSizes s{};
  s.trans_a = call.attrs.get_int("transA", 0) != 0;
  s.trans_b = call.attrs.get_int("transB", 0) != 0;
  s.m = a[s.trans_a ? 1 : 0];
  s.k = a[s.trans_a ? 0 : 1];
  s.n = b[s.trans_b ? 0 : 1];
  const int64_t other = b[s.trans_b ? 1 : 0];
  if (s.k != other)
    return invalid(call, fmt::format("inner sizes {} and {} differ", s.k, other),
                   fmt::format("A is {}{}, B is {}{}", to_string(a), s.trans_a ? " transposed" : "",
                               to_string(b), s.trans_b ? " transposed" : ""));
  return s;
}

Inferred infer_gemm(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  TW_TRY_STATUS(require_same_dtypes(call));
  const GemmSizes s = TW_TRY(gemm_sizes(call));
  const Shape out = {s.m, s.n};
  if (const InputInfo* c = call.input(2))
    if (TW_TRY(broadcast(c->shape, out)) != out)
      return invalid(call, fmt::format("C of shape {} does not broadcast to {}",
                                       to_string(c->shape), to_string(out)));
  return std::vector<TensorType>{{call.inputs[0].dtype, out}};
}

/// factor * value; integers are scaled in f64.
Expr scaled(double factor, const Expr& value) {
  if (factor == 1) return value;
  const DType dtype = value.dtype();
  if (is_float(dtype)) return const_of(dtype, factor) * value;
  return cast(dtype, const_of(DType::F64, factor) * cast(DType::F64, value));
}

Tensors define_gemm(const OpCall& call, const Tensors& in) {
  const GemmSizes s = *gemm_sizes(call);
  const DType dtype = in[0].dtype(), acc = accumulator(dtype);
  const Tensor &a = in[0], &b = in[1];
  const std::vector<Dim> axes = {{"m", s.m}, {"n", s.n}};
  const Tensor product =
      reduce("gemm", axes, {{"k", s.k}}, Combine::Add, [&](const Indices& at, const Indices& r) {
        const Expr x = s.trans_a ? a({r[0], at[0]}) : a({at[0], r[0]});
        const Expr y = s.trans_b ? b({at[1], r[0]}) : b({r[0], at[1]});
        return cast(acc, x) * cast(acc, y);
      });
  const double alpha = call.attrs.get_float("alpha", 1), beta = call.attrs.get_float("beta", 1);
  const bool add = call.input(2) && beta != 0;
  if (alpha == 1 && !add && acc == dtype) return {product};
  return {compute("gemm_out", axes, [&](const Indices& at) {
    Expr value = scaled(alpha, product(at));
    if (add) value = value + scaled(beta, cast(acc, element(call, in, 2, at)));
    return cast(dtype, value);
  })};
}

// --- MatMul: NumPy's product of stacks of matrices.

struct MatMulSizes {
  Shape batch, a, b;  ///< a, b: with the axis that a vector lacks
  bool row_vector = false, column_vector = false;
  Shape output() const {
    Shape out = batch;
    if (!row_vector) out.push_back(a[a.size() - 2]);
    if (!column_vector) out.push_back(b.back());
    return out;
  }
};

Result<MatMulSizes> matmul_sizes(const OpCall& call) {
  MatMulSizes s;
  s.a = call.inputs[0].shape;
  s.b = call.inputs[1].shape;
  if (s.a.empty() || s.b.empty()) return invalid(call, "inputs must not be scalars");
  s.row_vector = s.a.size() == 1;
  s.column_vector = s.b.size() == 1;
  if (s.row_vector) s.a.insert(s.a.begin(), 1);
  if (s.column_vector) s.b.push_back(1);
  if (s.a.back() != s.b[s.b.size() - 2])
    return invalid(call,
                   fmt::format("inner sizes {} and {} differ", s.a.back(), s.b[s.b.size() - 2]),
                   fmt::format("the inputs are {} and {}", to_string(call.inputs[0].shape),
                               to_string(call.inputs[1].shape)));
  s.batch = TW_TRY(broadcast({s.a.begin(), s.a.end() - 2}, {s.b.begin(), s.b.end() - 2}));
  return s;
}

Inferred infer_matmul(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  TW_TRY_STATUS(require_same_dtypes(call));
  return std::vector<TensorType>{{call.inputs[0].dtype, TW_TRY(matmul_sizes(call)).output()}};
}

Tensors define_matmul(const OpCall&, const Tensors& in) {
  const DType dtype = in[0].dtype();
  // Small integer types keep their own arithmetic here: the result wraps in the input's type.
  const DType acc = is_float(dtype) ? accumulator(dtype) : dtype;
  const Tensor product = matmul_sum("matmul", in[0], in[1], acc);
  if (acc == dtype) return {product};
  return {compute("matmul_out", dims_of(product.shape()),
                  [&](const Indices& at) { return cast(dtype, product(at)); })};
}

}  // namespace

Result<Shape> matmul_shape(const OpCall& call) { return TW_TRY(matmul_sizes(call)).output(); }

Tensor matmul_sum(const std::string& name, const Tensor& a, const Tensor& b, DType acc) {
  OpCall call;
  call.op = name;
  call.inputs = {{true, a.dtype(), a.shape(), {}}, {true, b.dtype(), b.shape(), {}}};
  const auto sizes = matmul_sizes(call);
  TW_CHECK(sizes, "{}: {}", name, sizes.error().what);
  const MatMulSizes& s = *sizes;
  std::vector<std::string> names;
  for (size_t i = 0; i < s.batch.size(); ++i) names.push_back("b" + std::to_string(i));
  if (!s.row_vector) names.emplace_back("m");
  if (!s.column_vector) names.emplace_back("n");
  return reduce(name, dims_of(s.output(), names), {{"k", s.a.back()}}, Combine::Add,
                [&](const Indices& at, const Indices& r) {
                  const auto matrices = static_cast<std::ptrdiff_t>(s.batch.size());
                  const Indices stack(at.begin(), at.begin() + matrices);
                  Indices x = broadcast_at({s.a.begin(), s.a.end() - 2}, stack);
                  Indices y = broadcast_at({s.b.begin(), s.b.end() - 2}, stack);
                  if (!s.row_vector) x.push_back(at[s.batch.size()]);
                  x.push_back(r[0]);
                  y.push_back(r[0]);
                  if (!s.column_vector) y.push_back(at.back());
                  return cast(acc, a(x)) * cast(acc, b(y));
                });
}

void add_matmul_ops(std::vector<OpDef>& table) {
  table.push_back({"", "Gemm", 2, 3, Fusion::Complex, {}, infer_gemm, define_gemm, ""});
  table.push_back({"", "MatMul", 2, 2, Fusion::Complex, {}, infer_matmul, define_matmul, ""});
}

}  // namespace tilewright::tensor
