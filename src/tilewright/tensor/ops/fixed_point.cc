// Requantisation, addition and average pools of integers with binary points (fixed_point.h has the
// formulas). Everything is exact up to the one rounding.
#include "tilewright/tensor/fixed_point.h"

#include <algorithm>
#include <set>

#include "tilewright/base/check.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

Result<int64_t> attr_in(const OpCall& call, const char* key, int64_t fallback, int64_t lo,
                        int64_t hi) {
  const int64_t v = call.attrs.get_int(key, fallback);
  if (v >= lo && v <= hi) return v;
  return invalid(call, fmt::format("the attribute {} is {}", key, v),
                 fmt::format("it must be at least {} and at most {}", lo, hi));
}

Status require_fixed_dtype(const OpCall& call, size_t i, DType dtype) {
  const InputInfo* in = call.input(i);
  if (in == nullptr || in->dtype == dtype) return {};
  return invalid(call, fmt::format("input {} is {}, not {}", i, name(in->dtype), name(dtype)));
}

Status check_result_attrs(const OpCall& call) {
  TW_TRY(attr_in(call, "leaky", 0, 0, 1));
  const int64_t lo = TW_TRY(attr_in(call, "lo", -128, -128, 127));
  TW_TRY(attr_in(call, "hi", 127, lo, 127));
  return {};
}

Expr clamped(const Expr& v, int64_t lo, int64_t hi) {
  return min(max(v, int_imm(lo, v.dtype())), int_imm(hi, v.dtype()));
}

/// round(v / 2^shift), ties towards plus infinity. A left shift saturates to 8 bits first, which
/// changes no saturated result.
Expr rounded(const Expr& v, int64_t shift) {
  const DType type = v.dtype();
  if (shift == 0) return v;
  if (shift < 0) return binary(BinaryOp::Shl, clamped(v, -128, 127), int_imm(-shift, type));
  const Expr half = int_imm(int64_t{1} << (shift - 1), type);
  return binary(BinaryOp::Shr, v + half, int_imm(shift, type));
}

/// The 8-bit result for v / 2^shift. `wide` holds 26 v.
Expr result_of(const OpCall& call, const Expr& v, int64_t shift, DType wide) {
  const int64_t lo = call.attrs.get_int("lo", -128), hi = call.attrs.get_int("hi", 127);
  const Expr plain = cast(DType::I8, clamped(rounded(v, shift), lo, hi));
  if (call.attrs.get_int("leaky", 0) == 0) return plain;
  const Expr scaled = cast(wide, v) * int_imm(kLeakyFactor, wide);
  const Expr below = cast(DType::I8, clamped(rounded(scaled, shift + kLeakyShift), lo, hi));
  return select(v < int_imm(0, v.dtype()), below, plain);
}

std::vector<Dim> image_axes(const Shape& shape) {
  return shape.size() == 4 ? dims_of(shape, {"n", "c", "h", "w"}) : dims_of(shape);
}

// --- RequantizeFixed.

Inferred infer_requantize_fixed(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  TW_TRY_STATUS(require_fixed_dtype(call, 0, DType::I32));
  TW_TRY_STATUS(require_fixed_dtype(call, 1, DType::I32));
  if (call.input(1)) {
    const Shape joint = TW_TRY(broadcast(shape, call.inputs[1].shape));
    if (joint != shape)
      return invalid(call, fmt::format("the bias of shape {} does not broadcast to {}",
                                       to_string(call.inputs[1].shape), to_string(shape)));
  }
  TW_TRY(attr_in(call, "shift", 0, -24, 31));
  TW_TRY_STATUS(check_result_attrs(call));
  return std::vector<TensorType>{{DType::I8, shape}};
}

Tensors define_requantize_fixed(const OpCall& call, const Tensors& in) {
  return {compute("requantize_fixed", image_axes(in[0].shape()), [&](const Indices& at) {
    Expr sum = in[0](at);
    if (call.input(1)) sum = sum + element(call, in, 1, at);
    return result_of(call, sum, call.attrs.get_int("shift", 0), DType::I64);
  })};
}

// --- EltwiseFixed.

