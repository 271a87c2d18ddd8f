// Normalisations and the softmax family. All arithmetic of f16 and bf16 inputs is done in f32 (or
// the stated stash type) and rounded once at the end.
#include <algorithm>
#include <numeric>

#include "tilewright/base/check.h"
#include "tilewright/tensor/op.h"
#include "tilewright/tensor/reduce_util.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

Expr inverse_root(const Expr& x) { return num(x, 1) / math(MathFn::Sqrt, {x}); }

Result<int64_t> axis_of(const OpCall& call, int64_t fallback) {
  auto axis = normalize_axis(call.attrs.get_int("axis", fallback), call.inputs[0].shape.size());
  if (!axis) return invalid(call, axis.error().what, axis.error().why);
  return *axis;
}

Ints range(size_t begin, size_t end) {
  Ints out(end - begin);
  std::iota(out.begin(), out.end(), static_cast<int64_t>(begin));
  return out;
}

Inferred same_as_input(const OpCall& call) {
  return std::vector<TensorType>{{call.inputs[0].dtype, call.inputs[0].shape}};
}

/// Input `i` must hold one value per channel (axis 1).
Status require_channels(const OpCall& call, size_t i) {
  return require_shape(call, i, {call.inputs[0].shape[1]});
}

Status require_channel_axis(const OpCall& call) {
  if (call.inputs[0].shape.size() >= 2) return {};
  return invalid(call, "needs a batch and a channel axis",
                 fmt::format("the input has shape {}", to_string(call.inputs[0].shape)));
}

// --- Softmax, LogSoftmax, Hardmax.

Inferred infer_softmax(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY(axis_of(call, -1));
  return same_as_input(call);
}

Tensors define_softmax(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const bool logarithm = call.op == "LogSoftmax";
  const DType wide = compute_type(x.dtype());
  const Axes axes(x.shape(), {*axis_of(call, -1)});
  const std::vector<Dim> dims = dims_of(x.shape());
  const Tensor largest = reduce_axes("softmax_max", x, axes, true, Combine::Max,
                                     [&](const Expr& e, const Indices&) { return cast(wide, e); });
  auto shifted = [&](const Indices& at) { return cast(wide, x(at)) - broadcast_load(largest, at); };
  const Tensor exps = compute("softmax_exp", dims,
                              [&](const Indices& at) { return math(MathFn::Exp, {shifted(at)}); });
  const Tensor sum = reduce_axes("softmax_sum", exps, axes, true, Combine::Add,
                                 [](const Expr& e, const Indices&) { return e; });
  return {compute(tensor_name(call), dims, [&](const Indices& at) {
    const Expr total = broadcast_load(sum, at);
    return cast(x.dtype(), logarithm ? shifted(at) - math(MathFn::Log, {total}) : exps(at) / total);
  })};
}

Tensors define_hardmax(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const int64_t axis = *axis_of(call, -1);
  const Tensor first = arg_extreme("hardmax_position", x, axis, true, true, false);
  return {compute("hardmax", dims_of(x.shape()), [&](const Indices& at) {
    return select(eq(at[static_cast<size_t>(axis)], broadcast_load(first, at)),
                  const_of(x.dtype(), 1), const_of(x.dtype(), 0));
  })};
}

// --- BatchNormalization.

Inferred infer_batch_norm(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  const Shape& x = call.inputs[0].shape;
  // A vector is a batch of one-channel samples.
  const int64_t channels = x.size() < 2 ? 1 : x[1];
  for (size_t i = 1; i < 5; ++i) {
    TW_TRY_STATUS(require_float(call, i));
    TW_TRY_STATUS(require_shape(call, i, {channels}));
  }
  std::vector<TensorType> out = {{call.inputs[0].dtype, x}};
  if (call.attrs.get_int("training_mode", 0) != 0) {
    out.push_back({call.inputs[3].dtype, {channels}});
    out.push_back({call.inputs[4].dtype, {channels}});
  }
  return out;
}

/// (x - mean) * factor + bias, all per channel.
Tensor scale_channels(const OpCall& call, const Tensor& x, const Tensor& mean, const Tensor& factor,
                      const Tensor& bias) {
  const DType wide = factor.dtype();
  return compute(tensor_name(call), dims_of(x.shape()), [&](const Indices& at) {
    const Indices c = {at.size() < 2 ? int_imm(0) : at[1]};
    const Expr centred = cast(wide, x(at)) - cast(wide, mean(c));
    return cast(x.dtype(), centred * factor(c) + cast(wide, bias(c)));
  });
}

