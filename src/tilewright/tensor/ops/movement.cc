// Rearranging operators: every output element is one input element, its place plain arithmetic.
#include "tilewright/tensor/ops/movement.h"

#include <algorithm>
#include <numeric>

#include "tilewright/base/check.h"
#include "tilewright/base/counted.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {

namespace {

/// Indices into `from` of the element at `at` in `to`, both row-major over the same elements. Runs
/// of axes with equal products are treated apart, so axes that stay keep plain indices.
Indices reshape_at(const Indices& at, const Shape& to, const Shape& from) {
  Indices out;
  if (element_count(from) == 0) return Indices(from.size(), int_imm(0));
  size_t i = 0, j = 0;
  while (i < to.size() || j < from.size()) {
    const size_t i0 = i, j0 = j;
    int64_t a = 1, b = 1;
    do {
      if ((a <= b && i < to.size()) || j == from.size())
        a *= to[i++];
      else
        b *= from[j++];
    } while (a != b);
    const Shape part(to.begin() + static_cast<std::ptrdiff_t>(i0),
                     to.begin() + static_cast<std::ptrdiff_t>(i));
    const Shape source(from.begin() + static_cast<std::ptrdiff_t>(j0),
                       from.begin() + static_cast<std::ptrdiff_t>(j));
    const Indices here(at.begin() + static_cast<std::ptrdiff_t>(i0),
                       at.begin() + static_cast<std::ptrdiff_t>(i));
    for (Expr& e : unflatten_index(flatten_index(here, part), source)) out.push_back(std::move(e));
  }
  return out;
}

std::vector<Tensor> define_reshaped(const OpCall& call, const std::vector<Tensor>& in) {
  const Shape shape = (*infer(call))[0].shape;
  return {compute(call.op, dims_of(shape),
                  [&](const Indices& at) { return in[0](reshape_at(at, shape, in[0].shape())); })};
}

Inferred infer_reshape(const OpCall& call) {
  const Shape& from = call.inputs[0].shape;
  const std::vector<int64_t> asked = int_values(call, 1);
  const bool allow_zero = call.attrs.get_int("allowzero", 0) != 0;
  Shape to = asked;
  std::optional<size_t> open;
  int64_t known = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && !allow_zero) {
      if (i >= from.size())
        return invalid(call, fmt::format("size 0 on axis {} copies an axis the input lacks", i),
                       fmt::format("input {}, shape {}", to_string(from), to_string(asked)));
      to[i] = from[i];
    }
    if (to[i] == -1) {
      if (open) return invalid(call, "more than one size is -1", "shape " + to_string(asked));
      open = i;
      continue;
    }
    if (to[i] < -1) return invalid(call, "a size is negative", "shape " + to_string(asked));
    if (__builtin_mul_overflow(known, to[i], &known))
      return invalid(call, "the element counts differ",
                     fmt::format("input {}, shape {}", to_string(from), to_string(asked)));
  }
  const int64_t count = element_count(from);
  if (open) {
    if (known == 0 || count % known != 0)
      return invalid(call, "the size -1 cannot be solved",
                     fmt::format("input {} has {} elements, shape {} gives multiples of {}",
                                 to_string(from), count, to_string(asked), known));
    to[*open] = count / known;
  }
  if (!open && known != count)
    return invalid(call, "the element counts differ",
                   fmt::format("input {} has {}, shape {} has {}", to_string(from), count,
                               to_string(to), known));
  return std::vector<TensorType>{{call.inputs[0].dtype, to}};
}

