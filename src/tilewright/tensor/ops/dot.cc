// Products for dot-product instructions (hw/cpu_intrinsics.h): weights are packed so that the
// elements of `depth` successive input channels lie side by side, outputs are sums in the
// accumulator's type. Channels that fill up the last block hold zeros in the weights.
#include <fmt/format.h>

#include "tilewright/base/integers.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

/// outer * size + inner as an index below `extent`, and whether it is one (empty: always).
struct Position {
  Expr index, valid;
};
Position position(const Expr& outer, int64_t size, const Expr& inner, int64_t reached,
                  int64_t extent) {
  Position p{affine(outer, size) + inner, {}};
  if (reached > extent) p.valid = p.index < extent;
  return p;
}

// --- Weights.

struct Packing {
  int64_t in = 1, out = 1, depth = 1;
};

Result<Packing> packing_of(const OpCall& call) {
  Packing p;
  p.in = TW_TRY(positive_attr(call, "block_in"));
  p.out = TW_TRY(positive_attr(call, "block_out"));
  p.depth = TW_TRY(positive_attr(call, "depth"));
  if (p.in % p.depth != 0)
    return invalid(call, fmt::format("block_in {} is no multiple of depth {}", p.in, p.depth));
  return p;
}

Inferred infer_pack_conv_dot(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  const Shape& w = call.inputs[0].shape;
  const Packing p = TW_TRY(packing_of(call));
  return std::vector<TensorType>{
      {call.inputs[0].dtype,
       {ceil_div(w[0], p.out), ceil_div(w[1], p.in), w[2], w[3], p.in / p.depth, p.out, p.depth}}};
}

Tensors define_pack_conv_dot(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_conv_dot(call))[0].shape;
  const Packing p = *packing_of(call);
  return {compute("pack_conv_dot", dims_of(shape, {"ko", "co", "r", "s", "ci", "ki", "q"}),
                  [&](const Indices& at) {
                    const Position k = position(at[0], p.out, at[5], shape[0] * p.out, w.dim(0));
                    const Expr inner = affine(at[4], p.depth) + at[6];
                    const Position c = position(at[1], p.in, inner, shape[1] * p.in, w.dim(1));
                    return guarded(both(k.valid, c.valid), w({k.index, c.index, at[2], at[3]}),
                                   const_of(w.dtype(), 0));
                  })};
}

Inferred infer_pack_gemm_dot(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 2));
  const Shape& w = call.inputs[0].shape;
  const bool transposed = call.attrs.get_int("transB", 0) != 0;
  const int64_t block = TW_TRY(positive_attr(call, "block"));
  const int64_t depth = TW_TRY(positive_attr(call, "depth"));
  const int64_t k = w[transposed ? 1 : 0], n = w[transposed ? 0 : 1];
  return std::vector<TensorType>{
      {call.inputs[0].dtype, {ceil_div(n, block), ceil_div(k, depth), block, depth}}};
}

Tensors define_pack_gemm_dot(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_gemm_dot(call))[0].shape;
  const bool transposed = call.attrs.get_int("transB", 0) != 0;
  return {compute("pack_gemm_dot", dims_of(shape, {"no", "k", "ni", "q"}), [&](const Indices& at) {
    const int64_t columns = w.dim(transposed ? 0 : 1), rows = w.dim(transposed ? 1 : 0);
    const Position n = position(at[0], shape[2], at[2], shape[0] * shape[2], columns);
    const Position k = position(at[1], shape[3], at[3], shape[1] * shape[3], rows);
    const Expr value = transposed ? w({n.index, k.index}) : w({k.index, n.index});
    return guarded(both(n.valid, k.valid), value, const_of(w.dtype(), 0));
  })};
}

/// Windows of one channel each, taps along the last axis in groups of `depth`.
Inferred infer_pack_depthwise_dot(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  const Shape& w = call.inputs[0].shape;
  const int64_t block = TW_TRY(positive_attr(call, "block"));
  const int64_t depth = TW_TRY(positive_attr(call, "depth"));
  if (w[1] != 1)
    return invalid(call, fmt::format("the weight {} is not depthwise", to_string(w)),
                   "its second extent must be 1");
  return std::vector<TensorType>{
      {call.inputs[0].dtype, {ceil_div(w[0], block), w[2], ceil_div(w[3], depth), block, depth}}};
}

Tensors define_pack_depthwise_dot(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_depthwise_dot(call))[0].shape;
  const auto axes = dims_of(shape, {"co", "r", "s", "ci", "q"});
  return {compute("pack_depthwise_dot", axes, [&](const Indices& at) {
    const Position c = position(at[0], shape[3], at[3], shape[0] * shape[3], w.dim(0));
    const Position s = position(at[2], shape[4], at[4], shape[2] * shape[4], w.dim(3));
    return guarded(both(c.valid, s.valid), w({c.index, int_imm(0), at[1], s.index}),
                   const_of(w.dtype(), 0));
  })};
}