/// Running statistics: old * momentum + current * (1 - momentum).
Tensor blend(const std::string& name, const Tensor& old, const Tensor& current, double momentum) {
  const DType wide = current.dtype();
  return compute(name, {{"c", old.dim(0)}}, [&](const Indices& at) {
    const Expr value =
        cast(wide, old(at)) * const_of(wide, momentum) + current(at) * const_of(wide, 1 - momentum);
    return cast(old.dtype(), value);
  });
}

Tensors define_batch_norm(const OpCall& call, const Tensors& in) {
  const Tensor &x = in[0], &scale = in[1], &bias = in[2];
  const DType wide = compute_type(x.dtype());
  const bool training = call.attrs.get_int("training_mode", 0) != 0;
  Tensor mean = in[3], variance = in[4];
  if (training) {
    Ints others = range(0, x.rank());
    if (x.rank() >= 2) others.erase(others.begin() + 1);
    const Moments m = moments("batch", x, Axes(x.shape(), others), wide);
    auto per_channel = [&](const std::string& name, const Tensor& t) {
      return compute(name, {{"c", in[3].dim(0)}}, [&](const Indices& at) {
        Indices source(x.rank(), int_imm(0));
        if (x.rank() >= 2) source[1] = at[0];
        return t(source);
      });
    };
    mean = per_channel("current_mean", m.mean);
    variance = per_channel("current_variance", m.variance);
  }
  const Tensor factor = compute("batch_norm_factor", {{"c", scale.dim(0)}}, [&](const Indices& c) {
    const Expr shifted =
        cast(wide, variance(c)) + const_of(wide, call.attrs.get_float("epsilon", 1e-5));
    return cast(wide, scale(c)) / math(MathFn::Sqrt, {shifted});
  });
  Tensors out = {scale_channels(call, x, mean, factor, bias)};
  if (training) {
    const double momentum = call.attrs.get_float("momentum", 0.9);
    out.push_back(blend("running_mean", in[3], mean, momentum));
    out.push_back(blend("running_variance", in[4], variance, momentum));
  }
  return out;
}

// --- InstanceNormalization, GroupNormalization.

Inferred infer_instance_norm(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(require_same_dtypes(call));
  TW_TRY_STATUS(require_channel_axis(call));
  TW_TRY_STATUS(require_channels(call, 1));
  TW_TRY_STATUS(require_channels(call, 2));
  if (call.op == "GroupNormalization") {
    const int64_t groups = call.attrs.get_int("num_groups", 0);
    const int64_t channels = call.inputs[0].shape[1];
    if (groups < 1 || channels % groups != 0)
      return invalid(call, fmt::format("{} channels do not form {} groups", channels, groups));
  }
  return same_as_input(call);
}

/// Moments over each group of `per_group` channels and all positions, as [n, groups].
Moments group_moments(const Tensor& x, int64_t groups, DType wide) {
  const int64_t per_group = x.dim(1) / groups;
  const Shape spatial(x.shape().begin() + 2, x.shape().end());
  const double count = static_cast<double>(per_group * element_count(spatial));
  std::vector<Dim> over = {{"c", per_group}};
  for (const Dim& dim : dims_of(spatial)) over.push_back(dim);
  const std::vector<Dim> space = {{"n", x.dim(0)}, {"g", groups}};
  auto value = [&](const Indices& at, const Indices& r) {
    Indices source = {at[0], per_group == 1 ? at[1] : affine(at[1], per_group) + r[0]};
    source.insert(source.end(), r.begin() + 1, r.end());
    return cast(wide, x(source));
  };
  auto divided = [&](const std::string& name, const Tensor& sum) {
    return compute(name, space, [&](const Indices& at) { return sum(at) / const_of(wide, count); });
  };
  const Tensor mean = divided("group_mean", reduce("group_sum", space, over, Combine::Add, value));
  const Tensor squares =
      reduce("group_squares", space, over, Combine::Add, [&](const Indices& at, const Indices& r) {
        const Expr d = value(at, r) - mean(at);
        return d * d;
      });
  return {mean, divided("group_variance", squares)};
}