Inferred infer_flatten(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = call.attrs.get_int("axis", 1);
  if (axis < -rank || axis > rank)
    return invalid(call, fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  if (axis < 0) axis += rank;
  const auto middle = shape.begin() + axis;
  return std::vector<TensorType>{
      {call.inputs[0].dtype,
       {element_count({shape.begin(), middle}), element_count({middle, shape.end()})}}};
}

Inferred infer_squeeze(const OpCall& call) {
  const Shape& from = call.inputs[0].shape;
  std::vector<bool> drop(from.size());
  if (call.input(1)) {
    for (const int64_t axis : TW_TRY(normalize_axes(int_values(call, 1), from.size()))) {
      drop[static_cast<size_t>(axis)] = true;
      if (from[static_cast<size_t>(axis)] != 1)
        return invalid(
            call, fmt::format("axis {} has {} elements", axis, from[static_cast<size_t>(axis)]),
            "only axes of one element can go; shape " + to_string(from));
    }
  } else {
    for (size_t i = 0; i < from.size(); ++i) drop[i] = from[i] == 1;
  }
  Shape to;
  for (size_t i = 0; i < from.size(); ++i)
    if (!drop[i]) to.push_back(from[i]);
  return std::vector<TensorType>{{call.inputs[0].dtype, to}};
}

Inferred infer_unsqueeze(const OpCall& call) {
  const Shape& from = call.inputs[0].shape;
  const std::vector<int64_t> asked = int_values(call, 1);
  const size_t rank = from.size() + asked.size();
  std::vector<bool> added(rank);
  for (const int64_t axis : TW_TRY(normalize_axes(asked, rank)))
    added[static_cast<size_t>(axis)] = true;
  Shape to;
  auto next = from.begin();
  for (size_t i = 0; i < rank; ++i) to.push_back(added[i] ? 1 : *next++);
  return std::vector<TensorType>{{call.inputs[0].dtype, to}};
}

std::vector<int64_t> default_perm(size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  return perm;
}

Inferred infer_transpose(const OpCall& call) {
  const Shape& from = call.inputs[0].shape;
  const std::vector<int64_t> perm = call.attrs.get_ints("perm", default_perm(from.size()));
  if (perm.size() != from.size())
    return invalid(call,
                   fmt::format("perm has {} axes, the input has {}", perm.size(), from.size()));
  const std::vector<int64_t> axes = TW_TRY(normalize_axes(perm, from.size()));
  Shape to;
  for (const int64_t axis : axes) to.push_back(from[static_cast<size_t>(axis)]);
  return std::vector<TensorType>{{call.inputs[0].dtype, to}};
}

std::vector<Tensor> define_transpose(const OpCall& call, const std::vector<Tensor>& in) {
  const size_t rank = in[0].rank();
  const std::vector<int64_t> perm =
      *normalize_axes(call.attrs.get_ints("perm", default_perm(rank)), rank);
  return {compute(call.op, dims_of((*infer(call))[0].shape), [&](const Indices& at) {
    Indices from(rank);
    for (size_t i = 0; i < rank; ++i) from[static_cast<size_t>(perm[i])] = at[i];
    return in[0](from);
  })};
}

Inferred infer_concat(const OpCall& call) {
  TW_TRY_STATUS(require_same_dtypes(call));
  Shape shape = call.inputs[0].shape;
  if (!call.attrs.has("axis")) return invalid(call, "has no axis");
  const auto axis =
      static_cast<size_t>(TW_TRY(normalize_axis(call.attrs.get_int("axis", 0), shape.size())));
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present) return invalid(call, fmt::format("input {} is missing", i));
    const Shape& other = call.inputs[i].shape;
    bool fits = other.size() == shape.size();
    for (size_t k = 0; fits && k < shape.size(); ++k) fits = k == axis || other[k] == shape[k];
    if (!fits)
      return invalid(
          call, fmt::format("inputs 0 and {} differ outside axis {}", i, axis),
          fmt::format("shapes {} and {}", to_string(call.inputs[0].shape), to_string(other)));
    shape[axis] += other[axis];
  }
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

std::vector<Tensor> define_concat(const OpCall& call, const std::vector<Tensor>& in) {
  const auto axis = static_cast<size_t>(
      *normalize_axis(call.attrs.get_int("axis", 0), call.inputs[0].shape.size()));
  std::vector<Tensor> parts;
  std::vector<int64_t> begin;
  int64_t offset = 0;
  for (const Tensor& t : in) {
    if (t.dim(axis) == 0) continue;
    parts.push_back(t);
    begin.push_back(offset);
    offset += t.dim(axis);
  }
  if (parts.empty()) parts.push_back(in[0]), begin.push_back(0);
  return {compute(call.op, dims_of((*infer(call))[0].shape), [&](const Indices& at) {
    // A balanced tree of comparisons: each element makes few of them, however many the inputs.
    std::function<Expr(size_t, size_t)> pick = [&](size_t lo, size_t hi) -> Expr {
      if (lo + 1 == hi) {
        Indices from = at;
        from[axis] = affine(at[axis], 1, -begin[lo]);
        return parts[lo](from);
      }
      const size_t middle = (lo + hi) / 2;
      return select(at[axis] < begin[middle], pick(lo, middle), pick(middle, hi));
    };
    return pick(0, parts.size());
  })};
}

