// Resize works axis by axis: the places and weights of an axis are tables made at compile time, so
// the loops hold only loads and products.
// source: ONNX operator definitions, Resize 19.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tilewright/base/check.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

/// How one axis is resized.
struct AxisPlan {
  int64_t input = 0, output = 0;
  float scale = 1;
  double begin = 0, end = 1;  ///< region of interest, for tf_crop_and_resize
};

struct ResizePlan {
  std::string mode, coordinates, nearest;
  bool antialias = false, exclude_outside = false;
  double cubic = -0.75, extrapolation = 0;
  std::vector<AxisPlan> axes;
};

bool one_of(const std::string& text, std::initializer_list<const char*> allowed) {
  return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
}

Status read_attributes(const OpCall& call, ResizePlan& plan) {
  plan.mode = call.attrs.get_string("mode", "nearest");
  plan.coordinates = call.attrs.get_string("coordinate_transformation_mode", "half_pixel");
  plan.nearest = call.attrs.get_string("nearest_mode", "round_prefer_floor");
  plan.antialias = call.attrs.get_int("antialias", 0) != 0;
  plan.exclude_outside = call.attrs.get_int("exclude_outside", 0) != 0;
  plan.cubic = call.attrs.get_float("cubic_coeff_a", -0.75);
  plan.extrapolation = call.attrs.get_float("extrapolation_value", 0);
  if (!one_of(plan.mode, {"nearest", "linear", "cubic"}))
    return invalid(call, fmt::format("mode is '{}'", plan.mode),
                   "expected nearest, linear or cubic");
  if (!one_of(plan.coordinates, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                 "align_corners", "asymmetric", "tf_crop_and_resize"}))
    return invalid(call, fmt::format("coordinate_transformation_mode is '{}'", plan.coordinates));
  if (!one_of(plan.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}))
    return invalid(call, fmt::format("nearest_mode is '{}'", plan.nearest));
  return {};
}

/// Output sizes and scales from the input `sizes`, by the aspect ratio policy.
Status plan_sizes(const OpCall& call, const std::vector<int64_t>& axes, ResizePlan& plan) {
  const std::vector<int64_t> sizes = int_values(call, 3);
  const std::string policy = call.attrs.get_string("keep_aspect_ratio_policy", "stretch");
  if (!one_of(policy, {"stretch", "not_larger", "not_smaller"}))
    return invalid(call, fmt::format("keep_aspect_ratio_policy is '{}'", policy));
  if (sizes.size() != axes.size())
    return invalid(call, fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  std::optional<float> common;
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPlan& axis = plan.axes[static_cast<size_t>(axes[i])];
    if (sizes[i] < 0)
      return invalid(call, fmt::format("the size of axis {} is {}", axes[i], sizes[i]));
    axis.output = sizes[i];
    axis.scale =
        static_cast<float>(sizes[i]) / static_cast<float>(std::max<int64_t>(axis.input, 1));
    const float so_far = common.value_or(axis.scale);
    common = policy == "not_larger" ? std::min(so_far, axis.scale) : std::max(so_far, axis.scale);
  }
  if (policy == "stretch") return {};
  for (const int64_t i : axes) {
    AxisPlan& axis = plan.axes[static_cast<size_t>(i)];
    axis.scale = *common;
    axis.output = static_cast<int64_t>(std::floor(*common * static_cast<float>(axis.input) + 0.5f));
  }
  return {};
}