Inferred infer_eltwise_fixed(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  for (const size_t i : {0, 1}) TW_TRY_STATUS(require_fixed_dtype(call, i, DType::I8));
  TW_TRY_STATUS(require_shape(call, 1, shape));
  const size_t operands = call.input(1) ? 2 : 1;
  const auto shifts = call.attrs.get_ints("shift_read", std::vector<int64_t>(operands, 0));
  if (shifts.size() != operands)
    return invalid(call,
                   fmt::format("shift_read has {} entries for {} inputs", shifts.size(), operands));
  for (const int64_t shift : shifts)
    if (shift < 0 || shift > 31)
      return invalid(call, fmt::format("shift_read contains {}", shift), "it must be 0 to 31");
  TW_TRY(attr_in(call, "shift_write", 0, -32, 31));
  TW_TRY_STATUS(check_result_attrs(call));
  return std::vector<TensorType>{{DType::I8, shape}};
}

Tensors define_eltwise_fixed(const OpCall& call, const Tensors& in) {
  const auto shifts = call.attrs.get_ints("shift_read", {0, 0});
  // 26 u is below 2^15, so that shifts beyond these give 0, or saturate, just the same.
  const int64_t shift =
      std::clamp<int64_t>(2 - call.attrs.get_int("shift_write", 0), -16 - kLeakyShift, 20);
  return {compute("eltwise_fixed", image_axes(in[0].shape()), [&](const Indices& at) {
    const auto operand = [&](size_t i) {
      const Expr four = cast(DType::I32, in[i](at)) * int_imm(4, DType::I32);
      return shifts[i] == 0 ? four : binary(BinaryOp::Shr, four, int_imm(shifts[i], DType::I32));
    };
    const Expr sum = call.input(1) ? operand(0) + operand(1) : operand(0);
    return result_of(call, sum, shift, DType::I32);
  })};
}

// --- AveragePoolFixed.

Result<Window> fixed_pool_window(const OpCall& call) {
  TW_TRY_STATUS(require_fixed_dtype(call, 0, DType::I8));
  TW_TRY_STATUS(require_rank(call, 0, 4));
  const Shape& x = call.inputs[0].shape;
  return window_of(call, {x[2], x[3]}, call.attrs.get_ints("kernel_shape"));
}

/// Elements of the input in each window, row-major.
std::vector<int64_t> counts_inside(const Window& window) {
  std::vector<int64_t> per_axis[2];
  for (size_t axis = 0; axis < 2; ++axis)
    for (int64_t o = 0; o < window.output[axis]; ++o) {
      int64_t count = 0;
      for (int64_t t = 0; t < window.kernel[axis]; ++t) {
        const int64_t at =
            o * window.strides[axis] + t * window.dilations[axis] - window.begin[axis];
        count += at >= 0 && at < window.input[axis] ? 1 : 0;
      }
      per_axis[axis].push_back(count);
    }
  std::vector<int64_t> counts;
  for (const int64_t rows : per_axis[0])
    for (const int64_t columns : per_axis[1]) counts.push_back(rows * columns);
  return counts;
}

Inferred infer_average_pool_fixed(const OpCall& call) {
  const Window window = TW_TRY(fixed_pool_window(call));
  const int64_t factor = TW_TRY(attr_in(call, "factor", 0, 1, kMaxMeanFactor));
  const int64_t shift = TW_TRY(attr_in(call, "shift", 0, 0, 31));
  const int64_t include = TW_TRY(attr_in(call, "count_include_pad", 1, 0, 1));
  if (include == 0) {
    const MeanFactor whole = mean_factor(window.kernel[0] * window.kernel[1]);
    if (factor != whole.factor)
      return invalid(call,
                     fmt::format("factor is {} for windows of {} x {}", factor, window.kernel[0],
                                 window.kernel[1]),
                     fmt::format("with count_include_pad 0 it must be {}", whole.factor));
    for (const int64_t count : counts_inside(window)) {
      if (count == 0) return invalid(call, "a window lies in the padding");
      if (mean_factor(count).shift + shift < whole.shift)
        return invalid(call, fmt::format("shift {} is too small for windows at borders", shift));
    }
  }
  const Shape& x = call.inputs[0].shape;
  return std::vector<TensorType>{{DType::I8, {x[0], x[1], window.output[0], window.output[1]}}};
}

