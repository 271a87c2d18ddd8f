// Operators on blocked layouts ([n, channel block, h, w, channel in block]), the forms the layout
// pass uses. Channels that fill up the last block hold zeros.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/tensor/pool.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

Result<int64_t> block_attr(const OpCall& call, const char* key) {
  const int64_t block = call.attrs.get_int(key, 0);
  if (block < 1) return invalid(call, fmt::format("the attribute {} is {}", key, block));
  return block;
}

DType sum_type(DType dtype) { return is_float(dtype) ? dtype : accumulator(dtype); }

/// index = outer * block + inner, and whether it is one of `extent` (empty if always).
struct Split {
  Expr index, valid;
};
Split join(const Expr& outer, const Expr& inner, int64_t block, int64_t extent) {
  Split s;
  s.index = extent <= block ? inner : affine(outer, block) + inner;
  if (extent % block != 0) s.valid = s.index < extent;
  return s;
}

// --- Conversions.

Inferred infer_to_blocked(const OpCall& call) {
  Shape shape = call.inputs[0].shape;
  if (shape.size() < 2)
    return invalid(call, fmt::format("an input of shape {} has no channels", to_string(shape)));
  const int64_t block = TW_TRY(block_attr(call, "block"));
  shape[1] = ceil_div(shape[1], block);
  shape.push_back(block);
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

std::vector<Dim> blocked_axes(const Shape& shape, const std::string& outer,
                              const std::string& inner) {
  std::vector<std::string> names = {"n", outer};
  for (const std::string& axis : spatial_names(shape.size() - 3)) names.push_back(axis);
  names.resize(shape.size() - 1, "x");
  names.push_back(inner);
  return dims_of(shape, names);
}

Tensors define_to_blocked(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const Shape shape = (*infer_to_blocked(call))[0].shape;
  return {compute("to_blocked", blocked_axes(shape, "co", "ci"), [&](const Indices& at) {
    Split c = join(at[1], at.back(), shape.back(), x.dim(1));
    Indices source(at.begin(), at.end() - 1);
    source[1] = c.index;
    return guarded(c.valid, x(source), const_of(x.dtype(), 0));
  })};
}

Inferred infer_from_blocked(const OpCall& call) {
  Shape shape = call.inputs[0].shape;
  const int64_t channels = TW_TRY(block_attr(call, "channels"));
  if (shape.size() < 3)
    return invalid(call, fmt::format("the input {} is not blocked", to_string(shape)));
  if (ceil_div(channels, shape.back()) != shape[1])
    return invalid(call, fmt::format("{} channels do not make {} blocks of {}", channels, shape[1],
                                     shape.back()));
  shape[1] = channels;
  shape.pop_back();
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

Tensors define_from_blocked(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const Shape shape = (*infer_from_blocked(call))[0].shape;
  const int64_t block = x.shape().back();
  std::vector<std::string> names = {"n", "c"};
  for (const std::string& axis : spatial_names(shape.size() - 2)) names.push_back(axis);
  return {compute("from_blocked", dims_of(shape, names), [&](const Indices& at) {
    Indices source = at;
    source[1] = at[1] / block;
    source.push_back(at[1] % block);
    return x(source);
  })};
}

// --- Weight packing.

Inferred infer_pack_conv(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  const Shape& w = call.inputs[0].shape;
  const int64_t in = TW_TRY(block_attr(call, "block_in"));
  const int64_t out = TW_TRY(block_attr(call, "block_out"));
  return std::vector<TensorType>{
      {call.inputs[0].dtype, {ceil_div(w[0], out), ceil_div(w[1], in), w[2], w[3], in, out}}};
}

Tensors define_pack_conv(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_conv(call))[0].shape;
  return {compute("pack_conv", dims_of(shape, {"ko", "co", "r", "s", "ci", "ki"}),
                  [&](const Indices& at) {
                    const Split k = join(at[0], at[5], shape[5], w.dim(0));
                    const Split c = join(at[1], at[4], shape[4], w.dim(1));
                    return guarded(both(k.valid, c.valid), w({k.index, c.index, at[2], at[3]}),
                                   const_of(w.dtype(), 0));
                  })};
}

Inferred infer_pack_depthwise(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  const Shape& w = call.inputs[0].shape;
  if (w[1] != 1)
    return invalid(call, fmt::format("the weight {} is not depthwise", to_string(w)),
                   "its second extent must be 1");
  const int64_t block = TW_TRY(block_attr(call, "block"));
  return std::vector<TensorType>{
      {call.inputs[0].dtype, {ceil_div(w[0], block), w[2], w[3], block}}};
}

Tensors define_pack_depthwise(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_depthwise(call))[0].shape;
  return {compute("pack_depthwise", dims_of(shape, {"co", "r", "s", "ci"}), [&](const Indices& at) {
    const Split k = join(at[0], at[3], shape[3], w.dim(0));
    return guarded(k.valid, w({k.index, int_imm(0), at[1], at[2]}), const_of(w.dtype(), 0));
  })};
}

