// Convolution and its transpose, 1 to 3 spatial axes.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/counted.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

Shape spatial_of(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

Status check_conv_ranks(const OpCall& call) {
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  if (x.size() < 3 || x.size() > 5)
    return unsupported(call, "needs 1 to 3 spatial axes",
                       fmt::format("the input has shape {}", to_string(x)));
  if (w.size() != x.size())
    return invalid(
        call, fmt::format("input {} and weight {} differ in rank", to_string(x), to_string(w)));
  return {};
}

Status check_kernel_shape(const OpCall& call, const Ints& kernel) {
  const Ints stated = call.attrs.get_ints("kernel_shape");
  if (stated.empty() || stated == kernel) return {};
  return invalid(call, fmt::format("kernel_shape {} does not match the weight's {}",
                                   to_string(stated), to_string(kernel)));
}

std::vector<Dim> axes(const std::vector<std::string>& leading, const Shape& sizes,
                      const std::vector<std::string>& rest) {
  std::vector<std::string> names = leading;
  names.insert(names.end(), rest.begin(), rest.end());
  return dims_of(sizes, names);
}

/// Adds the bias over axis 1 and converts to `dtype`; `sum` itself if there is nothing to do.
Tensor finish_conv(const std::string& name, const Tensor& sum, const Tensor& bias, DType dtype) {
  if (!bias && sum.dtype() == dtype) return sum;
  return compute(name, axes({"n", "k"}, sum.shape(), spatial_names(sum.rank() - 2)),
                 [&](const Indices& at) {
                   Expr value = sum(at);
                   if (bias) value = std::move(value) + cast(sum.dtype(), bias({at[1]}));
                   return cast(dtype, std::move(value));
                 });
}

Inferred infer_conv(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(require_same_dtypes(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const Window window = TW_TRY(conv_window(call, x, w));
  TW_TRY_STATUS(require_shape(call, 2, {w[0]}));
  Shape out = {x[0], w[0]};
  out.insert(out.end(), window.output.begin(), window.output.end());
  return std::vector<TensorType>{{call.inputs[0].dtype, out}};
}

Tensors define_conv(const OpCall& call, const Tensors& in) {
  const Window window = *conv_window(call, in[0].shape(), in[1].shape());
  const DType dtype = in[0].dtype();
  const Tensor x = pad_for(window, in[0], "conv_pad", const_of(dtype, 0));
  const Tensor bias = in.size() > 2 ? in[2] : Tensor();
  const Tensor sum =
      conv_sum("conv", x, in[1], window, call.attrs.get_int("group", 1), accumulator(dtype));
  return {finish_conv("conv_bias", sum, bias, dtype)};
}

// --- Transposed convolution.

/// Splits the total padding that the wanted output asks for.
void place_output(const OpCall& call, TransposedWindow& t, size_t axis, int64_t full,
                  int64_t wanted) {
  const int64_t total = std::max<int64_t>(0, full - wanted);
  const bool upper = call.attrs.get_string("auto_pad", "NOTSET") == "SAME_UPPER";
  t.begin[axis] = upper ? total / 2 : total - total / 2;
  t.output[axis] = wanted;
}

Inferred infer_conv_transpose(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(require_same_dtypes(call));
  const TransposedWindow t = TW_TRY(transposed_window(call));
  Shape out = {call.inputs[0].shape[0], call.inputs[1].shape[1] * t.groups};
  TW_TRY_STATUS(require_shape(call, 2, {out[1]}));
  out.insert(out.end(), t.output.begin(), t.output.end());
  return std::vector<TensorType>{{call.inputs[0].dtype, out}};
}

/// Products of bytes, summed in i32.
Inferred infer_conv_transpose_integer(const OpCall& call) {
  for (size_t i = 0; i < 2; ++i)
    if (call.inputs[i].dtype != DType::I8)
      return invalid(call, fmt::format("input {} is {}, not i8", i, name(call.inputs[i].dtype)));
  const TransposedWindow t = TW_TRY(transposed_window(call));
  Shape out = {call.inputs[0].shape[0], call.inputs[1].shape[1] * t.groups};
  out.insert(out.end(), t.output.begin(), t.output.end());
  return std::vector<TensorType>{{DType::I32, out}};
}

/// The sum of acc(x) * acc(w), in type `acc`.
Tensor deconv_sum(const OpCall& call, const Tensors& in, DType acc) {
  const TransposedWindow t = *transposed_window(call);
  const DType dtype = in[0].dtype();
  const size_t rank = t.kernel.size();
  const int64_t channels = in[0].dim(1) / t.groups, per_group = in[1].dim(1);
  std::vector<AxisTaps> gathers;
  Ints begin, end;
  bool reaches_out = false;
  for (size_t i = 0; i < rank; ++i) {
    gathers.push_back(axis_taps(t, i));
    begin.push_back(std::max<int64_t>(0, -gathers[i].first));
    end.push_back(std::max<int64_t>(0, gathers[i].last - in[0].dim(i + 2) + 1));
    reaches_out |= begin[i] > 0 || end[i] > 0;
  }
  const Tensor x =
      reaches_out ? pad_tensor(in[0], "deconv_pad", begin, end, const_of(dtype, 0)) : in[0];
  Shape out = {in[0].dim(0), per_group * t.groups};
  out.insert(out.end(), t.output.begin(), t.output.end());
  Shape over = {channels};
  for (const AxisTaps& g : gathers) over.push_back(g.count);
  return reduce(
      "deconv", axes({"n", "k"}, out, spatial_names(rank)), axes({"c"}, over, tap_names(rank)),
      Combine::Add, [&](const Indices& at, const Indices& r) {
        const bool grouped = t.groups > 1;
        const Expr c = grouped ? affine(at[1] / per_group, channels) + r[0] : r[0];
        Indices source = {at[0], c}, weight = {c, grouped ? at[1] % per_group : at[1]};
        Expr valid;
        for (size_t i = 0; i < rank; ++i) {
          const Expr &h = at[i + 2], &tap = r[i + 1];
          source.push_back(affine(gathers[i].source(h, tap), 1, begin[i]));
          weight.push_back(gathers[i].tap(h, tap));
          valid = both(std::move(valid), gathers[i].valid(h, tap));
        }
        return guarded(valid, cast(acc, x(source)) * cast(acc, in[1](weight)), const_of(acc, 0));
      });
}

Tensors define_conv_transpose(const OpCall& call, const Tensors& in) {
  const DType dtype = in[0].dtype();
  const Tensor sum = deconv_sum(call, in, accumulator(dtype));
  return {finish_conv("deconv_bias", sum, in.size() > 2 ? in[2] : Tensor(), dtype)};
}

Tensors define_conv_transpose_integer(const OpCall& call, const Tensors& in) {
  return {deconv_sum(call, in, DType::I32)};
}

}  // namespace

/// Without dilation the taps that hit a given output are every stride-th one, so only those are
/// visited: kernel position (h + begin) % stride + i * stride, input (h + begin) / stride - i.
AxisTaps axis_taps(const TransposedWindow& t, size_t axis) {
  const int64_t stride = t.strides[axis], kernel = t.kernel[axis], begin = t.begin[axis];
  const int64_t dilation = t.dilations[axis], last = t.output[axis] - 1 + begin;
  AxisTaps g;
  if (dilation == 1 || stride == 1) {
    const int64_t step = stride == 1 ? dilation : 1;
    g.count = (kernel + stride - 1) / stride;
    g.first = begin / stride - (g.count - 1) * step;
    g.last = last / stride;
    g.source = [=](const Expr& h, const Expr& i) {
      const Expr shifted = affine(h, 1, begin);
      return (stride == 1 ? shifted : shifted / stride) - affine(i, step);
    };
    g.tap = [=](const Expr& h, const Expr& i) {
      return stride == 1 ? i : affine(h, 1, begin) % stride + affine(i, stride);
    };
    g.valid = [=, tap = g.tap](const Expr& h, const Expr& i) {
      return kernel % stride == 0 ? Expr() : tap(h, i) < kernel;
    };
    return g;
  }
  g.count = kernel;
  g.first = (begin - (kernel - 1) * dilation) / stride - 1;
  g.last = last / stride;
  auto scaled = [=](const Expr& h, const Expr& i) {
    return affine(h, 1, begin) - affine(i, dilation);
  };
  g.source = [=](const Expr& h, const Expr& i) { return scaled(h, i) / stride; };
  g.tap = [](const Expr&, const Expr& i) { return i; };
  g.valid = [=](const Expr& h, const Expr& i) { return eq(scaled(h, i) % stride, int_imm(0)); };
  return g;
}

Result<TransposedWindow> transposed_window(const OpCall& call) {
  TW_TRY_STATUS(check_conv_ranks(call));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const size_t rank = x.size() - 2;
  TransposedWindow t;
  t.kernel = spatial_of(w);
  TW_TRY_STATUS(check_kernel_shape(call, t.kernel));
  t.groups = call.attrs.get_int("group", 1);
  if (t.groups < 1 || w[0] != x[1] || x[1] % t.groups != 0)
    return invalid(
        call,
        fmt::format("input {}, weight {} and group {} do not fit together", to_string(x),
                    to_string(w), t.groups),
        "the weight's first extent is the number of input channels, a multiple of group");
  auto ints = [&](const char* key, size_t count, int64_t fallback) {
    Ints values = call.attrs.get_ints(key);
    return values.empty() ? Ints(count, fallback) : values;
  };
  t.strides = ints("strides", rank, 1);
  t.dilations = ints("dilations", rank, 1);
  const Ints pads = ints("pads", 2 * rank, 0), extra = ints("output_padding", rank, 0);
  Ints wanted = call.attrs.get_ints("output_shape");
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (t.strides.size() != rank || t.dilations.size() != rank || pads.size() != 2 * rank ||
      extra.size() != rank || (!wanted.empty() && wanted.size() != rank))
    return invalid(call, fmt::format("strides, dilations, pads, output_padding and output_shape "
                                     "must have entries for {} spatial axes",
                                     rank));
  if (*std::min_element(t.strides.begin(), t.strides.end()) < 1 ||
      *std::min_element(t.dilations.begin(), t.dilations.end()) < 1)
    return invalid(call, fmt::format("strides {} and dilations {} must be positive",
                                     to_string(t.strides), to_string(t.dilations)));
  t.begin.assign(rank, 0);
  t.output.assign(rank, 0);
  const std::string auto_pad = call.attrs.get_string("auto_pad", "NOTSET");
  for (size_t i = 0; i < rank; ++i) {
    const int64_t full =
        (x[i + 2] - 1) * t.strides[i] + (t.kernel[i] - 1) * t.dilations[i] + 1 + extra[i];
    if (!wanted.empty()) {
      place_output(call, t, i, full, wanted[i]);
    } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      place_output(call, t, i, full, x[i + 2] * t.strides[i]);
    } else {
      const bool valid = auto_pad == "VALID";
      t.begin[i] = valid ? 0 : pads[i];
      t.output[i] = full - (valid ? 0 : pads[i] + pads[i + rank]);
    }
    if (t.output[i] < 1)
      return invalid(
          call, fmt::format("spatial axis {} of the output would have extent {}", i, t.output[i]),
          fmt::format("input {}, stride {}, kernel {}", x[i + 2], t.strides[i], t.kernel[i]));
  }
  return t;
}

Result<Window> conv_window(const OpCall& call, const Shape& x, const Shape& w) {
  TW_TRY_STATUS(check_conv_ranks(call));
  const int64_t groups = call.attrs.get_int("group", 1);
  if (groups < 1 || x[1] % groups != 0 || w[0] % groups != 0 || w[1] != x[1] / groups)
    return invalid(
        call,
        fmt::format("input {}, weight {} and group {} do not fit together", to_string(x),
                    to_string(w), groups),
        groups < 1           ? "group must be at least 1"
        : x[1] % groups != 0 ? fmt::format("{} channels do not form {} groups", x[1], groups)
        : w[0] % groups != 0 ? fmt::format("{} filters do not form {} groups", w[0], groups)
                             : fmt::format("the weight needs {} per filter, has {}",
                                           counted(x[1] / groups, "channel"), w[1]));
  const Ints kernel = spatial_of(w);
  TW_TRY_STATUS(check_kernel_shape(call, kernel));
  return window_of(call, spatial_of(x), kernel);
}

Tensor conv_sum(const std::string& name, const Tensor& x, const Tensor& w, const Window& window,
                int64_t groups, DType acc) {
  const size_t rank = window.rank();
  const int64_t channels = w.dim(1), per_group = w.dim(0) / groups;
  Shape out = {x.dim(0), w.dim(0)};
  out.insert(out.end(), window.output.begin(), window.output.end());
  // One channel per group: the sum over channels has one term, so it gets no loop.
  const bool depthwise = groups > 1 && channels == 1;
  Shape over = window.kernel;
  std::vector<std::string> names = tap_names(rank);
  if (!depthwise) over.insert(over.begin(), channels), names.insert(names.begin(), "c");
  return reduce(
      name, axes({"n", "k"}, out, spatial_names(rank)), dims_of(over, names), Combine::Add,
      [&](const Indices& at, const Indices& r) {
        const Expr group = per_group == 1 ? at[1] : at[1] / per_group;
        const Expr c = groups == 1 ? r[0] : depthwise ? group : affine(group, channels) + r[0];
        Indices source = {at[0], c}, weight = {at[1], depthwise ? int_imm(0) : r[0]};
        for (size_t i = 0; i < rank; ++i) {
          const Expr& tap = r[i + (depthwise ? 0 : 1)];
          source.push_back(window.position(i, at[i + 2], tap));
          weight.push_back(tap);
        }
        return cast(acc, x(source)) * cast(acc, w(weight));
      });
}

void add_conv_ops(std::vector<OpDef>& table) {
  table.push_back({"", "Conv", 2, 3, Fusion::Complex, {}, infer_conv, define_conv, ""});
  table.push_back({"",
                   "ConvTranspose",
                   2,
                   3,
                   Fusion::Complex,
                   {},
                   infer_conv_transpose,
                   define_conv_transpose,
                   ""});
  table.push_back({"tilewright",
                   "ConvTransposeInteger",
                   2,
                   2,
                   Fusion::Complex,
                   {},
                   infer_conv_transpose_integer,
                   define_conv_transpose_integer,
                   ""});
}

}  // namespace tilewright::tensor
