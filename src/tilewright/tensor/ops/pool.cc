// Pools: windows over the spatial axes, and their global forms.
#include "tilewright/tensor/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/base/check.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

std::vector<Dim> out_axes(const Shape& shape) {
  std::vector<std::string> names = {"n", "c"};
  for (const std::string& name : spatial_names(shape.size() - 2)) names.push_back(name);
  return dims_of(shape, names);
}

Result<Window> pool_window(const OpCall& call) {
  const Shape& x = call.inputs[0].shape;
  if (x.size() < 3 || x.size() > 5)
    return unsupported(call, "needs 1 to 3 spatial axes",
                       fmt::format("the input has shape {}", to_string(x)));
  if (!call.attrs.has("kernel_shape"))
    return invalid(call, "the attribute kernel_shape is missing");
  return window_of(call, {x.begin() + 2, x.end()}, call.attrs.get_ints("kernel_shape"),
                   call.attrs.get_int("ceil_mode", 0) != 0);
}

Shape pooled_shape(const Shape& x, const Window& window) {
  Shape out = {x[0], x[1]};
  out.insert(out.end(), window.output.begin(), window.output.end());
  return out;
}

Indices window_source(const Window& window, const Indices& at, const Indices& taps) {
  Indices source = {at[0], at[1]};
  for (size_t i = 0; i < window.rank(); ++i)
    source.push_back(window.position(i, at[i + 2], taps[i]));
  return source;
}

std::vector<Dim> tap_axes(const Window& window) {
  return dims_of(window.kernel, tap_names(window.rank()));
}

// --- MaxPool.

Inferred infer_max_pool(const OpCall& call) {
  TW_TRY_STATUS(require_types(call, 0, Types::Number));
  const Window window = TW_TRY(pool_window(call));
  const Shape out = pooled_shape(call.inputs[0].shape, window);
  return std::vector<TensorType>{{call.inputs[0].dtype, out}, {DType::I64, out}};
}

/// Second pass: the smallest row-major position in the window that holds the maximum. Padding never
/// counts.
Tensor max_positions(const OpCall& call, const Tensor& x, const Tensor& y, const Window& window) {
  const int64_t none = std::numeric_limits<int64_t>::max();
  const Tensor first =
      reduce("max_position", out_axes(y.shape()), tap_axes(window), Combine::Min,
             [&](const Indices& at, const Indices& taps) {
               Indices source = window_source(window, at, taps);
               Expr in_range;
               for (size_t i = 0; i < window.rank(); ++i) {
                 source[i + 2] = affine(source[i + 2], 1, -window.begin[i]);
                 in_range = both(std::move(in_range),
                                 inside(source[i + 2], -window.begin[i],
                                        x.dim(i + 2) - 1 + window.reached_end(i), x.dim(i + 2)));
               }
               Expr hit = eq(x(source), y(at));
               if (is_float(x.dtype())) {
                 const Expr value = cast(compute_type(x.dtype()), x(source));
                 hit = logical_or(std::move(hit), math(MathFn::IsNan, {value}));
               }
               return select(both(std::move(in_range), std::move(hit)),
                             flatten_index(source, x.shape()), int_imm(none));
             });
  if (call.attrs.get_int("storage_order", 0) == 0) return first;
  // Column-major inside one image: the first spatial axis runs fastest.
  Shape spatial(x.shape().begin() + 2, x.shape().end());
  const int64_t image = element_count(spatial);
  return compute("indices", out_axes(y.shape()), [&](const Indices& at) {
    const Indices place = unflatten_index(first(at) % image, spatial);
    Expr flat = first(at) / image * image;
    int64_t stride = 1;
    for (size_t i = 0; i < spatial.size(); ++i) {
      flat = flat + affine(place[i], stride);
      stride *= spatial[i];
    }
    return flat;
  });
}