Inferred infer_pack_gemm(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 2));
  const Shape& w = call.inputs[0].shape;
  const bool transposed = call.attrs.get_int("transB", 0) != 0;
  const int64_t block = TW_TRY(block_attr(call, "block"));
  const int64_t k = w[transposed ? 1 : 0], n = w[transposed ? 0 : 1];
  return std::vector<TensorType>{{call.inputs[0].dtype, {ceil_div(n, block), k, block}}};
}

Tensors define_pack_gemm(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_gemm(call))[0].shape;
  const bool transposed = call.attrs.get_int("transB", 0) != 0;
  return {compute("pack_gemm", dims_of(shape, {"no", "k", "ni"}), [&](const Indices& at) {
    const Split n = join(at[0], at[2], shape[2], w.dim(transposed ? 0 : 1));
    const Expr value = transposed ? w({n.index, at[1]}) : w({at[1], n.index});
    return guarded(n.valid, value, const_of(w.dtype(), 0));
  })};
}

// --- GemmPacked: A [.., k] * packed weight, bias [n].

Inferred infer_gemm_packed(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  TW_TRY_STATUS(require_rank(call, 1, 3));
  Shape a = call.inputs[0].shape;
  const Shape& w = call.inputs[1].shape;
  const int64_t n = TW_TRY(block_attr(call, "n"));
  if (a.empty() || a.back() != w[1] || ceil_div(n, w[2]) != w[0])
    return invalid(call, fmt::format("A {} and packed weight {} do not fit n = {}", to_string(a),
                                     to_string(w), n));
  TW_TRY_STATUS(require_shape(call, 2, {n}));
  a.back() = n;
  return std::vector<TensorType>{{sum_type(call.inputs[0].dtype), a}};
}

Tensors define_gemm_packed(const OpCall& call, const Tensors& in) {
  const Tensor &a = in[0], &w = in[1];
  const Shape shape = (*infer_gemm_packed(call))[0].shape;
  const DType dtype = sum_type(a.dtype()), acc = accumulator(a.dtype());
  std::vector<std::string> names;
  for (size_t i = 0; i + 2 < shape.size(); ++i) names.push_back("b" + std::to_string(i));
  if (shape.size() > 1) names.emplace_back("m");
  names.emplace_back("n");
  const std::vector<Dim> axes = dims_of(shape, names);
  const int64_t block = w.dim(2);
  const Tensor sum = reduce("gemm", axes, {{"k", w.dim(1)}}, Combine::Add,
                            [&](const Indices& at, const Indices& r) {
                              Indices row = at;
                              row.back() = r[0];
                              const Expr weight = w({at.back() / block, r[0], at.back() % block});
                              return cast(acc, a(row)) * cast(acc, weight);
                            });
  if (!call.input(2) && acc == dtype) return {sum};
  return {compute("gemm_bias", axes, [&](const Indices& at) {
    Expr value = sum(at);
    if (call.input(2)) value = value + cast(acc, in[2]({at.back()}));
    return cast(dtype, value);
  })};
}

// --- Convolutions.

/// The sum itself, or with bias [all channels] over axes 1 and last.
Tensor finish(const OpCall& call, const Tensors& in, const Tensor& sum, DType dtype,
              const std::string& outer, const std::string& inner) {
  const bool bias = call.input(2) != nullptr;
  if (!bias && sum.dtype() == dtype) return sum;
  return compute("conv_bias", blocked_axes(sum.shape(), outer, inner), [&](const Indices& at) {
    Expr value = sum(at);
    const Expr channel = affine(at[1], sum.shape().back()) + at.back();
    if (bias) value = value + cast(sum.dtype(), in[2]({channel}));
    return cast(dtype, value);
  });
}

Status check_blocked(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  return require_rank(call, 0, 5);
}

