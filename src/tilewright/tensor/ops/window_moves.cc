// Moves that turn dilated and three-dimensional convolutions into plain two-dimensional ones.
// Axes behind those named here are kept, so that blocked values move alike.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

Result<int64_t> number(const OpCall& call, const char* key, int64_t least) {
  const int64_t value = call.attrs.get_int(key, least);
  if (value < least) return invalid(call, fmt::format("{} is {}", key, value));
  return value;
}

// --- SpaceToBatch: y[n * phases + p, c, q..] = x[n, c, q * stride + p - begin..], 0 outside.

Inferred infer_space_to_batch(const OpCall& call) {
  const Ints strides = TW_TRY(axis_ints(call, "strides", 0, 1));
  TW_TRY(axis_ints(call, "begin", strides.size(), 0));
  const Ints output = TW_TRY(axis_ints(call, "output", strides.size(), 1));
  Shape shape = call.inputs[0].shape;
  if (shape.size() < strides.size() + 2)
    return invalid(call, fmt::format("the input {} has too few axes", to_string(shape)));
  shape[0] *= product(strides);
  std::copy(output.begin(), output.end(), shape.begin() + 2);
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

Tensors define_space_to_batch(const OpCall& call, const Tensors& in) {
  const Shape shape = (*infer_space_to_batch(call))[0].shape;
  const Ints strides = call.attrs.get_ints("strides"), begin = call.attrs.get_ints("begin");
  const int64_t phases = product(strides);
  return {compute("space_to_batch", dims_of(shape), [&](const Indices& at) {
    const Expr phase = phases == 1 ? int_imm(0) : at[0] % phases;
    const Indices digits = unflatten_index(phase, strides);
    Indices source = at;
    source[0] = phases == 1 ? at[0] : at[0] / phases;
    Expr valid;
    for (size_t i = 0; i < strides.size(); ++i) {
      Expr& index = source[i + 2];
      const int64_t extent = in[0].dim(i + 2), last = (shape[i + 2] - 1) * strides[i];
      index = affine(affine(index, strides[i]) + digits[i], 1, -begin[i]);
      valid = both(std::move(valid),
                   inside(index, -begin[i], last + strides[i] - 1 - begin[i], extent));
    }
    return guarded(valid, in[0](source), const_of(in[0].dtype(), 0));
  })};
}

// --- BatchToSpace: y[n, c, h..] = x[n * phases + h % stride.., c, h / stride..].

Inferred infer_batch_to_space(const OpCall& call) {
  const Ints strides = TW_TRY(axis_ints(call, "strides", 0, 1));
  const Ints output = TW_TRY(axis_ints(call, "output", strides.size(), 1));
  Shape shape = call.inputs[0].shape;
  bool fits = shape.size() >= strides.size() + 2 && shape[0] % product(strides) == 0;
  for (size_t i = 0; fits && i < strides.size(); ++i) fits = output[i] <= shape[i + 2] * strides[i];
  if (!fits)
    return invalid(call, fmt::format("the input {} does not hold the phases of an output {}",
                                     to_string(shape), to_string(output)));
  shape[0] /= product(strides);
  std::copy(output.begin(), output.end(), shape.begin() + 2);
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

Tensors define_batch_to_space(const OpCall& call, const Tensors& in) {
  const Shape shape = (*infer_batch_to_space(call))[0].shape;
  const Ints strides = call.attrs.get_ints("strides");
  return {compute("batch_to_space", dims_of(shape), [&](const Indices& at) {
    Indices source = at, phase;
    for (size_t i = 0; i < strides.size(); ++i) {
      phase.push_back(strides[i] == 1 ? int_imm(0) : at[i + 2] % strides[i]);
      if (strides[i] > 1) source[i + 2] = at[i + 2] / strides[i];
    }
    source[0] = affine(at[0], product(strides)) + flatten_index(phase, strides);
    return in[0](source);
  })};
}

// --- DepthToChannels: y[n * output + d, t * channels + c, ..] = x[n, c, d * stride + t * dilation
// - begin, ..], 0 outside.

Inferred infer_depth_to_channels(const OpCall& call) {
  for (const char* key : {"taps", "stride", "dilation", "output"}) TW_TRY(number(call, key, 1));
  TW_TRY(number(call, "begin", 0));
  const Shape& x = call.inputs[0].shape;
  if (x.size() < 4)
    return invalid(call, fmt::format("the input {} has too few axes", to_string(x)));
  Shape shape = {x[0] * call.attrs.get_int("output", 1), x[1] * call.attrs.get_int("taps", 1)};
  shape.insert(shape.end(), x.begin() + 3, x.end());
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

Tensors define_depth_to_channels(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const Shape shape = (*infer_depth_to_channels(call))[0].shape;
  auto attr = [&](const char* key) { return call.attrs.get_int(key, 1); };
  const int64_t output = attr("output"), channels = x.dim(1);
  const int64_t begin = call.attrs.get_int("begin", 0);
  const int64_t last = (output - 1) * attr("stride") + (attr("taps") - 1) * attr("dilation");
  return {compute("depth_to_channels", dims_of(shape), [&](const Indices& at) {
    const Expr d = output == 1 ? int_imm(0) : at[0] % output;
    const Expr depth =
        affine(affine(d, attr("stride")) + affine(at[1] / channels, attr("dilation")), 1, -begin);
    Indices source = {output == 1 ? at[0] : at[0] / output, at[1] % channels, depth};
    source.insert(source.end(), at.begin() + 2, at.end());
    return guarded(inside(depth, -begin, last - begin, x.dim(2)), x(source),
                   const_of(x.dtype(), 0));
  })};
}

// --- BatchToDepth: y[n, c, d, ..] = x[n * depth + d, c, ..].

Inferred infer_batch_to_depth(const OpCall& call) {
  const int64_t depth = TW_TRY(number(call, "depth", 1));
  const Shape& x = call.inputs[0].shape;
  if (x.size() < 3 || x[0] % depth != 0)
    return invalid(call, fmt::format("the input {} has no depth {}", to_string(x), depth));
  Shape shape = {x[0] / depth, x[1], depth};
  shape.insert(shape.end(), x.begin() + 2, x.end());
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

Tensors define_batch_to_depth(const OpCall& call, const Tensors& in) {
  const Shape shape = (*infer_batch_to_depth(call))[0].shape;
  return {compute("batch_to_depth", dims_of(shape), [&](const Indices& at) {
    Indices source = {affine(at[0], shape[2]) + at[2], at[1]};
    source.insert(source.end(), at.begin() + 3, at.end());
    return in[0](source);
  })};
}

}  // namespace

void add_window_move_ops(std::vector<OpDef>& table) {
  auto add = [&](const char* name, auto infer_rule, auto define) {
    table.push_back({"tilewright", name, 1, 1, Fusion::Injective, {}, infer_rule, define, ""});
  };
  add("SpaceToBatch", infer_space_to_batch, define_space_to_batch);
  add("BatchToSpace", infer_batch_to_space, define_batch_to_space);
  add("DepthToChannels", infer_depth_to_channels, define_depth_to_channels);
  add("BatchToDepth", infer_batch_to_depth, define_batch_to_depth);
}

}  // namespace tilewright::tensor