Tensors define_group_norm(const OpCall& call, const Tensors& in) {
  const Tensor &x = in[0], &scale = in[1], &bias = in[2];
  const bool instance = call.op == "InstanceNormalization";
  const int64_t groups = instance ? x.dim(1) : call.attrs.get_int("num_groups", 1);
  const int64_t per_group = x.dim(1) / groups;
  const DType wide = compute_type(x.dtype());
  const Moments m = group_moments(x, groups, wide);
  const Expr epsilon = const_of(wide, call.attrs.get_float("epsilon", 1e-5));
  const Tensor inverse =
      compute("group_inverse", {{"n", x.dim(0)}, {"g", groups}},
              [&](const Indices& at) { return inverse_root(m.variance(at) + epsilon); });
  return {compute(tensor_name(call), dims_of(x.shape()), [&](const Indices& at) {
    const Indices group = {at[0], per_group == 1 ? at[1] : at[1] / per_group};
    const Expr normal = (cast(wide, x(at)) - m.mean(group)) * inverse(group);
    return cast(x.dtype(), normal * cast(wide, scale({at[1]})) + cast(wide, bias({at[1]})));
  })};
}

// --- LayerNormalization, RMSNormalization.

Result<DType> stash_type(const OpCall& call) {
  auto dtype = onnx_dtype(call.attrs.get_int("stash_type", 1));
  if (!dtype || !is_float(*dtype))
    return unsupported(call, fmt::format("stash_type {} is no floating-point type",
                                         call.attrs.get_int("stash_type", 1)));
  return *dtype;
}

Status require_broadcastable(const OpCall& call, size_t i) {
  const InputInfo* in = call.input(i);
  if (in == nullptr) return {};
  const Shape& x = call.inputs[0].shape;
  const auto shape = broadcast(in->shape, x);
  if (shape && *shape == x) return {};
  return invalid(call, fmt::format("input {} of shape {} does not broadcast to {}", i,
                                   to_string(in->shape), to_string(x)));
}

Inferred infer_layer_norm(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    TW_TRY_STATUS(require_float(call, i));
    TW_TRY_STATUS(require_broadcastable(call, i));
  }
  const Shape& shape = call.inputs[0].shape;
  const auto axis = static_cast<size_t>(TW_TRY(axis_of(call, -1)));
  const DType stash = TW_TRY(stash_type(call));
  if (call.op == "RMSNormalization") return std::vector<TensorType>{{call.inputs[1].dtype, shape}};
  const Shape kept = Axes(shape, range(axis, shape.size())).output(true);
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}, {stash, kept}, {stash, kept}};
}

Tensors define_layer_norm(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const DType stash = *stash_type(call), wide = compute_type(stash);
  const Axes axes(x.shape(), range(static_cast<size_t>(*axis_of(call, -1)), x.rank()));
  const Moments m = moments("layer", x, axes, wide);
  const std::vector<Dim> kept = dims_of(axes.output(true));
  const Expr epsilon = const_of(wide, call.attrs.get_float("epsilon", 1e-5));
  const Tensor inverse = compute("layer_inverse", kept, [&](const Indices& at) {
    return inverse_root(m.variance(at) + epsilon);
  });
  const Tensor y = compute("layer_normalization", dims_of(x.shape()), [&](const Indices& at) {
    const Expr centred = cast(wide, x(at)) - broadcast_load(m.mean, at);
    Expr value = centred * broadcast_load(inverse, at) * cast(wide, element(call, in, 1, at));
    if (call.input(2)) value = value + cast(wide, element(call, in, 2, at));
    return cast(x.dtype(), value);
  });
  if (stash == wide) return {y, m.mean, inverse};
  auto rounded = [&](const std::string& name, const Tensor& t) {
    return compute(name, kept, [&](const Indices& at) { return cast(stash, t(at)); });
  };
  return {y, rounded("mean", m.mean), rounded("inv_std_dev", inverse)};
}

Tensors define_rms_norm(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const DType wide = compute_type(*stash_type(call));
  const Axes axes(x.shape(), range(static_cast<size_t>(*axis_of(call, -1)), x.rank()));
  const Tensor squares =
      reduce_axes("rms_squares", x, axes, true, Combine::Add,
                  [&](const Expr& e, const Indices&) { return cast(wide, e) * cast(wide, e); });
  const Tensor inverse = compute("rms_inverse", dims_of(axes.output(true)), [&](const Indices& at) {
    const Expr mean = squares(at) / const_of(wide, static_cast<double>(axes.count()));
    return inverse_root(mean + const_of(wide, call.attrs.get_float("epsilon", 1e-5)));
  });
  return {compute("rms_normalization", dims_of(x.shape()), [&](const Indices& at) {
    const Expr normal = cast(wide, x(at)) * broadcast_load(inverse, at);
    return cast(in[1].dtype(), normal * cast(wide, element(call, in, 1, at)));
  })};
}

