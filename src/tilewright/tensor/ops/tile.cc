// Integer operators of quantised networks, plain and on tiles of a matrix accelerator. All are
// exact: sums in i32 that wrap, arithmetic shifts, no rounding besides what a bias adds.
#include "tilewright/tensor/tile.h"

#include <cmath>
#include <numeric>

#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

const std::vector<std::string> kTileAxes = {"n", "o", "h", "w", "b", "co"};

/// An integer attribute in [lo, hi]. errors: Invalid, with the value.
Result<int64_t> int_attr(const OpCall& call, const char* key, int64_t fallback, int64_t lo,
                         int64_t hi = int64_t{1} << 40) {
  const int64_t v = call.attrs.get_int(key, fallback);
  if (v >= lo && v <= hi) return v;
  return invalid(call, fmt::format("the attribute {} is {}", key, v),
                 fmt::format("it must be at least {} and at most {}", lo, hi));
}

Status require_dtype(const OpCall& call, size_t i, DType dtype) {
  const InputInfo* in = call.input(i);
  if (in == nullptr || in->dtype == dtype) return {};
  return invalid(call, fmt::format("input {} is {}, not {}", i, name(in->dtype), name(dtype)));
}

// --- Requantize: clip((acc * multiplier + bias + (residual << residual_shift)) >> shift, lo, hi).
// The sum may be shifted by pre_shift first. With a multiplier that is acc, which is then clipped
// to at most limit on both sides if limit > 0, so that the product stays below 2^31; without one it
// is acc + bias, so that a residual needs fewer bits: floors nest, so two shifts are as good as
// one. With half_even the last shift is a division in f32 that rounds to the nearest, ties to even.

Inferred infer_requantize(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  TW_TRY_STATUS(require_dtype(call, 0, DType::I32));
  TW_TRY_STATUS(require_dtype(call, 1, DType::I32));
  TW_TRY_STATUS(require_dtype(call, 2, DType::I8));
  TW_TRY_STATUS(require_dtype(call, 3, DType::I32));
  TW_TRY_STATUS(require_shape(call, 2, shape));
  for (const size_t i : {1, 3}) {
    if (!call.input(i)) continue;
    const Shape joint = TW_TRY(broadcast(shape, call.inputs[i].shape));
    if (joint != shape)
      return invalid(call, fmt::format("input {} of shape {} does not broadcast to {}", i,
                                       to_string(call.inputs[i].shape), to_string(shape)));
  }
  TW_TRY(int_attr(call, "shift", 0, 0, 31));
  TW_TRY(int_attr(call, "residual_shift", 0, 0, 23));
  TW_TRY(int_attr(call, "residual_multiplier", 1, 1, 32767));
  TW_TRY(int_attr(call, "pre_shift", 0, 0, 31));
  const int64_t limit = TW_TRY(int_attr(call, "limit", 0, 0, 32767));
  if (!call.input(3) && limit != 0) return invalid(call, "limit is for sums with a multiplier");
  const int64_t half_even = TW_TRY(int_attr(call, "half_even", 0, 0, 1));
  if (half_even == 1 && (call.input(3) || call.attrs.get_int("pre_shift", 0) != 0))
    return invalid(call, "half_even is for sums with one shift and no multiplier");
  const int64_t lo = TW_TRY(int_attr(call, "lo", -128, -128, 127));
  TW_TRY(int_attr(call, "hi", 127, lo, 127));
  return std::vector<TensorType>{{DType::I8, shape}};
}