Result<Window> blocked_conv_window(const OpCall& call) {
  TW_TRY_STATUS(check_blocked(call));
  TW_TRY_STATUS(require_rank(call, 1, 6));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const int64_t groups = call.attrs.get_int("group", 1);
  if (groups < 1 || x[1] != w[1] * groups || x[4] != w[4] || w[0] % groups != 0)
    return invalid(call, fmt::format("input {}, packed weight {} and group {} do not fit together",
                                     to_string(x), to_string(w), groups));
  TW_TRY_STATUS(require_shape(call, 2, {w[0] * w[5]}));
  return window_of(call, {x[2], x[3]}, {w[2], w[3]});
}

Inferred infer_conv_blocked(const OpCall& call) {
  const Window window = TW_TRY(blocked_conv_window(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  return std::vector<TensorType>{
      {sum_type(call.inputs[0].dtype), {x[0], w[0], window.output[0], window.output[1], w[5]}}};
}

Tensors define_conv_blocked(const OpCall& call, const Tensors& in) {
  const Window window = *blocked_conv_window(call);
  const TensorType type = (*infer_conv_blocked(call))[0];
  const DType acc = accumulator(in[0].dtype());
  const Tensor x = pad_for(window, in[0], "conv_pad", const_of(in[0].dtype(), 0));
  const Tensor& w = in[1];
  const int64_t groups = call.attrs.get_int("group", 1), per_group = w.dim(0) / groups;
  const Tensor sum = reduce(
      "conv", blocked_axes(type.shape, "ko", "ki"),
      {{"co", w.dim(1)}, {"r", w.dim(2)}, {"s", w.dim(3)}, {"ci", w.dim(4)}}, Combine::Add,
      [&](const Indices& at, const Indices& r) {
        const Expr co = groups == 1 ? r[0] : affine(at[1] / per_group, w.dim(1)) + r[0];
        const Expr value =
            x({at[0], co, window.position(0, at[2], r[1]), window.position(1, at[3], r[2]), r[3]});
        return cast(acc, value) * cast(acc, w({at[1], r[0], r[1], r[2], r[3], at[4]}));
      });
  return {finish(call, in, sum, type.dtype, "ko", "ki")};
}

Result<Window> blocked_depthwise_window(const OpCall& call) {
  TW_TRY_STATUS(check_blocked(call));
  TW_TRY_STATUS(require_rank(call, 1, 4));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  if (x[1] != w[0] || x[4] != w[3])
    return invalid(call, fmt::format("input {} and packed weight {} do not fit together",
                                     to_string(x), to_string(w)));
  TW_TRY_STATUS(require_shape(call, 2, {w[0] * w[3]}));
  return window_of(call, {x[2], x[3]}, {w[1], w[2]});
}

Inferred infer_depthwise_blocked(const OpCall& call) {
  const Window window = TW_TRY(blocked_depthwise_window(call));
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{
      {sum_type(call.inputs[0].dtype), {x[0], x[1], window.output[0], window.output[1], x[4]}}};
}

Tensors define_depthwise_blocked(const OpCall& call, const Tensors& in) {
  const Window window = *blocked_depthwise_window(call);
  const TensorType type = (*infer_depthwise_blocked(call))[0];
  const DType acc = accumulator(in[0].dtype());
  const Tensor x = pad_for(window, in[0], "conv_pad", const_of(in[0].dtype(), 0));
  const Tensor& w = in[1];
  const Tensor sum =
      reduce("conv", blocked_axes(type.shape, "co", "ci"), {{"r", w.dim(1)}, {"s", w.dim(2)}},
             Combine::Add, [&](const Indices& at, const Indices& r) {
               const Expr value = x({at[0], at[1], window.position(0, at[2], r[0]),
                                     window.position(1, at[3], r[1]), at[4]});
               return cast(acc, value) * cast(acc, w({at[1], r[0], r[1], at[4]}));
             });
  return {finish(call, in, sum, type.dtype, "co", "ci")};
}

// --- Pools.

Result<Window> blocked_pool_window(const OpCall& call) {
  TW_TRY_STATUS(check_blocked(call));
  const Shape& x = call.inputs[0].shape;
  return window_of(call, {x[2], x[3]}, call.attrs.get_ints("kernel_shape"),
                   call.attrs.get_int("ceil_mode", 0) != 0);
}

Inferred infer_pool_blocked(const OpCall& call) {
  const Window window = TW_TRY(blocked_pool_window(call));
  if (call.op == "AveragePoolBlocked") TW_TRY_STATUS(require_float(call));
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{
      {call.inputs[0].dtype, {x[0], x[1], window.output[0], window.output[1], x[4]}}};
}

Tensor pool_sum(const std::string& name, const Tensor& x, const Window& window, Combine combine,
                DType acc) {
  const Shape shape = {x.dim(0), x.dim(1), window.output[0], window.output[1], x.dim(4)};
  return reduce(name, blocked_axes(shape, "co", "ci"),
                {{"r", window.kernel[0]}, {"s", window.kernel[1]}}, combine,
                [&](const Indices& at, const Indices& r) {
                  return cast(acc, x({at[0], at[1], window.position(0, at[2], r[0]),
                                      window.position(1, at[3], r[1]), at[4]}));
                });
}

Tensors define_max_pool_blocked(const OpCall& call, const Tensors& in) {
  const Window window = *blocked_pool_window(call);
  const DType dtype = in[0].dtype();
  const Tensor x = pad_for(window, in[0], "max_pool_pad", lowest(dtype));
  return {pool_sum("max_pool", x, window, Combine::Max, dtype)};
}

Tensors define_average_pool_blocked(const OpCall& call, const Tensors& in) {
  const Window window = *blocked_pool_window(call);
  const DType dtype = in[0].dtype(), acc = accumulator(dtype);
  const bool include_pad = call.attrs.get_int("count_include_pad", 0) != 0;
  const Tensor x = pad_for(window, in[0], "average_pool_pad", const_of(dtype, 0));
  const Tensor sum = pool_sum("average_pool_sum", x, window, Combine::Add, acc);
  return {compute("average_pool", blocked_axes(sum.shape(), "co", "ci"), [&](const Indices& at) {
    return cast(dtype, sum(at) / window_count(window, {at[2], at[3]}, include_pad, acc));
  })};
}

Inferred infer_global_blocked(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(check_blocked(call));
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{{call.inputs[0].dtype, {x[0], x[1], 1, 1, x[4]}}};
}

Tensors define_global_blocked(const OpCall&, const Tensors& in) {
  const Tensor& x = in[0];
  const DType dtype = x.dtype(), acc = accumulator(dtype);
  const Shape shape = {x.dim(0), x.dim(1), 1, 1, x.dim(4)};
  const Tensor sum = reduce("global_average_pool_sum", blocked_axes(shape, "co", "ci"),
                            {{"r", x.dim(2)}, {"s", x.dim(3)}}, Combine::Add,
                            [&](const Indices& at, const Indices& r) {
                              return cast(acc, x({at[0], at[1], r[0], r[1], at[4]}));
                            });
  const Expr count = const_of(acc, static_cast<double>(x.dim(2) * x.dim(3)));
  return {compute("global_average_pool", blocked_axes(shape, "co", "ci"),
                  [&](const Indices& at) { return cast(dtype, sum(at) / count); })};
}

}  // namespace

void add_blocked_ops(std::vector<OpDef>& table) {
  const auto move = Fusion::Injective;
  auto add = [&](const char* name, int least, int most, Fusion fusion, auto infer_rule,
                 auto define) {
    table.push_back({"tilewright", name, least, most, fusion, {}, infer_rule, define, ""});
  };
  add("ToBlocked", 1, 1, move, infer_to_blocked, define_to_blocked);
  add("FromBlocked", 1, 1, move, infer_from_blocked, define_from_blocked);
  add("PackConvWeight", 1, 1, move, infer_pack_conv, define_pack_conv);
  add("PackDepthwiseWeight", 1, 1, move, infer_pack_depthwise, define_pack_depthwise);
  add("PackGemmWeight", 1, 1, move, infer_pack_gemm, define_pack_gemm);
  add("GemmPacked", 2, 3, Fusion::Complex, infer_gemm_packed, define_gemm_packed);
  add("ConvBlocked", 2, 3, Fusion::Complex, infer_conv_blocked, define_conv_blocked);
  add("DepthwiseConvBlocked", 2, 3, Fusion::Complex, infer_depthwise_blocked,
      define_depthwise_blocked);
  add("MaxPoolBlocked", 1, 1, Fusion::Reduction, infer_pool_blocked, define_max_pool_blocked);
  add("AveragePoolBlocked", 1, 1, Fusion::Reduction, infer_pool_blocked,
      define_average_pool_blocked);
  add("GlobalAveragePoolBlocked", 1, 1, Fusion::Reduction, infer_global_blocked,
      define_global_blocked);
}

}  // namespace tilewright::tensor