// --- LRN, LpNormalization, MeanVarianceNormalization.

Inferred infer_lrn(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(require_channel_axis(call));
  if (const int64_t size = call.attrs.get_int("size", 0); size < 1)
    return invalid(call, fmt::format("size is {}", size), "it counts channels to sum over");
  return same_as_input(call);
}

/// `x` divided by the power of the mean of its neighbours' squares.
Expr scaled_by_squares(const OpCall& call, const Expr& x, const Expr& sum) {
  const DType wide = compute_type(x.dtype());
  const double alpha =
      call.attrs.get_float("alpha", 1e-4) / static_cast<double>(call.attrs.get_int("size", 1));
  const double beta = call.attrs.get_float("beta", 0.75), bias = call.attrs.get_float("bias", 1);
  const Expr base = const_of(wide, bias) + const_of(wide, alpha) * sum;
  const Expr value = cast(wide, x);
  if (bias <= 0 || alpha < 0)
    return cast(x.dtype(), value / math(MathFn::Pow, {base, const_of(wide, beta)}));
  // The base is positive: its power has a form that runs in vectors.
  const Expr scale = math(MathFn::Exp, {const_of(wide, -beta) * math(MathFn::Log, {base})});
  return cast(x.dtype(), value * scale);
}

Tensors define_lrn(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const DType wide = compute_type(x.dtype());
  const int64_t size = call.attrs.get_int("size", 1), below = (size - 1) / 2;
  const std::vector<Dim> dims = dims_of(x.shape());
  const Tensor sum = reduce(
      "lrn_sum", dims, {{"t", size}}, Combine::Add, [&](const Indices& at, const Indices& r) {
        Indices source = at;
        source[1] = affine(at[1] + r[0], 1, -below);
        const Expr value = cast(wide, x(source));
        return guarded(inside(source[1], -below, x.dim(1) - 1 + size, x.dim(1)), value * value,
                       const_of(wide, 0));
      });
  return {compute("lrn", dims,
                  [&](const Indices& at) { return scaled_by_squares(call, x(at), sum(at)); })};
}

Inferred infer_lrn_blocked(const OpCall& call) {
  if (call.inputs[0].shape.size() < 4)
    return invalid(call,
                   fmt::format("the input {} is not blocked", to_string(call.inputs[0].shape)));
  const Shape& x = call.inputs[0].shape;
  const int64_t room = x[1] * x.back(), channels = call.attrs.get_int("channels", room);
  if (channels > room || channels <= room - x.back())
    return invalid(
        call, fmt::format("{} channels do not make {} blocks of {}", channels, x[1], x.back()));
  return infer_lrn(call);
}

/// The same on blocks of channels. The squares of a pixel lie side by side, with a block of zeros
/// before and behind them, so that neighbours are loads and not lanes of other vectors. Lanes that
/// fill up the last of `channels` may hold anything finite: they are nobody's neighbours.
Tensors define_lrn_blocked(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const DType wide = compute_type(x.dtype());
  const int64_t size = call.attrs.get_int("size", 1), below = (size - 1) / 2;
  const int64_t block = x.shape().back(), blocks = x.dim(1);
  const int64_t margin = (size / 2 + block - 1) / block;
  const int64_t channels = call.attrs.get_int("channels", blocks * block);
  Shape shape(x.shape().begin(), x.shape().end() - 1);
  shape.erase(shape.begin() + 1);
  shape.push_back((blocks + 2 * margin) * block);
  const Tensor squares = compute("lrn_squares", dims_of(shape), [&](const Indices& at) {
    Indices source(at.begin(), at.end() - 1);
    const Expr from = affine(at.back() / block, 1, -margin);
    source.insert(source.begin() + 1, from);
    source.push_back(at.back() % block);
    const Expr value = cast(wide, x(source)), zero = const_of(wide, 0);
    Expr square = value * value;
    if (channels < blocks * block)
      square = guarded(affine(from, block) + source.back() < channels, square, zero);
    return guarded(inside(from, -margin, blocks - 1 + margin, blocks), square, zero);
  });
  const std::vector<Dim> dims = dims_of(x.shape());
  const Tensor sum = reduce(
      "lrn_sum", dims, {{"t", size}}, Combine::Add, [&](const Indices& at, const Indices& r) {
        Indices source(at.begin(), at.end() - 1);
        source.erase(source.begin() + 1);
        source.push_back(affine(at[1], block, margin * block - below) + at.back() + r[0]);
        return squares(source);
      });
  return {compute("lrn", dims,
                  [&](const Indices& at) { return scaled_by_squares(call, x(at), sum(at)); })};
}

