// Pad and CenterCropPad.
#include <algorithm>
#include <numeric>

#include "tilewright/base/check.h"
#include "tilewright/base/counted.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

/// Elements added (or, if negative, removed) before and after one axis.
struct Margin {
  int64_t before = 0, after = 0;
};

Result<std::vector<Margin>> margins_of(const OpCall& call) {
  const size_t rank = call.inputs[0].shape.size();
  std::vector<Margin> margins(rank);
  const std::vector<int64_t> pads = int_values(call, 1);
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (call.input(3)) axes = TW_TRY(normalize_axes(int_values(call, 3), rank));
  if (pads.size() != 2 * axes.size())
    return invalid(call, fmt::format("{} pads for {} axes", pads.size(), axes.size()),
                   "each axis takes one before and one after");
  for (size_t i = 0; i < axes.size(); ++i)
    margins[static_cast<size_t>(axes[i])] = {pads[i], pads[axes.size() + i]};
  return margins;
}

Inferred infer_pad(const OpCall& call) {
  const std::string mode = call.attrs.get_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return invalid(call, fmt::format("mode is '{}'", mode),
                   "expected constant, reflect, edge or wrap");
  const std::vector<Margin> margins = TW_TRY(margins_of(call));
  Shape shape = call.inputs[0].shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    const Margin m = margins[i];
    const int64_t kept = shape[i] + std::min<int64_t>(m.before, 0) + std::min<int64_t>(m.after, 0);
    const int64_t extent = shape[i] + m.before + m.after;
    if (extent < 0 || (mode != "constant" && extent > 0 && kept <= 0))
      return invalid(call,
                     fmt::format("axis {} cannot be padded by {} and {}", i, m.before, m.after),
                     fmt::format("it has {}, mode {}", counted(shape[i], "element"), mode));
    shape[i] = extent;
  }
  if (const InputInfo* value = call.input(2)) {
    if (element_count(value->shape) != 1)
      return invalid(call, "the constant must be one number",
                     "its shape is " + to_string(value->shape));
    if (value->dtype != call.inputs[0].dtype)
      return invalid(call, "inputs 0 and 2 differ in type",
                     fmt::format("{} and {}", name(call.inputs[0].dtype), name(value->dtype)));
  }
  return one_output(call, call.inputs[0].dtype, shape);
}

/// The place in an axis that keeps elements `skipped` .. `skipped + kept`, for a position counted
/// from the first kept one; `lo`, `hi` bound that position.
Expr source_index(const std::string& mode, const Expr& position, int64_t lo, int64_t hi,
                  int64_t kept, int64_t skipped) {
  if (lo >= 0 && hi < kept) return affine(position, 1, skipped);
  Expr at;
  if (mode == "edge") {
    at = position;
    if (lo < 0) at = max(at, int_imm(0));
    if (hi >= kept) at = min(at, int_imm(kept - 1));
  } else if (mode == "wrap") {
    at = position % kept;
  } else if (kept == 1) {
    at = int_imm(0);
  } else {
    // The mirrored row repeats with this period; its second half runs backwards.
    const int64_t period = 2 * (kept - 1);
    if (lo > -kept && hi <= period) {  // once there and back
      at = lo < 0 ? max(position, -position) : position;
      if (hi >= kept) at = min(at, int_imm(period) - at);
    } else {
      const Expr phase = position % period;
      at = min(phase, int_imm(period) - phase);
    }
  }
  return affine(at, 1, skipped);
}

Expr pad_by_constant(const Tensor& x, const std::vector<Margin>& margins, const Shape& shape,
                     const Indices& at, const Expr& fill) {
  Expr condition;
  Indices where;
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t before = margins[i].before;
    where.push_back(affine(at[i], 1, -before));
    condition = both(condition, inside(where.back(), -before, shape[i] - 1 - before, x.shape()[i]));
  }
  return guarded(condition, x(where), fill);
}

/// Most of a row is a copy of the input's: between the borders elements lie side by side and need
/// no place each.
Expr pad_by_repeating(const Tensor& x, const std::string& mode, const std::vector<Margin>& margins,
                      const Shape& shape, const Indices& at) {
  Expr copied;
  Indices where, beside;
  for (size_t i = 0; i < at.size(); ++i) {
    const Margin m = margins[i];
    const int64_t skipped = std::max<int64_t>(-m.before, 0);
    const int64_t kept = x.shape()[i] - skipped - std::max<int64_t>(-m.after, 0);
    const int64_t first = std::min<int64_t>(-m.before, 0), last = first + shape[i] - 1;
    const Expr position = affine(at[i], 1, first);
    where.push_back(source_index(mode, position, first, last, kept, skipped));
    const bool row = i + 1 == at.size();
    beside.push_back(row ? affine(position, 1, skipped) : where.back());
    if (row) copied = inside(position, first, last, kept);
  }
  return guarded(copied, x(beside), x(where));
}

std::vector<Tensor> define_pad(const OpCall& call, const std::vector<Tensor>& in) {
  const std::vector<Margin> margins = *margins_of(call);
  const Shape shape = (*infer(call))[0].shape;
  const std::string mode = call.attrs.get_string("mode", "constant");
  Expr fill = const_of(in[0].dtype(), 0);
  if (call.input(2)) fill = in[2](Indices(in[2].rank(), int_imm(0)));
  return {compute(call.op, dims_of(shape), [&](const Indices& at) {
    return mode == "constant" ? pad_by_constant(in[0], margins, shape, at, fill)
                              : pad_by_repeating(in[0], mode, margins, shape, at);
  })};
}

Inferred infer_center_crop_pad(const OpCall& call) {
  Shape shape = call.inputs[0].shape;
  const std::vector<int64_t> target = int_values(call, 1);
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = TW_TRY(normalize_axes(call.attrs.get_ints("axes", axes), shape.size()));
  if (axes.size() != target.size())
    return invalid(call, fmt::format("{} sizes for {} axes", target.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (target[i] < 0) return invalid(call, fmt::format("a size is {}", target[i]));
    shape[static_cast<size_t>(axes[i])] = target[i];
  }
  return one_output(call, call.inputs[0].dtype, shape);
}

std::vector<Tensor> define_center_crop_pad(const OpCall& call, const std::vector<Tensor>& in) {
  const Shape shape = (*infer(call))[0].shape;
  return {compute(call.op, dims_of(shape), [&](const Indices& at) {
    Expr condition;
    Indices where;
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t have = in[0].dim(i), want = shape[i];
      const int64_t begin = have > want ? (have - want) / 2 : -((want - have) / 2);
      where.push_back(affine(at[i], 1, begin));
      condition = both(condition, inside(where.back(), begin, begin + want - 1, have));
    }
    return guarded(condition, in[0](where), const_of(in[0].dtype(), 0));
  })};
}

}  // namespace

void add_pad_ops(std::vector<OpDef>& table) {
  table.push_back(movement_row("Pad", 2, 4, infer_pad, define_pad, {1, 3}));
  table.push_back(
      movement_row("CenterCropPad", 2, 2, infer_center_crop_pad, define_center_crop_pad, {1}));
}

}  // namespace tilewright::tensor