Tensors define_requantize(const OpCall& call, const Tensors& in) {
  const Shape& shape = in[0].shape();
  const std::vector<std::string> axes =
      shape.size() == 6 ? kTileAxes : std::vector<std::string>{"n", "k", "h", "w"};
  const auto number = [&](const char* key, int64_t fallback) {
    return int_imm(call.attrs.get_int(key, fallback), DType::I32);
  };
  const auto shifted = [&](BinaryOp op, const Expr& value, const char* key) {
    return call.attrs.get_int(key, 0) == 0 ? value : binary(op, value, number(key, 0));
  };
  return {compute("requantize", dims_of(shape, axes), [&](const Indices& at) {
    Expr value = in[0](at);
    if (call.input(3)) {
      value = shifted(BinaryOp::Shr, value, "pre_shift");
      if (const int64_t limit = call.attrs.get_int("limit", 0); limit != 0)
        value = min(max(value, int_imm(-limit, DType::I32)), int_imm(limit, DType::I32));
      value = value * element(call, in, 3, at);
    }
    if (call.input(1)) value = value + element(call, in, 1, at);
    if (!call.input(3)) value = shifted(BinaryOp::Shr, value, "pre_shift");
    if (call.input(2)) {
      Expr residual = cast(DType::I32, in[2](at));
      if (call.attrs.get_int("residual_multiplier", 1) != 1)
        residual = residual * number("residual_multiplier", 1);
      value = value + shifted(BinaryOp::Shl, residual, "residual_shift");
    }
    const int64_t shift = call.attrs.get_int("shift", 0);
    if (call.attrs.get_int("half_even", 0) != 0 && shift != 0) {
      const auto real = [&](double x) { return float_imm(x, DType::F32); };
      value = math(MathFn::Round,
                   {cast(DType::F32, value) * real(std::ldexp(1.0, -static_cast<int>(shift)))});
      return cast(DType::I8,
                  min(max(value, real(static_cast<double>(call.attrs.get_int("lo", -128)))),
                      real(static_cast<double>(call.attrs.get_int("hi", 127)))));
    }
    value = shifted(BinaryOp::Shr, value, "shift");
    return cast(DType::I8, min(max(value, number("lo", -128)), number("hi", 127)));
  })};
}

// --- Conversions.

/// outer * block + inner where both may be more than one.
Expr join(const Expr& outer, const Expr& inner, int64_t outers, int64_t block) {
  if (outers == 1) return inner;
  return block == 1 ? outer : affine(outer, block) + inner;
}
/// The same with the condition that it is below `extent`.
Expr join_inside(const Expr& outer, const Expr& inner, int64_t outers, int64_t block,
                 int64_t extent, Expr& condition) {
  Expr index = join(outer, inner, outers, block);
  if (outers * block > extent) condition = both(std::move(condition), index < extent);
  return index;
}

/// Where the axes of tiles are: N/B, C/b, H, W (B and b are the last two in any order).
struct TileAxes {
  size_t n = 0, c = 1, h = 2, w = 3;
  std::vector<std::string> names = kTileAxes;
};
/// The attribute `order`. errors: Invalid.
Result<TileAxes> tile_axes(const OpCall& call) {
  const std::string order = call.attrs.get_string("order", kBlocksFirst);
  if (order == kBlocksFirst) return TileAxes{};
  if (order == kPixelsFirst) return TileAxes{0, 3, 1, 2, {"n", "h", "w", "o", "b", "co"}};
  return invalid(call, fmt::format("order is '{}'", order),
                 fmt::format("it must be '{}' or '{}'", kBlocksFirst, kPixelsFirst));
}

Inferred infer_to_tiles(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  const Shape& x = call.inputs[0].shape;
  const int64_t batch = TW_TRY(int_attr(call, "batch", 0, 1));
  const int64_t block = TW_TRY(int_attr(call, "block", 0, 1));
  const TileAxes axes = TW_TRY(tile_axes(call));
  Shape shape = {0, 0, 0, 0, batch, block};
  shape[axes.n] = ceil_div(x[0], batch), shape[axes.c] = ceil_div(x[1], block);
  shape[axes.h] = x[2], shape[axes.w] = x[3];
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

Tensors define_to_tiles(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const Shape shape = (*infer_to_tiles(call))[0].shape;
  const TileAxes axes = *tile_axes(call);
  return {compute("to_tiles", dims_of(shape, axes.names), [&](const Indices& at) {
    Expr valid;
    const Expr n = join_inside(at[axes.n], at[4], shape[axes.n], shape[4], x.dim(0), valid);
    const Expr c = join_inside(at[axes.c], at[5], shape[axes.c], shape[5], x.dim(1), valid);
    return guarded(valid, x({n, c, at[axes.h], at[axes.w]}), const_of(x.dtype(), 0));
  })};
}

Inferred infer_from_tiles(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 6));
  const Shape& x = call.inputs[0].shape;
  const int64_t channels = TW_TRY(int_attr(call, "channels", 0, 1));
  const int64_t n = TW_TRY(int_attr(call, "n", 0, 1));
  const TileAxes axes = TW_TRY(tile_axes(call));
  if (ceil_div(n, x[4]) != x[axes.n] || ceil_div(channels, x[5]) != x[axes.c])
    return invalid(call, fmt::format("{} samples of {} channels do not make tiles {}", n, channels,
                                     to_string(x)));
  return std::vector<TensorType>{{call.inputs[0].dtype, {n, channels, x[axes.h], x[axes.w]}}};
}