Inferred infer_split(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto axis =
      static_cast<size_t>(TW_TRY(normalize_axis(call.attrs.get_int("axis", 0), shape.size())));
  std::vector<int64_t> sizes;
  if (call.input(1)) {
    sizes = int_values(call, 1);
    const bool negative =
        std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; });
    if (negative || std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != shape[axis])
      return invalid(call,
                     fmt::format("the parts {} do not make up axis {}", to_string(sizes), axis),
                     "it has " + counted(shape[axis], "element"));
  } else {
    const int64_t parts = call.attrs.get_int("num_outputs", call.num_outputs);
    if (parts < 1) return invalid(call, fmt::format("num_outputs is {}", parts));
    const int64_t size = (shape[axis] + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i)
      sizes.push_back(std::clamp<int64_t>(shape[axis] - i * size, 0, size));
  }
  if (static_cast<int>(sizes.size()) != call.num_outputs)
    return invalid(call,
                   fmt::format("gives {} parts for {} outputs", sizes.size(), call.num_outputs));
  std::vector<TensorType> out;
  for (const int64_t size : sizes) {
    out.push_back({call.inputs[0].dtype, shape});
    out.back().shape[axis] = size;
  }
  return out;
}

std::vector<Tensor> define_split(const OpCall& call, const std::vector<Tensor>& in) {
  const auto axis =
      static_cast<size_t>(*normalize_axis(call.attrs.get_int("axis", 0), in[0].rank()));
  std::vector<Tensor> out;
  int64_t offset = 0;
  const std::vector<TensorType> types = *infer(call);
  for (const TensorType& type : types) {
    out.push_back(
        compute(call.op + std::to_string(out.size()), dims_of(type.shape), [&](const Indices& at) {
          Indices from = at;
          from[axis] = affine(at[axis], 1, offset);
          return in[0](from);
        }));
    offset += type.shape[axis];
  }
  return out;
}

/// One axis of a Slice: elements begin, begin + step, ..., `count` of them.
struct Cut {
  int64_t begin = 0, step = 1, count = 0;
};

Result<std::vector<Cut>> cuts_of(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  std::vector<Cut> cuts;
  for (const int64_t extent : shape) cuts.push_back({0, 1, extent});
  const std::vector<int64_t> starts = int_values(call, 1), ends = int_values(call, 2);
  std::vector<int64_t> axes = int_values(call, 3), steps = int_values(call, 4);
  if (!call.input(3)) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (!call.input(4)) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return invalid(
        call, "starts, ends, axes and steps differ in length",
        fmt::format("{}, {}, {} and {}", starts.size(), ends.size(), axes.size(), steps.size()));
  axes = TW_TRY(normalize_axes(axes, shape.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t n = shape[axis], step = steps[i];
    if (step == 0) return invalid(call, fmt::format("the step on axis {} is 0", axis));
    const int64_t begin = starts[i] < 0 ? starts[i] + n : starts[i];
    const int64_t end = ends[i] < 0 ? ends[i] + n : ends[i];
    const int64_t top = std::max<int64_t>(n - 1, 0);
    const int64_t first = std::clamp<int64_t>(begin, 0, step > 0 ? n : top);
    const int64_t last = std::clamp<int64_t>(end, step > 0 ? 0 : -1, step > 0 ? n : top);
    const int64_t distance = step > 0 ? last - first : first - last;
    // A step beyond the axis selects one element; its size must not overflow the arithmetic.
    const int64_t stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
    const int64_t count = n == 0 || distance <= 0 ? 0 : (distance - 1) / stride + 1;
    cuts[axis] = {count == 0 ? 0 : first, count <= 1 ? 1 : step, count};
  }
  return cuts;
}

Inferred infer_slice(const OpCall& call) {
  Shape shape;
  for (const Cut& cut : TW_TRY(cuts_of(call))) shape.push_back(cut.count);
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

std::vector<Tensor> define_slice(const OpCall& call, const std::vector<Tensor>& in) {
  const std::vector<Cut> cuts = *cuts_of(call);
  return {compute(call.op, dims_of((*infer(call))[0].shape), [&](const Indices& at) {
    Indices from;
    for (size_t i = 0; i < at.size(); ++i)
      from.push_back(affine(at[i], cuts[i].step, cuts[i].begin));
    return in[0](from);
  })};
}

Inferred infer_expand(const OpCall& call) {
  for (const int64_t extent : int_values(call, 1))
    if (extent < 0) return invalid(call, fmt::format("a size is {}", extent));
  const Shape shape = TW_TRY(broadcast(call.inputs[0].shape, int_values(call, 1)));
  return one_output(call, call.inputs[0].dtype, shape);
}

std::vector<Tensor> define_expand(const OpCall& call, const std::vector<Tensor>& in) {
  return {compute(call.op, dims_of((*infer(call))[0].shape),
                  [&](const Indices& at) { return broadcast_load(in[0], at); })};
}

Inferred infer_tile(const OpCall& call) {
  Shape shape = call.inputs[0].shape;
  const std::vector<int64_t> repeats = int_values(call, 1);
  if (repeats.size() != shape.size())
    return invalid(call,
                   fmt::format("{} repeats for an input of rank {}", repeats.size(), shape.size()));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (repeats[i] < 0) return invalid(call, fmt::format("repeat {} on axis {}", repeats[i], i));
    if (__builtin_mul_overflow(shape[i], repeats[i], &shape[i]))
      return invalid(call, fmt::format("repeat {} on axis {}", repeats[i], i));
  }
  return one_output(call, call.inputs[0].dtype, shape);
}

std::vector<Tensor> define_tile(const OpCall& call, const std::vector<Tensor>& in) {
  const Shape shape = (*infer(call))[0].shape;
  return {compute(call.op, dims_of(shape), [&](const Indices& at) {
    Indices from;
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t n = in[0].dim(i);
      from.push_back(n <= 1 ? int_imm(0) : n == shape[i] ? at[i] : at[i] % n);
    }
    return in[0](from);
  })};
}