Inferred infer_lp_norm(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY(axis_of(call, -1));
  if (const int64_t p = call.attrs.get_int("p", 2); p != 1 && p != 2)
    return unsupported(call, fmt::format("p is {}", p), "only 1 and 2 are defined");
  return same_as_input(call);
}

Tensors define_lp_norm(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const DType wide = compute_type(x.dtype());
  const bool first = call.attrs.get_int("p", 2) == 1;
  const Axes axes(x.shape(), {*axis_of(call, -1)});
  const Tensor sum =
      reduce_axes("lp_sum", x, axes, true, Combine::Add, [&](const Expr& e, const Indices&) {
        const Expr value = cast(wide, e);
        return first ? math(MathFn::Abs, {value}) : value * value;
      });
  return {compute("lp_normalization", dims_of(x.shape()), [&](const Indices& at) {
    const Expr total = broadcast_load(sum, at), zero = const_of(wide, 0);
    const Expr norm = first ? total : math(MathFn::Sqrt, {total});
    return cast(x.dtype(), select(eq(total, zero), zero, cast(wide, x(at)) / norm));
  })};
}

Result<Ints> mvn_axes(const OpCall& call) {
  auto axes = normalize_axes(call.attrs.get_ints("axes", {0, 2, 3}), call.inputs[0].shape.size());
  if (!axes) return invalid(call, axes.error().what, axes.error().why);
  return *axes;
}

Inferred infer_mvn(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY(mvn_axes(call));
  return same_as_input(call);
}

Tensors define_mvn(const OpCall& call, const Tensors& in) {
  const Tensor& x = in[0];
  const DType wide = compute_type(x.dtype());
  const Moments m = moments("mvn", x, Axes(x.shape(), *mvn_axes(call)), wide);
  return {compute("mean_variance_normalization", dims_of(x.shape()), [&](const Indices& at) {
    const Expr centred = cast(wide, x(at)) - broadcast_load(m.mean, at);
    // The small number keeps constant inputs at zero; it is the one of ONNX's function body.
    const Expr deviation =
        math(MathFn::Sqrt, {broadcast_load(m.variance, at)}) + const_of(wide, 1e-9);
    return cast(x.dtype(), centred / deviation);
  })};
}

}  // namespace

void add_norm_ops(std::vector<OpDef>& table) {
  const Fusion kind = Fusion::Reduction;
  table.push_back({"", "Softmax", 1, 1, kind, {}, infer_softmax, define_softmax, ""});
  table.push_back({"", "LogSoftmax", 1, 1, kind, {}, infer_softmax, define_softmax, ""});
  table.push_back({"", "Hardmax", 1, 1, kind, {}, infer_softmax, define_hardmax, ""});
  table.push_back({"",
                   "BatchNormalization",
                   5,
                   5,
                   Fusion::Injective,
                   {},
                   infer_batch_norm,
                   define_batch_norm,
                   ""});
  table.push_back(
      {"", "InstanceNormalization", 3, 3, kind, {}, infer_instance_norm, define_group_norm, ""});
  table.push_back(
      {"", "GroupNormalization", 3, 3, kind, {}, infer_instance_norm, define_group_norm, ""});
  table.push_back(
      {"", "LayerNormalization", 2, 3, kind, {}, infer_layer_norm, define_layer_norm, ""});
  table.push_back({"", "RMSNormalization", 2, 2, kind, {}, infer_layer_norm, define_rms_norm, ""});
  table.push_back({"", "LRN", 1, 1, kind, {}, infer_lrn, define_lrn, ""});
  table.push_back(
      {"tilewright", "LRNBlocked", 1, 1, kind, {}, infer_lrn_blocked, define_lrn_blocked, ""});
  table.push_back({"", "LpNormalization", 1, 1, kind, {}, infer_lp_norm, define_lp_norm, ""});
  table.push_back({"", "MeanVarianceNormalization", 1, 1, kind, {}, infer_mvn, define_mvn, ""});
}

}  // namespace tilewright::tensor