Tensors define_from_tiles(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const Shape shape = (*infer_from_tiles(call))[0].shape;
  const auto outer = [](const Expr& at, int64_t count, int64_t block) {
    if (count == 1) return int_imm(0);
    return block == 1 ? at : at / block;
  };
  const auto inner = [](const Expr& at, int64_t count, int64_t block) {
    if (block == 1) return int_imm(0);
    return count == 1 ? at : at % block;
  };
  const TileAxes axes = *tile_axes(call);
  return {compute("from_tiles", dims_of(shape, {"n", "c", "h", "w"}), [&](const Indices& at) {
    Indices from(6);
    from[axes.n] = outer(at[0], x.dim(axes.n), x.dim(4));
    from[axes.c] = outer(at[1], x.dim(axes.c), x.dim(5));
    from[axes.h] = at[2], from[axes.w] = at[3];
    from[4] = inner(at[0], x.dim(axes.n), x.dim(4));
    from[5] = inner(at[1], x.dim(axes.c), x.dim(5));
    return x(from);
  })};
}

// --- Im2Col: the windows of a convolution as channels [c, r, s] of its output's pixels.

Result<Window> im2col_window(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  const Shape& x = call.inputs[0].shape;
  return window_of(call, {x[2], x[3]}, call.attrs.get_ints("kernel_shape"));
}

Inferred infer_im2col(const OpCall& call) {
  const Window window = TW_TRY(im2col_window(call));
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{
      {call.inputs[0].dtype,
       {x[0], x[1] * window.kernel[0] * window.kernel[1], window.output[0], window.output[1]}}};
}

Tensors define_im2col(const OpCall& call, const Tensors& in) {
  const Window window = *im2col_window(call);
  const Shape shape = (*infer_im2col(call))[0].shape;
  const Tensor& x = in[0];
  return {compute("im2col", dims_of(shape, {"n", "k", "h", "w"}), [&](const Indices& at) {
    const Indices k = unflatten_index(at[1], {x.dim(1), window.kernel[0], window.kernel[1]});
    Indices source = {at[0], k[0], {}, {}};
    Expr valid;
    for (size_t i = 0; i < 2; ++i) {
      source[2 + i] = affine(window.position(i, at[2 + i], k[1 + i]), 1, -window.begin[i]);
      const int64_t reach = window.input[i] + window.reached_end(i) - 1;
      valid = both(std::move(valid), inside(source[2 + i], -window.begin[i], reach, x.dim(2 + i)));
    }
    return guarded(valid, x(source), const_of(x.dtype(), 0));
  })};
}

// --- Weight packing.

Result<TileBlocks> pack_blocks(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  const Shape& w = call.inputs[0].shape;
  const int64_t in = TW_TRY(int_attr(call, "block_in", 0, 1));
  const int64_t out = TW_TRY(int_attr(call, "block_out", 0, 1));
  const int64_t groups = TW_TRY(int_attr(call, "groups", 1, 1));
  if (w[0] % groups != 0 || w[0] == 0 || w[1] == 0)
    return invalid(call,
                   fmt::format("a weight of shape {} has no {} groups", to_string(w), groups));
  return tile_blocks(w[0], w[1], groups, in, out);
}

Inferred infer_pack_tiles(const OpCall& call) {
  const TileBlocks blocks = TW_TRY(pack_blocks(call));
  const Shape& w = call.inputs[0].shape;
  return std::vector<TensorType>{
      {call.inputs[0].dtype,
       {blocks.out, blocks.in / blocks.groups, w[2], w[3], call.attrs.get_int("block_out", 1),
        call.attrs.get_int("block_in", 1)}}};
}