// --- Products.

/// Sums are i32 of bytes and f32 of bf16; nothing else has instructions.
Status check_dot_operands(const OpCall& call) {
  for (size_t i = 0; i < 2; ++i) {
    const DType dtype = call.inputs[i].dtype;
    if (dtype != DType::I8 && dtype != DType::U8 && dtype != DType::BF16)
      return invalid(call, fmt::format("input {} is {}", i, name(dtype)),
                     "i8, u8 and bf16 have dot products");
    if (is_float(dtype) != is_float(call.inputs[0].dtype))
      return invalid(call, "one operand is bf16, the other is not");
  }
  return {};
}

DType sum_type(DType dtype) { return is_float(dtype) ? DType::F32 : DType::I32; }

/// What the operator gives: the sums, or for bf16 the sums rounded.
DType result_type(DType dtype) { return is_float(dtype) ? dtype : DType::I32; }

Result<Window> conv_dot_window(const OpCall& call) {
  TW_TRY_STATUS(check_dot_operands(call));
  TW_TRY_STATUS(require_rank(call, 0, 5));
  TW_TRY_STATUS(require_rank(call, 1, 7));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const int64_t groups = call.attrs.get_int("group", 1);
  if (groups < 1 || x[1] != w[1] * groups || x[4] != w[4] * w[6] || w[0] % groups != 0)
    return invalid(call, fmt::format("input {}, packed weight {} and group {} do not fit together",
                                     to_string(x), to_string(w), groups));
  TW_TRY_STATUS(require_shape(call, 2, {w[0] * w[5]}));
  return window_of(call, {x[2], x[3]}, {w[2], w[3]});
}

