// Operators on blocked layouts ([n, channel block, h, w, channel in block]), the forms the layout
// pass uses. Channels that fill up the last block hold zeros.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"
#include "tilewright/tensor/channel_blocks.h"
#include "tilewright/tensor/pool.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

DType blocked_sum_type(DType dtype) { return is_float(dtype) ? dtype : accumulator(dtype); }

/// index = outer * block + inner, and whether it is one of `extent` (empty if always).
struct SplitIndex {
  Expr index, valid;
};
SplitIndex join_split(const Expr& outer, const Expr& inner, int64_t block, int64_t extent) {
  SplitIndex s;
  s.index = extent <= block ? inner : affine(outer, block) + inner;
  if (extent % block != 0) s.valid = s.index < extent;
  return s;
}

// --- Conversions.

Inferred infer_to_blocked(const OpCall& call) {
  Shape shape = call.inputs[0].shape;
  if (shape.size() < 2)
    return invalid(call, fmt::format("an input of shape {} has no channels", to_string(shape)));
  const int64_t block = TW_TRY(positive_attr(call, "block"));
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
    SplitIndex c = join_split(at[1], at.back(), shape.back(), x.dim(1));
    Indices source(at.begin(), at.end() - 1);
    source[1] = c.index;
    return guarded(c.valid, x(source), const_of(x.dtype(), 0));
  })};
}

Inferred infer_from_blocked(const OpCall& call) {
  Shape shape = call.inputs[0].shape;
  const int64_t channels = TW_TRY(positive_attr(call, "channels"));
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

/// Weights have 1 to 3 axes of taps behind the channels.
Status check_weight(const OpCall& call) {
  const Shape& w = call.inputs[0].shape;
  if (w.size() >= 3 && w.size() <= 5) return {};
  return invalid(call,
                 fmt::format("the weight {} does not have 1 to 3 axes of taps", to_string(w)));
}

/// `first`, the taps of the weight `w`, `last`.
template <class T>
std::vector<T> around_taps(std::vector<T> first, const std::vector<T>& taps,
                           const std::vector<T>& last) {
  first.insert(first.end(), taps.begin(), taps.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

Inferred infer_pack_conv(const OpCall& call) {
  TW_TRY_STATUS(check_weight(call));
  const Shape& w = call.inputs[0].shape;
  const int64_t in = TW_TRY(positive_attr(call, "block_in"));
  const int64_t out = TW_TRY(positive_attr(call, "block_out"));
  return std::vector<TensorType>{
      {call.inputs[0].dtype, around_taps<int64_t>({ceil_div(w[0], out), ceil_div(w[1], in)},
                                                  {w.begin() + 2, w.end()}, {in, out})}};
}

Tensors define_pack_conv(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_conv(call))[0].shape;
  const size_t ci = shape.size() - 2, ki = shape.size() - 1;
  const auto names = around_taps<std::string>({"ko", "co"}, tap_names(w.rank() - 2), {"ci", "ki"});
  return {compute("pack_conv", dims_of(shape, names), [&](const Indices& at) {
    const SplitIndex k = join_split(at[0], at[ki], shape[ki], w.dim(0));
    const SplitIndex c = join_split(at[1], at[ci], shape[ci], w.dim(1));
    Indices source = {k.index, c.index};
    source.insert(source.end(), at.begin() + 2, at.end() - 2);
    return guarded(both(k.valid, c.valid), w(source), const_of(w.dtype(), 0));
  })};
}

Inferred infer_pack_depthwise(const OpCall& call) {
  TW_TRY_STATUS(check_weight(call));
  const Shape& w = call.inputs[0].shape;
  if (w[1] != 1)
    return invalid(call, fmt::format("the weight {} is not depthwise", to_string(w)),
                   "its second extent must be 1");
  const int64_t block = TW_TRY(positive_attr(call, "block"));
  return std::vector<TensorType>{
      {call.inputs[0].dtype,
       around_taps<int64_t>({ceil_div(w[0], block)}, {w.begin() + 2, w.end()}, {block})}};
}

Tensors define_pack_depthwise(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_depthwise(call))[0].shape;
  const auto names = around_taps<std::string>({"co"}, tap_names(w.rank() - 2), {"ci"});
  return {compute("pack_depthwise", dims_of(shape, names), [&](const Indices& at) {
    const SplitIndex k = join_split(at[0], at.back(), shape.back(), w.dim(0));
    Indices source = {k.index, int_imm(0)};
    source.insert(source.end(), at.begin() + 1, at.end() - 1);
    return guarded(k.valid, w(source), const_of(w.dtype(), 0));
  })};
}

Inferred infer_pack_gemm(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 2));
  const Shape& w = call.inputs[0].shape;
  const bool transposed = call.attrs.get_int("transB", 0) != 0;
  const int64_t block = TW_TRY(positive_attr(call, "block"));
  const int64_t k = w[transposed ? 1 : 0], n = w[transposed ? 0 : 1];
  return std::vector<TensorType>{{call.inputs[0].dtype, {ceil_div(n, block), k, block}}};
}