Inferred infer_block(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 4));
  const Shape& s = call.inputs[0].shape;
  const int64_t b = call.attrs.get_int("blocksize", 0);
  if (b < 1) return invalid(call, fmt::format("blocksize is {}", b));
  const std::string mode = call.attrs.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return invalid(call, fmt::format("mode is '{}'", mode), "expected DCR or CRD");
  if (call.op == "DepthToSpace") {
    if (s[1] % (b * b) != 0)
      return invalid(call, fmt::format("{} channels do not divide by {} * {}", s[1], b, b));
    return std::vector<TensorType>{
        {call.inputs[0].dtype, {s[0], s[1] / (b * b), s[2] * b, s[3] * b}}};
  }
  if (s[2] % b != 0 || s[3] % b != 0)
    return invalid(call, fmt::format("{} x {} does not divide by {}", s[2], s[3], b));
  return std::vector<TensorType>{{call.inputs[0].dtype, {s[0], s[1] * b * b, s[2] / b, s[3] / b}}};
}

std::vector<Tensor> define_block(const OpCall& call, const std::vector<Tensor>& in) {
  const Shape shape = (*infer(call))[0].shape;
  const int64_t b = call.attrs.get_int("blocksize", 1);
  const bool to_space = call.op == "DepthToSpace";
  const bool depth_last = call.attrs.get_string("mode", "DCR") == "CRD";
  return {compute(call.op, dims_of(shape, {"n", "c", "h", "w"}), [&](const Indices& at) {
    if (to_space) {
      const Expr place = (at[2] % b) * b + at[3] % b;
      const Expr c = depth_last ? at[1] * (b * b) + place : place * shape[1] + at[1];
      return in[0]({at[0], c, at[2] / b, at[3] / b});
    }
    const int64_t channels = in[0].dim(1);
    const Expr place = depth_last ? at[1] % (b * b) : at[1] / channels;
    const Expr c = depth_last ? at[1] / (b * b) : at[1] % channels;
    return in[0]({at[0], c, at[2] * b + place / b, at[3] * b + place % b});
  })};
}

}  // namespace

void add_rearrange_ops(std::vector<OpDef>& table) {
  table.push_back(movement_row("Reshape", 2, 2, infer_reshape, define_reshaped, {1}));
  table.push_back(movement_row("Flatten", 1, 1, infer_flatten, define_reshaped));
  table.push_back(movement_row("Squeeze", 1, 2, infer_squeeze, define_reshaped, {1}));
  table.push_back(movement_row("Unsqueeze", 2, 2, infer_unsqueeze, define_reshaped, {1}));
  table.push_back(movement_row("Transpose", 1, 1, infer_transpose, define_transpose));
  table.push_back(movement_row("Concat", 1, -1, infer_concat, define_concat));
  table.push_back(movement_row("Split", 1, 2, infer_split, define_split, {1}));
  table.push_back(movement_row("Slice", 3, 5, infer_slice, define_slice, {1, 2, 3, 4}));
  table.push_back(movement_row("Expand", 2, 2, infer_expand, define_expand, {1}));
  table.push_back(movement_row("Tile", 2, 2, infer_tile, define_tile, {1}));
  table.push_back(movement_row("DepthToSpace", 1, 1, infer_block, define_block));
  table.push_back(movement_row("SpaceToDepth", 1, 1, infer_block, define_block));
}

void add_movement_ops(std::vector<OpDef>& table) {
  add_rearrange_ops(table);
  add_index_ops(table);
  add_pad_ops(table);
  add_constant_ops(table);
  add_einsum_op(table);
}

}  // namespace tilewright::tensor