Inferred infer_conv_dot(const OpCall& call) {
  const Window window = TW_TRY(conv_dot_window(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  return std::vector<TensorType>{
      {result_type(call.inputs[0].dtype), {x[0], w[0], window.output[0], window.output[1], w[5]}}};
}

/// Sums start from the offset of their channel, if there is one.
std::function<Expr(const Indices&)> start_of(const OpCall& call, const Tensors& in, DType acc,
                                             const std::function<Expr(const Indices&)>& channel) {
  if (!call.input(2)) return {};
  const Tensor offset = in[2];
  return [offset, acc, channel](const Indices& at) { return cast(acc, offset({channel(at)})); };
}

/// The sum in the operator's type.
Tensor finish(const Tensor& sum, DType dtype, const std::vector<Dim>& axes) {
  if (sum.dtype() == dtype) return sum;
  return compute("sum_rounded", axes, [&](const Indices& at) { return cast(dtype, sum(at)); });
}

Tensors define_conv_dot(const OpCall& call, const Tensors& in) {
  const Window window = *conv_dot_window(call);
  const TensorType type = (*infer_conv_dot(call))[0];
  const DType acc = sum_type(in[0].dtype());
  const Expr fill = const_of(in[0].dtype(), static_cast<double>(call.attrs.get_int("zero", 0)));
  const Tensor x = pad_for(window, in[0], "conv_pad", fill);
  const Tensor& w = in[1];
  const int64_t groups = call.attrs.get_int("group", 1), per_group = w.dim(0) / groups;
  const std::vector<Dim> axes = dims_of(type.shape, {"n", "ko", "h", "w", "ki"});
  const Tensor sum = reduce(
      "conv", axes,
      {{"co", w.dim(1)}, {"r", w.dim(2)}, {"s", w.dim(3)}, {"ci", w.dim(4)}, {"q", w.dim(6)}},
      Combine::Add,
      [&](const Indices& at, const Indices& r) {
        const Expr co = groups == 1 ? r[0] : affine(at[1] / per_group, w.dim(1)) + r[0];
        const Expr value = x({at[0], co, window.position(0, at[2], r[1]),
                              window.position(1, at[3], r[2]), affine(r[3], w.dim(6)) + r[4]});
        return cast(acc, value) * cast(acc, w({at[1], r[0], r[1], r[2], r[3], at[4], r[4]}));
      },
      start_of(call, in, acc,
               [block = w.dim(5)](const Indices& at) { return affine(at[1], block) + at[4]; }));
  return {finish(sum, type.dtype, axes)};
}

/// `width` taps of each row of a window; the packed weight has more, of zero.
Result<Window> depthwise_dot_window(const OpCall& call) {
  TW_TRY_STATUS(check_dot_operands(call));
  TW_TRY_STATUS(require_rank(call, 0, 5));
  TW_TRY_STATUS(require_rank(call, 1, 5));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const int64_t width = TW_TRY(positive_attr(call, "width"));
  if (x[1] != w[0] || x[4] != w[3] || ceil_div(width, w[4]) != w[2])
    return invalid(call, fmt::format("input {}, packed weight {} and width {} do not fit together",
                                     to_string(x), to_string(w), width));
  TW_TRY_STATUS(require_shape(call, 2, {w[0] * w[3]}));
  return window_of(call, {x[2], x[3]}, {w[1], width});
}

Inferred infer_depthwise_dot(const OpCall& call) {
  const Window window = TW_TRY(depthwise_dot_window(call));
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{
      {result_type(call.inputs[0].dtype), {x[0], x[1], window.output[0], window.output[1], x[4]}}};
}

Tensors define_depthwise_dot(const OpCall& call, const Tensors& in) {
  Window window = *depthwise_dot_window(call);
  const TensorType type = (*infer_depthwise_dot(call))[0];
  const DType acc = sum_type(in[0].dtype());
  const Tensor& w = in[1];
  window.kernel[1] = w.dim(2) * w.dim(4);  // the pixels under taps of zero are read as well
  const Expr fill = const_of(in[0].dtype(), static_cast<double>(call.attrs.get_int("zero", 0)));
  const Tensor x = pad_for(window, in[0], "conv_pad", fill);
  const std::vector<Dim> axes = dims_of(type.shape, {"n", "co", "h", "w", "ci"});
  const Tensor sum = reduce(
      "conv", axes, {{"r", w.dim(1)}, {"s", w.dim(2)}, {"q", w.dim(4)}}, Combine::Add,
      [&](const Indices& at, const Indices& r) {
        const Expr tap = affine(r[1], w.dim(4)) + r[2];
        const Expr value = x(
            {at[0], at[1], window.position(0, at[2], r[0]), window.position(1, at[3], tap), at[4]});
        return cast(acc, value) * cast(acc, w({at[1], r[0], r[1], at[4], r[2]}));
      },
      start_of(call, in, acc,
               [block = w.dim(3)](const Indices& at) { return affine(at[1], block) + at[4]; }));
  return {finish(sum, type.dtype, axes)};
}

Inferred infer_gemm_dot(const OpCall& call) {
  TW_TRY_STATUS(check_dot_operands(call));
  TW_TRY_STATUS(require_rank(call, 1, 4));
  Shape a = call.inputs[0].shape;
  const Shape& w = call.inputs[1].shape;
  const int64_t n = TW_TRY(positive_attr(call, "n"));
  if (a.empty() || a.back() != w[1] * w[3] || ceil_div(n, w[2]) != w[0])
    return invalid(call, fmt::format("A {} and packed weight {} do not fit n = {}", to_string(a),
                                     to_string(w), n));
  TW_TRY_STATUS(require_shape(call, 2, {n}));
  a.back() = n;
  return std::vector<TensorType>{{result_type(call.inputs[0].dtype), a}};
}

Tensors define_gemm_dot(const OpCall& call, const Tensors& in) {
  const Tensor &a = in[0], &w = in[1];
  const TensorType type = (*infer_gemm_dot(call))[0];
  const DType acc = sum_type(a.dtype());
  std::vector<std::string> names;
  for (size_t i = 0; i + 2 < type.shape.size(); ++i) names.push_back("b" + std::to_string(i));
  if (type.shape.size() > 1) names.emplace_back("m");
  names.emplace_back("n");
  const std::vector<Dim> axes = dims_of(type.shape, names);
  const int64_t block = w.dim(2), depth = w.dim(3);
  const Tensor sum = reduce(
      "gemm", axes, {{"k", w.dim(1)}, {"q", depth}}, Combine::Add,
      [&](const Indices& at, const Indices& r) {
        Indices row = at;
        row.back() = affine(r[0], depth) + r[1];
        return cast(acc, a(row)) * cast(acc, w({at.back() / block, r[0], at.back() % block, r[1]}));
      },
      start_of(call, in, acc, [](const Indices& at) { return at.back(); }));
  return {finish(sum, type.dtype, axes)};
}

}  // namespace

void add_dot_ops(std::vector<OpDef>& table) {
  auto add = [&](const char* name, int most, Fusion fusion, auto infer_rule, auto define) {
    table.push_back(
        {"tilewright", name, most - (most > 1), most, fusion, {}, infer_rule, define, ""});
  };
  add("PackConvDotWeight", 1, Fusion::Injective, infer_pack_conv_dot, define_pack_conv_dot);
  add("PackGemmDotWeight", 1, Fusion::Injective, infer_pack_gemm_dot, define_pack_gemm_dot);
  add("PackDepthwiseDotWeight", 1, Fusion::Injective, infer_pack_depthwise_dot,
      define_pack_depthwise_dot);
  add("ConvDotBlocked", 3, Fusion::Complex, infer_conv_dot, define_conv_dot);
  add("DepthwiseDotBlocked", 3, Fusion::Complex, infer_depthwise_dot, define_depthwise_dot);
  add("GemmDotPacked", 3, Fusion::Complex, infer_gemm_dot, define_gemm_dot);
}

}  // namespace tilewright::tensor