Status plan_scales(const OpCall& call, const std::vector<int64_t>& axes, ResizePlan& plan) {
  const std::vector<double> scales = call.inputs[2].value->to_doubles();
  if (scales.size() != axes.size())
    return invalid(call, fmt::format("{} scales for {} axes", scales.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPlan& axis = plan.axes[static_cast<size_t>(axes[i])];
    axis.scale = static_cast<float>(scales[i]);
    const float size = std::floor(axis.scale * static_cast<float>(axis.input));
    if (!(axis.scale > 0) || !(size < 1e12f))
      return invalid(call, fmt::format("the scale of axis {} is {}", axes[i], scales[i]));
    axis.output = static_cast<int64_t>(size);
  }
  return {};
}

Status plan_region(const OpCall& call, const std::vector<int64_t>& axes, ResizePlan& plan) {
  if (plan.coordinates != "tf_crop_and_resize") return {};
  const InputInfo* roi = call.input(1);
  if (roi == nullptr || roi->value->size() != static_cast<int64_t>(2 * axes.size()))
    return invalid(call, "tf_crop_and_resize needs a region of interest",
                   fmt::format("roi has {} elements, expected {}", roi ? roi->value->size() : 0,
                               2 * axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPlan& axis = plan.axes[static_cast<size_t>(axes[i])];
    axis.begin = roi->value->get(static_cast<int64_t>(i));
    axis.end = roi->value->get(static_cast<int64_t>(i + axes.size()));
  }
  return {};
}

Result<ResizePlan> plan_of(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  ResizePlan plan;
  TW_TRY_STATUS(read_attributes(call, plan));
  for (const int64_t extent : shape) plan.axes.push_back({extent, extent, 1, 0, 1});
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = TW_TRY(normalize_axes(call.attrs.get_ints("axes", axes), shape.size()));
  // Exporters give an empty tensor for the one of scales and sizes that does not apply.
  const InputInfo *scales = call.input(2), *sizes = call.input(3);
  const bool by_scale = scales && scales->value->size() > 0;
  const bool by_size = sizes && sizes->value->size() > 0;
  if (by_scale == by_size && !axes.empty())
    return invalid(call,
                   by_scale ? "both scales and sizes are given" : "no scales or sizes are given");
  if (by_scale) TW_TRY_STATUS(plan_scales(call, axes, plan));
  if (by_size) TW_TRY_STATUS(plan_sizes(call, axes, plan));
  TW_TRY_STATUS(plan_region(call, axes, plan));
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 0 && plan.axes[i].output != 0)
      return invalid(
          call, fmt::format("axis {} is empty and cannot become {} long", i, plan.axes[i].output));
  return plan;
}

Inferred infer_resize(const OpCall& call) {
  const ResizePlan plan = TW_TRY(plan_of(call));
  Shape shape;
  for (const AxisPlan& axis : plan.axes) shape.push_back(axis.output);
  return one_output(call, call.inputs[0].dtype, shape);
}

/// The input coordinate of output position `i`. Single precision, as ONNX Runtime computes it: ties
/// of `nearest` depend on it.
float source_coordinate(const ResizePlan& plan, const AxisPlan& axis, int64_t i) {
  const auto x = static_cast<float>(i), in = static_cast<float>(axis.input);
  // The size before it was cut to an integer; the conformance tests expect it here.
  const float out = axis.scale * in;
  const auto begin = static_cast<float>(axis.begin), end = static_cast<float>(axis.end);
  if (plan.coordinates == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (plan.coordinates == "asymmetric") return x / axis.scale;
  if (plan.coordinates == "tf_crop_and_resize")
    return axis.output > 1 ? begin * (in - 1) +
                                 x * (end - begin) * (in - 1) / static_cast<float>(axis.output - 1)
                           : 0.5f * (begin + end) * (in - 1);
  if (plan.coordinates == "pytorch_half_pixel" && axis.output <= 1) return 0;
  const float centre = (x + 0.5f) / axis.scale;
  if (plan.coordinates != "half_pixel_symmetric") return centre - 0.5f;
  // In this order: a sample that lies on a pixel would else be rounded to the one before it.
  return in / 2 * (1 - static_cast<float>(axis.output) / out) + centre - 0.5f;
}

/// Coordinates this near to the middle between two pixels count as the middle: in single precision
/// a position that lies there may come out beside it, as 6.4999995 for 14 pixels that become one.
/// source: measured on ONNX Runtime 1.31, whose results for all axes of 1 to 59 are those of 1e-6,
/// and differ from those of 5e-7 and of 1e-5.
constexpr double kTie = 1e-6;

double round_nearest(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "round_prefer_ceil" ? std::floor(x + 0.5 + kTie) : std::ceil(x - 0.5 - kTie);
}

/// The cubic convolution kernel. source: R. Keys, IEEE Trans. ASSP 29(6), 1981, equation 4.
double cubic_kernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// What one axis reads: output i is the sum over k of weight[i, k] * input[place[i, k]]. A place of
/// -1 means the output lies outside the region and takes the extrapolation value.
struct Taps {
  int64_t count = 1;
  std::vector<int64_t> place;
  std::vector<double> weight;
  bool weighted = false;  ///< some weight is not 1
  bool outside = false;   ///< some place is -1
};

/// Places and weights around coordinate x.
struct ResizeWindow {
  std::vector<int64_t> place;
  std::vector<double> weight;
};

ResizeWindow sample(const ResizePlan& plan, const AxisPlan& axis, double x) {
  ResizeWindow w;
  if (plan.mode == "nearest") {
    w.place = {static_cast<int64_t>(round_nearest(plan.nearest, x))};
    w.weight = {1};
    return w;
  }
  // Antialiasing stretches the kernel when the axis shrinks.
  const double stretch = plan.antialias ? std::min<double>(axis.scale, 1) : 1;
  const double radius = (plan.mode == "linear" ? 1 : 2) / stretch;
  double sum = 0;
  for (auto p = static_cast<int64_t>(std::floor(x - radius)) + 1; p < x + radius; ++p) {
    const double distance = (static_cast<double>(p) - x) * stretch;
    const bool outside = p < 0 || p >= axis.input;
    double value = plan.mode == "linear" ? std::max(0.0, 1 - std::abs(distance))
                                         : cubic_kernel(distance, plan.cubic);
    if (plan.exclude_outside && outside) value = 0;
    w.place.push_back(p);
    w.weight.push_back(value);
    sum += value;
  }
  if ((plan.antialias || plan.exclude_outside) && sum != 0)
    for (double& value : w.weight) value /= sum;
  return w;
}

/// Adds a window to the taps: places outside the axis read its nearest end, equal places become
/// one.
ResizeWindow clamped(const ResizeWindow& w, int64_t extent) {
  ResizeWindow out;
  for (size_t k = 0; k < w.place.size(); ++k) {
    const int64_t place = std::clamp<int64_t>(w.place[k], 0, extent - 1);
    if (w.weight[k] == 0) continue;
    if (!out.place.empty() && out.place.back() == place) {
      out.weight.back() += w.weight[k];
    } else {
      out.place.push_back(place);
      out.weight.push_back(w.weight[k]);
    }
  }
  if (out.place.empty()) out = {{std::clamp<int64_t>(w.place[0], 0, extent - 1)}, {0}};
  return out;
}

Taps taps_of(const ResizePlan& plan, const AxisPlan& axis) {
  std::vector<ResizeWindow> rows;
  Taps taps;
  for (int64_t i = 0; i < axis.output; ++i) {
    const double x = source_coordinate(plan, axis, i);
    const bool outside = plan.coordinates == "tf_crop_and_resize" &&
                         (x < 0 || x > static_cast<double>(axis.input - 1));
    rows.push_back(outside ? ResizeWindow{{-1}, {1}} : clamped(sample(plan, axis, x), axis.input));
    taps.outside = taps.outside || outside;
    taps.count = std::max(taps.count, static_cast<int64_t>(rows.back().place.size()));
  }
  for (const ResizeWindow& row : rows)
    for (int64_t k = 0; k < taps.count; ++k) {
      const bool used = k < static_cast<int64_t>(row.place.size());
      taps.place.push_back(used ? row.place[static_cast<size_t>(k)] : row.place.back());
      taps.weight.push_back(used ? row.weight[static_cast<size_t>(k)] : 0);
      taps.weighted = taps.weighted || taps.weight.back() != 1;
    }
  return taps;
}

/// Place and weight of tap `k` (both expressions) of one axis as functions of the output position.
struct AxisReader {
  int64_t count = 1;
  bool weighted = false;
  std::function<Expr(const Expr& at, const Expr& k)> place, weight;
  std::function<Expr(const Expr& at)> outside;  ///< empty if never
};

/// A place that is a plain quotient or multiple of the position needs no table.
std::function<Expr(const Expr&, const Expr&)> plain_place(const Taps& taps, const AxisPlan& axis) {
  if (taps.count != 1 || axis.output == 0) return {};
  auto all = [&](const std::function<int64_t(int64_t)>& f) {
    for (int64_t i = 0; i < axis.output; ++i)
      if (taps.place[static_cast<size_t>(i)] != f(i)) return false;
    return true;
  };
  const int64_t up = axis.output / std::max<int64_t>(axis.input, 1);
  const int64_t down = axis.input / axis.output;
  if (all([](int64_t i) { return i; })) return [](const Expr& at, const Expr&) { return at; };
  if (up > 1 && all([&](int64_t i) { return i / up; }))
    return [up](const Expr& at, const Expr&) { return at / up; };
  const int64_t first = taps.place[0];
  if (down > 1 && all([&](int64_t i) { return i * down + first; }))
    return [down, first](const Expr& at, const Expr&) { return affine(at, down, first); };
  return {};
}

AxisReader reader_of(const std::string& name_of, const Taps& taps, const AxisPlan& axis,
                     DType weight_type) {
  AxisReader reader;
  reader.count = taps.count;
  reader.weighted = taps.weighted;
  reader.place = plain_place(taps, axis);
  const Shape shape{axis.output, taps.count};
  if (!reader.place) {
    Array places(DType::I32, shape);
    for (int64_t i = 0; i < places.size(); ++i)
      places.set_int(i, taps.place[static_cast<size_t>(i)]);
    const Tensor t = const_table(name_of + ".place", places);
    reader.place = [t](const Expr& at, const Expr& k) { return cast(DType::I64, t({at, k})); };
  }
  if (taps.weighted) {
    Array weights(weight_type, shape);
    for (int64_t i = 0; i < weights.size(); ++i)
      weights.set(i, taps.weight[static_cast<size_t>(i)]);
    const Tensor t = const_table(name_of + ".weight", weights);
    reader.weight = [t](const Expr& at, const Expr& k) { return t({at, k}); };
  }
  if (taps.outside)
    reader.outside = [place = reader.place](const Expr& at) { return place(at, int_imm(0)) < 0; };
  return reader;
}

/// The type values are interpolated in.
DType interpolation_type(DType dtype) { return dtype == DType::F64 ? dtype : DType::F32; }

/// Interpolated values in the output's type: integers are rounded and saturate.
Expr finish(DType dtype, const Expr& value) {
  const bool rounds = is_float(value.dtype()) && !is_float(dtype);
  return cast(dtype, rounds ? math(MathFn::Round, {value}) : value);
}

/// One axis as a reduction over its taps, for kernels too wide to write out.
Tensor resize_axis(const std::string& name_of, const Tensor& x, size_t axis, int64_t output,
                   const AxisReader& reader, DType acc) {
  Shape shape = x.shape();
  shape[axis] = output;
  return reduce(name_of, dims_of(shape), {{"k", reader.count}}, Combine::Add,
                [&](const Indices& at, const Indices& r) {
                  Indices from = at;
                  const Expr place = reader.place(at[axis], r[0]);
                  // Positions outside the region are replaced later; here they may read anything.
                  from[axis] = reader.outside ? max(place, int_imm(0)) : place;
                  return reader.weight(at[axis], r[0]) * cast(acc, x(from));
                });
}

/// All axes at once, the taps written out as a sum.
Expr resize_all(const Tensor& x, const std::vector<AxisReader>& readers, const Indices& at,
                DType acc) {
  Indices from(at.size());
  std::function<Expr(size_t)> axis_sum = [&](size_t axis) -> Expr {
    if (axis == readers.size()) return cast(acc, x(from));
    const AxisReader& reader = readers[axis];
    Expr sum;
    for (int64_t k = 0; k < reader.count; ++k) {
      from[axis] = reader.place(at[axis], int_imm(k));
      Expr term = axis_sum(axis + 1);
      if (reader.weighted) term = reader.weight(at[axis], int_imm(k)) * term;
      sum = sum ? sum + term : term;
    }
    return sum;
  };
  return axis_sum(0);
}

std::vector<Tensor> define_resize(const OpCall& call, const std::vector<Tensor>& in) {
  const ResizePlan plan = *plan_of(call);
  const DType dtype = in[0].dtype();
  const DType acc = plan.mode == "nearest" ? dtype : interpolation_type(dtype);
  const Shape shape = (*infer(call))[0].shape;
  if (element_count(shape) == 0 || element_count(in[0].shape()) == 0)
    return {compute(call.op, dims_of(shape), [&](const Indices&) { return const_of(dtype, 0); })};
  std::vector<AxisReader> readers;
  int64_t taps = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::string name_of = call.op + "." + std::to_string(i);
    readers.push_back(
        reader_of(name_of, taps_of(plan, plan.axes[i]), plan.axes[i], interpolation_type(dtype)));
    taps *= readers.back().count;
  }
  Tensor x = in[0];
  constexpr int64_t kWrittenOut = 16;  // bicubic in two dimensions
  const std::vector<AxisReader> all = readers;
  if (taps > kWrittenOut)
    for (size_t i = shape.size(); i-- > 0;) {
      if (!readers[i].weighted) continue;
      x = resize_axis(call.op + ".axis" + std::to_string(i), x, i, shape[i], readers[i], acc);
      readers[i] = {1, false, [](const Expr& at, const Expr&) { return at; }, {}, {}};
    }
  return {compute(call.op, dims_of(shape), [&](const Indices& at) {
    Expr inside_all;
    for (size_t i = 0; i < at.size(); ++i)
      if (all[i].outside) inside_all = both(inside_all, logical_not(all[i].outside(at[i])));
    return guarded(inside_all, finish(dtype, resize_all(x, readers, at, acc)),
                   const_of(dtype, plan.extrapolation));
  })};
}

}  // namespace

void add_resize_ops(std::vector<OpDef>& table) {
  OpDef resize = movement_row("Resize", 1, 4, infer_resize, define_resize, {1, 2, 3});
  resize.fusion = Fusion::Complex;
  table.push_back(std::move(resize));
  add_grid_ops(table);
  add_roi_ops(table);
}

}  // namespace tilewright::tensor