Tensors define_pack_gemm(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const Shape shape = (*infer_pack_gemm(call))[0].shape;
  const bool transposed = call.attrs.get_int("transB", 0) != 0;
  return {compute("pack_gemm", dims_of(shape, {"no", "k", "ni"}), [&](const Indices& at) {
    const SplitIndex n = join_split(at[0], at[2], shape[2], w.dim(transposed ? 0 : 1));
    const Expr value = transposed ? w({n.index, at[1]}) : w({at[1], n.index});
    return guarded(n.valid, value, const_of(w.dtype(), 0));
  })};
}

// --- GemmPacked: A [.., k] * packed weight, bias [n]. With `parts`, the result is
// [.., parts, n / parts]: each part whole blocks of columns.

Inferred infer_gemm_packed(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  TW_TRY_STATUS(require_rank(call, 1, 3));
  Shape a = call.inputs[0].shape;
  const Shape& w = call.inputs[1].shape;
  const int64_t n = TW_TRY(positive_attr(call, "n"));
  if (a.empty() || a.back() != w[1] || ceil_div(n, w[2]) != w[0])
    return invalid(call, fmt::format("A {} and packed weight {} do not fit n = {}", to_string(a),
                                     to_string(w), n));
  TW_TRY_STATUS(require_shape(call, 2, {n}));
  const int64_t parts = call.attrs.get_int("parts", 1);
  if (parts < 1 || (parts > 1 && n % (parts * w[2]) != 0))
    return invalid(call, fmt::format("{} columns in blocks of {} are no {} equal parts of blocks",
                                     n, w[2], parts));
  a.back() = n / parts;
  if (parts > 1) a.insert(a.end() - 1, parts);
  return std::vector<TensorType>{{blocked_sum_type(call.inputs[0].dtype), a}};
}