bool all_windows_alike(const OpCall& call, const Window& window) {
  if (call.attrs.get_int("count_include_pad", 1) == 1) return true;
  const std::vector<int64_t> counts = counts_inside(window);
  return std::set<int64_t>(counts.begin(), counts.end()) ==
         std::set<int64_t>{window.kernel[0] * window.kernel[1]};
}

Tensors define_average_pool_fixed(const OpCall& call, const Tensors& in) {
  const Window window = *fixed_pool_window(call);
  const Shape shape = (*infer_average_pool_fixed(call))[0].shape;
  const Tensor x = pad_for(window, in[0], "average_fixed_pad", const_of(DType::I8, 0));
  const std::vector<Dim> axes = image_axes(shape);
  const Tensor sum =
      reduce("average_fixed_sum", axes, dims_of(window.kernel, tap_names(2)), Combine::Add,
             [&](const Indices& at, const Indices& taps) {
               return cast(DType::I32, x({at[0], at[1], window.position(0, at[2], taps[0]),
                                          window.position(1, at[3], taps[1])}));
             });
  if (all_windows_alike(call, window)) {
    const Expr factor = int_imm(call.attrs.get_int("factor", 0), DType::I32);
    const int64_t shift = call.attrs.get_int("shift", 0);
    return {compute("average_fixed", axes, [&](const Indices& at) {
      return cast(DType::I8, clamped(rounded(sum(at) * factor, shift), -128, 127));
    })};
  }
  const MeanTable table = mean_table(call);
  const Tensor factors =
      placeholder("factors", DType::I32, table.factors.shape(), ParamMode::Const, table.factors);
  return {compute("average_fixed", axes, [&](const Indices& at) {
    const Expr product = sum(at) * factors({at[2], at[3]});
    return cast(DType::I8, clamped(rounded(product, table.shift), -128, 127));
  })};
}

}  // namespace

MeanFactor mean_factor(int64_t taps, int64_t most) {
  MeanFactor mean;
  const auto factor = [&](int64_t shift) { return ((int64_t{2} << shift) + taps) / (2 * taps); };
  while (mean.shift < 31 && factor(mean.shift + 1) <= most) ++mean.shift;
  mean.factor = factor(mean.shift);
  return mean;
}

MeanTable mean_table(const OpCall& call) {
  const Window window = *fixed_pool_window(call);
  const int64_t shift = call.attrs.get_int("shift", 0);
  MeanTable table{Array(DType::I32, {window.output[0], window.output[1]}), shift};
  const int64_t factor = call.attrs.get_int("factor", 0);
  if (all_windows_alike(call, window)) {
    for (int64_t i = 0; i < table.factors.size(); ++i) table.factors.set_int(i, factor);
    return table;
  }
  // Windows with fewer elements have smaller shifts: their factors make up for the difference.
  const std::vector<int64_t> counts = counts_inside(window);
  const int64_t most = mean_factor(*std::max_element(counts.begin(), counts.end())).shift;
  for (size_t i = 0; i < counts.size(); ++i) {
    const MeanFactor mean = mean_factor(counts[i]);
    table.factors.set_int(static_cast<int64_t>(i), mean.factor << (most - mean.shift));
  }
  table.shift += most - mean_factor(window.kernel[0] * window.kernel[1]).shift;
  return table;
}

void add_fixed_point_ops(std::vector<OpDef>& table) {
  auto add = [&](const char* name, int most, Fusion fusion, auto infer_rule, auto define) {
    table.push_back({"tilewright", name, 1, most, fusion, {}, infer_rule, define, ""});
  };
  add("RequantizeFixed", 2, Fusion::Injective, infer_requantize_fixed, define_requantize_fixed);
  add("EltwiseFixed", 2, Fusion::Injective, infer_eltwise_fixed, define_eltwise_fixed);
  add("AveragePoolFixed", 1, Fusion::Reduction, infer_average_pool_fixed,
      define_average_pool_fixed);
}

}  // namespace tilewright::tensor