Tensors define_max_pool(const OpCall& call, const Tensors& in) {
  const Window window = *pool_window(call);
  const Tensor x = pad_for(window, in[0], "max_pool_pad", lowest(in[0].dtype()));
  const Tensor y = reduce(
      "max_pool", out_axes(pooled_shape(in[0].shape(), window)), tap_axes(window), Combine::Max,
      [&](const Indices& at, const Indices& taps) { return x(window_source(window, at, taps)); });
  if (call.num_outputs < 2) return {y};
  return {y, max_positions(call, in[0], y, window)};
}

// --- AveragePool, LpPool.

Inferred infer_float_pool(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  const Window window = TW_TRY(pool_window(call));
  return std::vector<TensorType>{
      {call.inputs[0].dtype, pooled_shape(call.inputs[0].shape, window)}};
}

Tensors define_average_pool(const OpCall& call, const Tensors& in) {
  const Window window = *pool_window(call);
  const DType dtype = in[0].dtype(), acc = accumulator(dtype);
  const bool include_pad = call.attrs.get_int("count_include_pad", 0) != 0;
  const Tensor x = pad_for(window, in[0], "average_pool_pad", const_of(dtype, 0));
  const std::vector<Dim> axes = out_axes(pooled_shape(in[0].shape(), window));
  const Tensor sum = reduce("average_pool_sum", axes, tap_axes(window), Combine::Add,
                            [&](const Indices& at, const Indices& taps) {
                              return cast(acc, x(window_source(window, at, taps)));
                            });
  return {compute("average_pool", axes, [&](const Indices& at) {
    const Indices spatial(at.begin() + 2, at.end());
    return cast(dtype, sum(at) / window_count(window, spatial, include_pad, acc));
  })};
}

/// |x|^p.
Expr abs_power(const Expr& x, double p) {
  if (p == 2) return x * x;
  const Expr magnitude = math(MathFn::Abs, {x});
  return p == 1 ? magnitude : math(MathFn::Pow, {magnitude, const_of(x.dtype(), p)});
}

Expr root(const Expr& x, double p) {
  if (p == 1) return x;
  if (p == 2) return math(MathFn::Sqrt, {x});
  return math(MathFn::Pow, {x, const_of(x.dtype(), 1 / p)});
}

Tensors define_lp_pool(const OpCall& call, const Tensors& in) {
  const Window window = *pool_window(call);
  const double p = call.attrs.get_float("p", 2);
  const DType dtype = in[0].dtype(), acc = accumulator(dtype);
  const Tensor x = pad_for(window, in[0], "lp_pool_pad", const_of(dtype, 0));
  const std::vector<Dim> axes = out_axes(pooled_shape(in[0].shape(), window));
  const Tensor sum = reduce("lp_pool_sum", axes, tap_axes(window), Combine::Add,
                            [&](const Indices& at, const Indices& taps) {
                              const Expr value = cast(acc, x(window_source(window, at, taps)));
                              return abs_power(value, p);
                            });
  return {
      compute("lp_pool", axes, [&](const Indices& at) { return cast(dtype, root(sum(at), p)); })};
}

// --- Global pools.