Tensors define_pack_tiles(const OpCall& call, const Tensors& in) {
  const Tensor& w = in[0];
  const TileBlocks blocks = *pack_blocks(call);
  const Shape shape = (*infer_pack_tiles(call))[0].shape;
  const int64_t groups = call.attrs.get_int("groups", 1);
  const int64_t outs = w.dim(0) / groups, ins = w.dim(1);
  return {compute("pack_tiles", dims_of(shape, {"o", "ci", "r", "s", "co", "bi"}),
                  [&](const Indices& at) {
                    Expr valid;
                    const Expr o = join_inside(at[0], at[4], shape[0], shape[4], w.dim(0), valid);
                    if (groups == 1) {
                      const Expr i = join_inside(at[1], at[5], shape[1], shape[5], ins, valid);
                      return guarded(valid, w({o, i, at[2], at[3]}), const_of(w.dtype(), 0));
                    }
                    // The input channel, less the first one of the output's group.
                    Expr i = affine(at[1], shape[5]) + at[5];
                    if (blocks.groups > 1) {
                      const int64_t out_per = blocks.out / blocks.groups;
                      i = i + affine(at[0] / out_per, shape[1] * shape[5]);
                    }
                    i = i - affine(o / outs, ins);
                    valid = both(std::move(valid), both(i >= 0, i < ins));
                    return guarded(valid, w({o, i, at[2], at[3]}), const_of(w.dtype(), 0));
                  })};
}

// --- TileConv.

Result<Window> tile_conv_window(const OpCall& call) {
  TW_TRY_STATUS(require_dtype(call, 0, DType::I8));
  TW_TRY_STATUS(require_dtype(call, 1, DType::I8));
  TW_TRY_STATUS(require_rank(call, 0, 6));
  TW_TRY_STATUS(require_rank(call, 1, 6));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const int64_t groups = TW_TRY(int_attr(call, "groups", 1, 1));
  if (x[1] != w[1] * groups || x[5] != w[5] || w[0] % groups != 0)
    return invalid(call, fmt::format("tiles {}, weight {} and {} groups do not fit together",
                                     to_string(x), to_string(w), groups));
  return window_of(call, {x[2], x[3]}, {w[2], w[3]});
}

Inferred infer_tile_conv(const OpCall& call) {
  const Window window = TW_TRY(tile_conv_window(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  return std::vector<TensorType>{
      {DType::I32, {x[0], w[0], window.output[0], window.output[1], x[4], w[4]}}};
}

/// The tiles with `fill` around each image, or the tiles themselves if no window leaves them.
Tensor padded(const Window& window, const Tensor& x, const Expr& fill) {
  if (!window.needs_padding()) return x;
  Shape shape = x.shape();
  for (size_t i = 0; i < 2; ++i) shape[2 + i] += window.begin[i] + window.reached_end(i);
  return compute("pad", dims_of(shape, {"n", "c", "h", "w", "b", "bi"}), [&](const Indices& at) {
    Indices source = at;
    Expr condition;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t begin = window.begin[i];
      if (begin > 0) condition = both(std::move(condition), at[2 + i] >= begin);
      if (window.reached_end(i) > 0)
        condition = both(std::move(condition), at[2 + i] < begin + x.dim(2 + i));
      source[2 + i] = affine(at[2 + i], 1, -begin);
    }
    return guarded(std::move(condition), x(source), fill);
  });
}

/// The rows that windows of one row read: a copy may step over the others.
Tensor read_rows(const Window& window, const Tensor& x) {
  Shape shape = x.shape();
  shape[2] = window.output[0];
  return compute("rows", dims_of(shape, {"n", "c", "h", "w", "b", "bi"}), [&](const Indices& at) {
    Indices source = at;
    source[2] = affine(at[2], window.strides[0]);
    return x(source);
  });
}

Tensors define_tile_conv(const OpCall& call, const Tensors& in) {
  const Window window = *tile_conv_window(call);
  const Shape shape = (*infer_tile_conv(call))[0].shape;
  const bool skips = window.kernel[0] == 1 && window.strides[0] > 1 && !window.needs_padding();
  const Tensor x = skips ? read_rows(window, in[0]) : padded(window, in[0], const_of(DType::I8, 0));
  const Tensor& w = in[1];
  const int64_t groups = call.attrs.get_int("groups", 1), per_group = w.dim(0) / groups;
  return {reduce("conv", dims_of(shape, kTileAxes),
                 {{"ci", w.dim(1)}, {"r", w.dim(2)}, {"s", w.dim(3)}, {"bi", w.dim(5)}},
                 Combine::Add, [&](const Indices& at, const Indices& r) {
                   Expr c = r[0];
                   if (groups > 1) {
                     c = per_group == 1 ? at[1] : at[1] / per_group;
                     c = w.dim(1) == 1 ? c : affine(c, w.dim(1)) + r[0];
                   }
                   const Expr row = skips ? at[2] : window.position(0, at[2], r[1]);
                   const Expr value =
                       x({at[0], c, row, window.position(1, at[3], r[2]), at[4], r[3]});
                   const Expr weight = w({at[1], r[0], r[1], r[2], at[5], r[3]});
                   return cast(DType::I32, value) * cast(DType::I32, weight);
                 })};
}

// --- TileMaxPool.

Result<Window> tile_pool_window(const OpCall& call) {
  TW_TRY_STATUS(require_dtype(call, 0, DType::I8));
  TW_TRY_STATUS(require_rank(call, 0, 6));
  TW_TRY(int_attr(call, "floor", -128, -128, 127));
  const Shape& x = call.inputs[0].shape;
  return window_of(call, {x[2], x[3]}, call.attrs.get_ints("kernel_shape"),
                   call.attrs.get_int("ceil_mode", 0) != 0);
}

Inferred infer_tile_pool(const OpCall& call) {
  const Window window = TW_TRY(tile_pool_window(call));
  Shape shape = call.inputs[0].shape;
  shape[2] = window.output[0], shape[3] = window.output[1];
  return std::vector<TensorType>{{DType::I8, shape}};
}

Tensors define_tile_pool(const OpCall& call, const Tensors& in) {
  const Window window = *tile_pool_window(call);
  const Shape shape = (*infer_tile_pool(call))[0].shape;
  const int64_t lowest_value = call.attrs.get_int("floor", -128);
  const Tensor x = padded(window, in[0], int_imm(lowest_value, DType::I8));
  const Tensor wide = compute("wide", dims_of(x.shape(), kTileAxes),
                              [&](const Indices& at) { return cast(DType::I32, x(at)); });
  const Tensor acc = reduce(
      "acc", dims_of(shape, kTileAxes), {{"r", window.kernel[0]}, {"s", window.kernel[1]}},
      Combine::Max,
      [&](const Indices& at, const Indices& r) {
        return wide({at[0], at[1], window.position(0, at[2], r[0]), window.position(1, at[3], r[1]),
                     at[4], at[5]});
      },
      [&](const Indices&) { return int_imm(lowest_value, DType::I32); });
  return {compute("pool", dims_of(shape, kTileAxes),
                  [&](const Indices& at) { return cast(DType::I8, acc(at)); })};
}

}  // namespace