Tensors define_gemm_packed(const OpCall& call, const Tensors& in) {
  const Tensor &a = in[0], &w = in[1];
  const Shape shape = (*infer_gemm_packed(call))[0].shape;
  const DType dtype = blocked_sum_type(a.dtype()), acc = accumulator(a.dtype());
  const size_t outer = a.rank() - 1;  // axes before the columns
  std::vector<std::string> names;
  for (size_t i = 0; i + 1 < outer; ++i) names.push_back("b" + std::to_string(i));
  if (outer > 0) names.emplace_back("m");
  if (shape.size() > outer + 1) names.emplace_back("part");
  names.emplace_back("n");
  const std::vector<Dim> axes = dims_of(shape, names);
  const int64_t block = w.dim(2), part_blocks = shape.back() / block;
  const bool parts = shape.size() > outer + 1;
  const Tensor sum = reduce(
      "gemm", axes, {{"k", w.dim(1)}}, Combine::Add, [&](const Indices& at, const Indices& r) {
        Indices row(at.begin(), at.begin() + static_cast<long>(outer));
        row.push_back(r[0]);
        Expr panel = at.back() / block;
        if (parts) panel = affine(at[outer], part_blocks) + panel;
        return cast(acc, a(row)) * cast(acc, w({panel, r[0], at.back() % block}));
      });
  if (!call.input(2) && acc == dtype) return {sum};
  return {compute("gemm_bias", axes, [&](const Indices& at) {
    Expr value = sum(at);
    const Expr column = parts ? affine(at[outer], shape.back()) + at.back() : at.back();
    if (call.input(2)) value = value + cast(acc, in[2]({column}));
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

/// Blocked values have 1 to 3 spatial axes.
Status check_blocked(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  const Shape& x = call.inputs[0].shape;
  if (x.size() >= 4 && x.size() <= 6) return {};
  return invalid(call, fmt::format("the input {} is not blocked", to_string(x)),
                 "a batch, blocks of channels, 1 to 3 spatial axes and a block are expected");
}

Shape blocked_spatial_of(const Shape& x) { return {x.begin() + 2, x.end() - 1}; }

/// [n, outer, window's output, inner]
Shape blocked_shape(int64_t n, int64_t outer, const Window& window, int64_t inner) {
  return around_taps<int64_t>({n, outer}, window.output, {inner});
}

/// Indices of the input at the window's taps `r`, starting with `first`, ending with `last`.
Indices taps_of(const Window& window, Indices first, const Indices& at, const Indices& r,
                size_t first_tap, const Expr& last) {
  for (size_t i = 0; i < window.rank(); ++i)
    first.push_back(window.position(i, at[i + 2], r[first_tap + i]));
  first.push_back(last);
  return first;
}

std::vector<Dim> tap_dims(const Window& window) {
  return dims_of(window.kernel, tap_names(window.rank()));
}

Result<Window> blocked_conv_window(const OpCall& call) {
  TW_TRY_STATUS(check_blocked(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  TW_TRY_STATUS(require_rank(call, 1, x.size() + 1));
  const int64_t groups = call.attrs.get_int("group", 1);
  if (groups < 1 || x[1] != w[1] * groups || x.back() != w[w.size() - 2] || w[0] % groups != 0)
    return invalid(call, fmt::format("input {}, packed weight {} and group {} do not fit together",
                                     to_string(x), to_string(w), groups));
  TW_TRY_STATUS(check_channels(call));
  TW_TRY_STATUS(require_shape(call, 2, {w[0] * w.back()}));
  return window_of(call, blocked_spatial_of(x), {w.begin() + 2, w.end() - 2});
}

Inferred infer_conv_blocked(const OpCall& call) {
  const Window window = TW_TRY(blocked_conv_window(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  return std::vector<TensorType>{
      {blocked_sum_type(call.inputs[0].dtype), blocked_shape(x[0], w[0], window, w.back())}};
}

/// From indices of the padded input to those of the input itself; whether they lie in it (empty if
/// always).
Expr take_padding_off(const Window& window, const Tensor& x, Indices& places) {
  Expr inside;
  for (size_t i = 0; i < window.rank(); ++i) {
    Expr& place = places[i + 2];
    place = affine(place, 1, -window.begin[i]);
    if (window.begin[i] > 0) inside = both(std::move(inside), place >= 0);
    if (window.reached_end(i) > 0) inside = both(std::move(inside), place < x.dim(i + 2));
  }
  return inside;
}

/// With `skip_padding`, taps in the padding add nothing: -0.0 changes no sum, not even its sign.
Tensors define_conv_blocked(const OpCall& call, const Tensors& in) {
  const Window window = *blocked_conv_window(call);
  const TensorType type = (*infer_conv_blocked(call))[0];
  const DType acc = accumulator(in[0].dtype());
  const bool skip = call.attrs.get_int("skip_padding", 0) != 0;
  const Tensor x = skip ? in[0] : pad_for(window, in[0], "conv_pad", const_of(in[0].dtype(), 0));
  const Tensor& w = in[1];
  const int64_t groups = call.attrs.get_int("group", 1), per_group = w.dim(0) / groups;
  const ChannelSum channels = channel_sum(call);
  const std::vector<Dim> over =
      around_taps<Dim>({{"co", channels.blocks}}, tap_dims(window), {{"ci", channels.per_block}});
  const Tensor sum = reduce(
      "conv", blocked_axes(type.shape, "ko", "ki"), over, Combine::Add,
      [&](const Indices& at, const Indices& r) {
        const Expr co = groups == 1 ? r[0] : affine(at[1] / per_group, w.dim(1)) + r[0];
        Indices weight = {at[1]};
        weight.insert(weight.end(), r.begin(), r.end());
        weight.push_back(at.back());
        Indices places = taps_of(window, {at[0], co}, at, r, 1, r.back());
        const Expr inside = skip ? take_padding_off(window, x, places) : Expr();
        const Expr term = cast(acc, x(places)) * cast(acc, w(weight));
        return guarded(inside, term, const_of(acc, -0.0));
      },
      {}, channels.counts);
  return {finish(call, in, sum, type.dtype, "ko", "ki")};
}

Result<Window> blocked_depthwise_window(const OpCall& call) {
  TW_TRY_STATUS(check_blocked(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  TW_TRY_STATUS(require_rank(call, 1, x.size() - 1));
  if (x[1] != w[0] || x.back() != w.back())
    return invalid(call, fmt::format("input {} and packed weight {} do not fit together",
                                     to_string(x), to_string(w)));
  TW_TRY_STATUS(require_shape(call, 2, {w[0] * w.back()}));
  return window_of(call, blocked_spatial_of(x), {w.begin() + 1, w.end() - 1});
}

Inferred infer_depthwise_blocked(const OpCall& call) {
  const Window window = TW_TRY(blocked_depthwise_window(call));
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{
      {blocked_sum_type(call.inputs[0].dtype), blocked_shape(x[0], x[1], window, x.back())}};
}

Tensors define_depthwise_blocked(const OpCall& call, const Tensors& in) {
  const Window window = *blocked_depthwise_window(call);
  const TensorType type = (*infer_depthwise_blocked(call))[0];
  const DType acc = accumulator(in[0].dtype());
  const Tensor x =
      pad_for(window, in[0], "conv_pad",
              const_of(in[0].dtype(), static_cast<double>(call.attrs.get_int("zero", 0))));
  const Tensor& w = in[1];
  const Tensor sum =
      reduce("conv", blocked_axes(type.shape, "co", "ci"), tap_dims(window), Combine::Add,
             [&](const Indices& at, const Indices& r) {
               Indices weight = {at[1]};
               weight.insert(weight.end(), r.begin(), r.end());
               weight.push_back(at.back());
               return cast(acc, x(taps_of(window, {at[0], at[1]}, at, r, 0, at.back()))) *
                      cast(acc, w(weight));
             });
  return {finish(call, in, sum, type.dtype, "co", "ci")};
}

// --- Pools.

Result<Window> blocked_pool_window(const OpCall& call) {
  TW_TRY_STATUS(check_blocked(call));
  const Shape& x = call.inputs[0].shape;
  return window_of(call, blocked_spatial_of(x), call.attrs.get_ints("kernel_shape"),
                   call.attrs.get_int("ceil_mode", 0) != 0);
}

Inferred infer_pool_blocked(const OpCall& call) {
  const Window window = TW_TRY(blocked_pool_window(call));
  if (call.op == "AveragePoolBlocked") TW_TRY_STATUS(require_float(call));
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{
      {call.inputs[0].dtype, blocked_shape(x[0], x[1], window, x.back())}};
}

Tensor pool_sum(const std::string& name, const Tensor& x, const Window& window, Combine combine,
                DType acc) {
  const Shape shape = blocked_shape(x.dim(0), x.dim(1), window, x.shape().back());
  return reduce(name, blocked_axes(shape, "co", "ci"), tap_dims(window), combine,
                [&](const Indices& at, const Indices& r) {
                  return cast(acc, x(taps_of(window, {at[0], at[1]}, at, r, 0, at.back())));
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
    const Indices spatial(at.begin() + 2, at.end() - 1);
    return cast(dtype, sum(at) / window_count(window, spatial, include_pad, acc));
  })};
}

Inferred infer_global_blocked(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(check_blocked(call));
  Shape shape = call.inputs[0].shape;
  std::fill(shape.begin() + 2, shape.end() - 1, 1);
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

Tensors define_global_blocked(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const DType dtype = x.dtype(), acc = accumulator(dtype);
  const Shape shape = (*infer_global_blocked(call))[0].shape,
              spatial = blocked_spatial_of(x.shape());
  const Tensor sum =
      reduce("global_average_pool_sum", blocked_axes(shape, "co", "ci"),
             dims_of(spatial, tap_names(spatial.size())), Combine::Add,
             [&](const Indices& at, const Indices& r) {
               return cast(acc, x(around_taps<Expr>({at[0], at[1]}, r, {at.back()})));
             });
  const Expr count = const_of(acc, static_cast<double>(element_count(spatial)));
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
