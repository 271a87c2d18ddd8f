// GridSample and AffineGrid: sampling at places computed at run time. source: ONNX operator
// definitions, GridSample 22 and AffineGrid 20.
#include <algorithm>
#include <functional>

#include "tilewright/base/check.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

enum class Padding { Zeros, Border, Reflection };

struct GridMode {
  int64_t taps = 2;  ///< per axis: 1 nearest, 2 linear, 4 cubic
  Padding padding = Padding::Zeros;
  bool align = false;
};

Result<GridMode> grid_mode(const OpCall& call) {
  GridMode m;
  const std::string mode = call.attrs.get_string("mode", "linear");
  const std::string padding = call.attrs.get_string("padding_mode", "zeros");
  // Version 16 said bilinear and bicubic.
  if (mode == "nearest")
    m.taps = 1;
  else if (mode == "cubic" || mode == "bicubic")
    m.taps = 4;
  else if (mode != "linear" && mode != "bilinear")
    return invalid(call, fmt::format("mode is '{}'", mode), "expected nearest, linear or cubic");
  if (padding == "border")
    m.padding = Padding::Border;
  else if (padding == "reflection")
    m.padding = Padding::Reflection;
  else if (padding != "zeros")
    return invalid(call, fmt::format("padding_mode is '{}'", padding),
                   "expected zeros, border or reflection");
  m.align = call.attrs.get_int("align_corners", 0) != 0;
  return m;
}

Inferred infer_grid_sample(const OpCall& call) {
  TW_TRY(grid_mode(call));
  const Shape& x = call.inputs[0].shape;
  const Shape& grid = call.inputs[1].shape;
  TW_TRY_STATUS(require_float(call, 1));
  const auto axes = static_cast<int64_t>(x.size()) - 2;
  if (axes < 1 || grid.size() != x.size() || grid[0] != x[0] || grid.back() != axes)
    return invalid(call, "the grid does not fit the input",
                   fmt::format("input {}, grid {}", to_string(x), to_string(grid)));
  if (std::count(x.begin() + 2, x.end(), 0) > 0)
    return invalid(call, "the input is empty", "its shape is " + to_string(x));
  Shape shape{x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return one_output(call, call.inputs[0].dtype, shape);
}

/// Mirrors `x` at `lo` and `hi` until it lies between them.
Expr reflect(const Expr& x, const Expr& lo, const Expr& span) {
  const Expr phase = (x - lo) % (span + span);
  return lo + min(phase, span + span - phase);
}

/// The pixel coordinate of the normalised coordinate `x` on an axis of `extent`.
Expr pixel_coordinate(const GridMode& m, const Expr& normalised, int64_t extent) {
  const DType t = normalised.dtype();
  auto num = [&](double v) { return float_imm(v, t); };
  const auto n = static_cast<double>(extent);
  Expr x = m.align ? (normalised + num(1)) * num((n - 1) / 2)
                   : ((normalised + num(1)) * num(n) - num(1)) * num(0.5);
  if (m.taps == 1) x = math(MathFn::Round, {x});
  const double lo = m.align ? 0 : -0.5, hi = m.align ? n - 1 : n - 0.5;
  const Expr outside = logical_or(x<num(lo), x> num(hi));
  // Cubic samples beyond the border still mix the pixels near it, as in PyTorch.
  if (m.padding == Padding::Border && m.taps != 4)
    return select(outside, min(max(x, num(0)), num(n - 1)), x);
  if (m.padding == Padding::Reflection)
    return select(outside, hi > lo ? reflect(x, num(lo), num(hi - lo)) : num(0), x);
  return x;
}

/// The element an integer position names; -1 where zeros are read.
Expr pixel_place(const GridMode& m, const Expr& position, int64_t extent) {
  if (m.padding == Padding::Zeros) {
    const Expr fits = logical_and(position >= 0, position < extent);
    return select(fits, position, int_imm(-1));
  }
  if (m.padding == Padding::Border || extent == 1)
    return min(max(position, int_imm(0)), int_imm(extent - 1));
  const int64_t period = m.align ? 2 * (extent - 1) : 2 * extent;
  const Expr phase = position % period;
  return min(phase, int_imm(m.align ? period : period - 1) - phase);
}

/// Weight of tap `k` when the sample lies `f` behind the tap before it.
Expr tap_weight(const GridMode& m, const Expr& f, int64_t k) {
  const DType t = f.dtype();
  auto num = [&](double v) { return float_imm(v, t); };
  if (m.taps == 2) return k == 0 ? num(1) - f : f;
  constexpr double a = -0.75;
  const Expr d = k == 0 ? f + num(1) : k == 1 ? f : k == 2 ? num(1) - f : num(2) - f;
  if (k == 1 || k == 2) return ((num(a + 2) * d - num(a + 3)) * d) * d + num(1);
  return ((num(a) * d - num(5 * a)) * d + num(8 * a)) * d - num(4 * a);
}

/// Where and how strongly one spatial axis is read, for every sample: [n, out..., tap].
struct AxisSamples {
  Tensor place, weight;
};

AxisSamples axis_samples(const OpCall& call, const GridMode& m, const Tensor& grid, int64_t axis,
                         int64_t extent, DType acc) {
  Shape shape(grid.shape().begin(), grid.shape().end() - 1);
  const std::string name_of = call.op + "." + std::to_string(axis);
  // The last axis of the grid counts spatial axes from the innermost.
  const int64_t component = grid.shape().back() - 1 - axis;
  const Tensor at_pixel = compute(name_of + ".at", dims_of(shape), [&](const Indices& at) {
    Indices where = at;
    where.push_back(int_imm(component));
    return pixel_coordinate(m, cast(acc, grid(where)), extent);
  });
  Shape with_taps = shape;
  with_taps.push_back(m.taps);
  AxisSamples out;
  out.place = compute(name_of + ".place", dims_of(with_taps), [&](const Indices& at) {
    const Expr first =
        cast(DType::I64, math(MathFn::Floor, {at_pixel({at.begin(), at.end() - 1})}));
    return pixel_place(m, affine(first + at.back(), 1, m.taps == 4 ? -1 : 0), extent);
  });
  if (m.taps == 1) return out;
  out.weight = compute(name_of + ".weight", dims_of(with_taps), [&](const Indices& at) {
    const Expr x = at_pixel({at.begin(), at.end() - 1});
    const Expr f = x - math(MathFn::Floor, {x});
    Expr value = tap_weight(m, f, m.taps - 1);
    for (int64_t k = m.taps - 1; k-- > 0;)
      value = select(eq(at.back(), int_imm(k)), tap_weight(m, f, k), value);
    return value;
  });
  return out;
}

std::vector<Tensor> define_grid_sample(const OpCall& call, const std::vector<Tensor>& in) {
  const GridMode m = *grid_mode(call);
  const Tensor &x = in[0], &grid = in[1];
  const DType dtype = x.dtype();
  const DType acc = dtype == DType::F64 ? dtype : DType::F32;
  const auto axes = static_cast<int64_t>(x.rank()) - 2;
  std::vector<AxisSamples> samples;
  for (int64_t axis = 0; axis < axes; ++axis)
    samples.push_back(axis_samples(call, m, grid, axis, x.dim(static_cast<size_t>(axis) + 2), acc));
  std::vector<Dim> space = dims_of((*infer(call))[0].shape, {"n", "c"});
  auto value = [&](const Indices& at, const Indices& taps) {
    Indices from{at[0], at[1]};
    Expr weight, fits;
    for (size_t i = 0; i < samples.size(); ++i) {
      Indices where = at;
      where.erase(where.begin() + 1);
      where.push_back(taps[i]);
      from.push_back(samples[i].place(where));
      if (m.padding == Padding::Zeros) fits = both(fits, from.back() >= 0);
      if (!samples[i].weight) continue;
      const Expr w = samples[i].weight(where);
      weight = weight ? weight * w : w;
    }
    Expr pixel = guarded(fits, x(from), const_of(dtype, 0));
    return weight ? weight * cast(acc, pixel) : pixel;
  };
  if (m.taps == 1) {
    const Indices first(static_cast<size_t>(axes), int_imm(0));
    return {compute(call.op, space, [&](const Indices& at) { return value(at, first); })};
  }
  std::vector<Dim> over;
  for (int64_t axis = 0; axis < axes; ++axis) over.push_back({"k" + std::to_string(axis), m.taps});
  const Tensor sum = reduce(call.op + ".sum", space, over, Combine::Add, value);
  return {compute(call.op, space, [&](const Indices& at) { return cast(dtype, sum(at)); })};
}

Inferred infer_affine_grid(const OpCall& call) {
  TW_TRY_STATUS(require_float(call));
  const std::vector<int64_t> size = int_values(call, 1);
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes != 2 && axes != 3)
    return invalid(call, fmt::format("size has {} elements", size.size()), "expected 4 or 5");
  for (const int64_t extent : size)
    if (extent < 0) return invalid(call, "a size is negative", to_string(size));
  TW_TRY_STATUS(require_shape(call, 0, {size[0], axes, axes + 1}));
  Shape shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(axes);
  return one_output(call, call.inputs[0].dtype, shape);
}