TileBlocks tile_blocks(int64_t o, int64_t i, int64_t groups, int64_t block_in, int64_t block_out) {
  TileBlocks blocks{ceil_div(i * groups, block_in), ceil_div(o, block_out), 1};
  if (groups == 1) return blocks;
  // So many conv groups end together with a block on both sides.
  const int64_t per_in = std::lcm(i, block_in) / i;
  const int64_t per_out = std::lcm(o / groups, block_out) / (o / groups);
  const int64_t count = ceil_div(groups, std::lcm(per_in, per_out));
  if (blocks.in % count == 0 && blocks.out % count == 0 && count > 1) {
    const int64_t together = std::lcm(per_in, per_out);
    const bool fits = blocks.in / count == together * i / block_in &&
                      blocks.out / count == together * (o / groups) / block_out;
    if (fits) blocks.groups = count;
  }
  return blocks;
}

void add_tile_ops(std::vector<OpDef>& table) {
  const auto move = Fusion::Injective;
  auto add = [&](const char* name, int least, int most, Fusion fusion, auto infer_rule,
                 auto define) {
    table.push_back({"tilewright", name, least, most, fusion, {}, infer_rule, define, ""});
  };
  add("Requantize", 1, 4, move, infer_requantize, define_requantize);
  add("ToTiles", 1, 1, move, infer_to_tiles, define_to_tiles);
  add("FromTiles", 1, 1, move, infer_from_tiles, define_from_tiles);
  add("Im2Col", 1, 1, move, infer_im2col, define_im2col);
  add("PackTiles", 1, 1, move, infer_pack_tiles, define_pack_tiles);
  add("TileConv", 2, 2, Fusion::Complex, infer_tile_conv, define_tile_conv);
  add("TileMaxPool", 1, 1, Fusion::Reduction, infer_tile_pool, define_tile_pool);
}

}  // namespace tilewright::tensor