Inferred infer_global(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  Shape shape = call.inputs[0].shape;
  if (shape.size() < 2)
    return invalid(call, "needs a batch and a channel axis",
                   fmt::format("the input has shape {}", to_string(shape)));
  std::fill(shape.begin() + 2, shape.end(), 1);
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

/// One reduction over all spatial axes, then `finish`.
Tensors define_global(const std::string& name, const Tensor& x, Combine combine,
                      const std::function<Expr(const Expr&)>& term,
                      const std::function<Expr(const Expr&)>& finish) {
  const Shape spatial(x.shape().begin() + 2, x.shape().end());
  Shape out = {x.dim(0), x.dim(1)};
  out.resize(x.rank(), 1);
  const DType acc = combine == Combine::Add ? accumulator(x.dtype()) : x.dtype();
  const Tensor sum = reduce(finish ? name + "_sum" : name, out_axes(out),
                            dims_of(spatial, tap_names(spatial.size())), combine,
                            [&](const Indices& at, const Indices& r) {
                              Indices source = {at[0], at[1]};
                              source.insert(source.end(), r.begin(), r.end());
                              return term(cast(acc, x(source)));
                            });
  if (!finish) return {sum};
  return {compute(name, out_axes(out),
                  [&](const Indices& at) { return cast(x.dtype(), finish(sum(at))); })};
}

Tensors define_global_average(const OpCall&, const Tensors& in) {
  const Shape spatial(in[0].shape().begin() + 2, in[0].shape().end());
  const auto count = static_cast<double>(element_count(spatial));
  return define_global(
      "global_average_pool", in[0], Combine::Add, [](const Expr& x) { return x; },
      [&](const Expr& sum) { return sum / const_of(sum.dtype(), count); });
}

Tensors define_global_max(const OpCall&, const Tensors& in) {
  return define_global("global_max_pool", in[0], Combine::Max, [](const Expr& x) { return x; }, {});
}

Tensors define_global_lp(const OpCall& call, const Tensors& in) {
  const double p = call.attrs.get_float("p", 2);
  return define_global(
      "global_lp_pool", in[0], Combine::Add, [&](const Expr& x) { return abs_power(x, p); },
      [&](const Expr& sum) { return root(sum, p); });
}

// --- MaxUnpool: the inverse of MaxPool with positions.

Inferred infer_max_unpool(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  TW_TRY_STATUS(require_types(call, 1, Types::Int));
  TW_TRY_STATUS(require_shape(call, 1, call.inputs[0].shape));
  const Shape& x = call.inputs[0].shape;
  const auto kernel = call.attrs.get_ints("kernel_shape");
  if (x.size() < 3 || x.size() > 5 || kernel.size() + 2 != x.size())
    return invalid(call, fmt::format("kernel_shape {} does not fit the input {}", to_string(kernel),
                                     to_string(x)));
  Shape out = {x[0], x[1]};
  const std::vector<int64_t> strides =
      call.attrs.get_ints("strides", std::vector<int64_t>(kernel.size(), 1));
  const std::vector<int64_t> pads =
      call.attrs.get_ints("pads", std::vector<int64_t>(2 * kernel.size(), 0));
  if (strides.size() != kernel.size() || pads.size() != 2 * kernel.size())
    return invalid(call, fmt::format("strides or pads do not fit {} spatial axes", kernel.size()));
  for (size_t i = 0; i < kernel.size(); ++i)
    out.push_back((x[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + kernel.size()]);
  if (call.input(2)) {
    const Shape wanted = int_values(call, 2);
    if (wanted.size() != x.size())
      return invalid(call,
                     fmt::format("output_shape {} needs {} entries", to_string(wanted), x.size()));
    for (size_t i = 0; i < x.size(); ++i)  // positions count in the tensor the pool has read
      if (wanted[i] < out[i])
        return invalid(call, fmt::format("output_shape {} is too small", to_string(wanted)),
                       fmt::format("the pool has read {}", to_string(out)));
    out = wanted;
  }
  for (const int64_t extent : out)
    if (extent < 0) return invalid(call, fmt::format("the output would be {}", to_string(out)));
  return std::vector<TensorType>{{call.inputs[0].dtype, out}};
}

/// out[unflatten(positions[i])] = max of the x[i] that name it; the lowest number elsewhere.
Tensor scatter_max(const Tensor& x, const Tensor& positions, const Shape& counted,
                   const Shape& shape) {
  std::vector<Expr> extents;
  for (const int64_t d : shape) extents.push_back(int_imm(d));
  const Buffer out("scatter", x.dtype(), extents);
  auto nest = [&](const std::string& name, const Shape& over, IterKind kind, auto store) {
    Block block{name, {}, Expr(), {}, Stmt()};
    Indices at;
    std::vector<Var> loops;
    for (size_t i = 0; i < over.size(); ++i) {
      const std::string axis = "i" + std::to_string(i);
      const Var var(axis);
      loops.emplace_back(name + "." + axis);
      block.iters.push_back({var, kind, int_imm(over[i]), ref(loops[i])});
      at.push_back(ref(var));
    }
    block.body = store(at);
    Stmt s = make(std::move(block));
    for (size_t i = over.size(); i-- > 0;)
      s = make(For{loops[i], int_imm(over[i]), ForKind::Serial, "", {}, s});
    return s;
  };
  const Stmt clear = nest("scatter.init", shape, IterKind::Space, [&](const Indices& at) {
    return make(Store{out, at, lowest(x.dtype()), Combine::Set});
  });
  const Stmt update = nest("scatter", x.shape(), IterKind::Reduce, [&](const Indices& at) {
    const Expr last = int_imm(std::max<int64_t>(element_count(counted) - 1, 0));
    const Expr place = min(max(cast(DType::I64, positions(at)), int_imm(0)), last);
    return make(Store{out, unflatten_index(place, counted), x(at), Combine::Max});
  });
  return raw({out}, seq({clear, update}))[0];
}

Tensors define_max_unpool(const OpCall& call, const Tensors& in) {
  const Shape shape = (*infer_max_unpool(call))[0].shape;
  // Positions count in the tensor the pool has read: output_shape may be larger.
  OpCall natural = call;
  natural.inputs.resize(2);
  const Shape pooled = (*infer_max_unpool(natural))[0].shape;
  const Tensor &x = in[0], &positions = in[1];
  // Overlapping windows may name an element several times, always with its own value.
  const Tensor sparse = scatter_max(x, positions, pooled, shape);
  const Expr none = lowest(x.dtype());
  return {compute("max_unpool", out_axes(shape), [&](const Indices& at) {
    return select(eq(sparse(at), none), const_of(x.dtype(), 0), sparse(at));
  })};
}

}  // namespace

Expr window_count(const Window& window, const Indices& spatial, bool include_pad, DType dtype) {
  double constant_part = 1;
  Expr count;
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t step = window.strides[i], gap = window.dilations[i], k = window.kernel[i];
    const int64_t lo = include_pad ? 0 : window.begin[i];
    const int64_t hi = window.begin[i] + window.input[i] + (include_pad ? window.end[i] : 0);
    const int64_t reach = (window.output[i] - 1) * step + (k - 1) * gap + 1;
    if (lo == 0 && reach <= hi) {
      constant_part *= static_cast<double>(k);
      continue;
    }
    // Taps t with lo <= start + t * gap < hi.
    const Expr start = affine(spatial[i], step);
    const Expr past = min((int_imm(hi + gap - 1) - start) / gap, int_imm(k));
    const Expr first = max((int_imm(lo + gap - 1) - start) / gap, int_imm(0));
    const Expr here = lo == 0 ? past : past - first;
    count = count ? count * here : here;
  }
  const Expr factor = const_of(dtype, constant_part);
  if (!count) return factor;
  const Expr converted = cast(dtype, count);
  return constant_part == 1 ? converted : converted * factor;
}

void add_pool_ops(std::vector<OpDef>& table) {
  const Fusion pool = Fusion::Reduction;
  table.push_back({"", "MaxPool", 1, 1, pool, {}, infer_max_pool, define_max_pool, ""});
  table.push_back({"", "AveragePool", 1, 1, pool, {}, infer_float_pool, define_average_pool, ""});
  table.push_back({"", "LpPool", 1, 1, pool, {}, infer_float_pool, define_lp_pool, ""});
  table.push_back(
      {"", "GlobalAveragePool", 1, 1, pool, {}, infer_global, define_global_average, ""});
  table.push_back({"", "GlobalMaxPool", 1, 1, pool, {}, infer_global, define_global_max, ""});
  table.push_back({"", "GlobalLpPool", 1, 1, pool, {}, infer_global, define_global_lp, ""});
  table.push_back(
      {"", "MaxUnpool", 2, 3, Fusion::Opaque, {2}, infer_max_unpool, define_max_unpool, ""});
}

}  // namespace tilewright::tensor