std::vector<Tensor> define_affine_grid(const OpCall& call, const std::vector<Tensor>& in) {
  const Shape shape = (*infer(call))[0].shape;
  const DType dtype = in[0].dtype(), acc = compute_type(dtype);
  const size_t axes = shape.size() - 2;
  const bool align = call.attrs.get_int("align_corners", 0) != 0;
  std::vector<Tensor> positions;  // of the pixels' centres, on each axis from outermost
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t extent = shape[axis + 1];
    const auto n = static_cast<double>(extent);
    Array values(acc, {extent});
    for (int64_t i = 0; i < extent; ++i) {
      const auto p = static_cast<double>(i);
      values.set(i, !align ? (2 * p + 1) / n - 1 : extent > 1 ? 2 * p / (n - 1) - 1 : 0);
    }
    positions.push_back(const_table(call.op + ".position" + std::to_string(axis), values));
  }
  return {compute(call.op, dims_of(shape, {"n"}), [&](const Indices& at) {
    auto theta = [&](size_t column) {
      return cast(acc, in[0]({at[0], at.back(), int_imm(static_cast<int64_t>(column))}));
    };
    Expr sum;
    for (size_t column = 0; column < axes; ++column) {
      const size_t axis = axes - 1 - column;
      const Expr term = theta(column) * positions[axis]({at[axis + 1]});
      sum = sum ? sum + term : term;
    }
    return cast(dtype, sum + theta(axes));
  })};
}

}  // namespace

void add_grid_ops(std::vector<OpDef>& table) {
  OpDef sample = movement_row("GridSample", 2, 2, infer_grid_sample, define_grid_sample);
  sample.fusion = Fusion::Opaque;
  table.push_back(std::move(sample));
  table.push_back(movement_row("AffineGrid", 2, 2, infer_affine_grid, define_affine_grid, {1}));
}

}  // namespace tilewright::tensor
