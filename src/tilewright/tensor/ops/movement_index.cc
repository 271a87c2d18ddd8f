// Operators whose places come from index tensors or from comparisons of indices.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/counted.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

Inferred infer_gather(const OpCall& call) {
  TW_TRY_STATUS(require_int(call, 1));
  const Shape& data = call.inputs[0].shape;
  const Shape& indices = call.inputs[1].shape;
  const auto axis =
      static_cast<size_t>(TW_TRY(normalize_axis(call.attrs.get_int("axis", 0), data.size())));
  TW_TRY_STATUS(require_indices(call, 1, data[axis]));
  const auto cut = data.begin() + static_cast<std::ptrdiff_t>(axis);
  Shape shape(data.begin(), cut);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), cut + 1, data.end());
  if (data[axis] == 0 && element_count(shape) != 0)
    return invalid(call, fmt::format("axis {} has no elements to take", axis),
                   fmt::format("data {}, indices {}", to_string(data), to_string(indices)));
  return one_output(call, call.inputs[0].dtype, shape);
}

std::vector<Tensor> define_gather(const OpCall& call, const std::vector<Tensor>& in) {
  const auto axis = *normalize_axis(call.attrs.get_int("axis", 0), in[0].rank());
  const auto rank = static_cast<std::ptrdiff_t>(call.inputs[1].shape.size());
  return {compute(call.op, dims_of((*infer(call))[0].shape), [&](const Indices& at) {
    const auto first = at.begin() + axis;
    Indices from(at.begin(), first);
    from.push_back(
        index_value(call, 1, in[1], {first, first + rank}, in[0].dim(static_cast<size_t>(axis))));
    from.insert(from.end(), first + rank, at.end());
    return in[0](from);
  })};
}

Inferred infer_gather_elements(const OpCall& call) {
  TW_TRY_STATUS(require_int(call, 1));
  const Shape& data = call.inputs[0].shape;
  const Shape& indices = call.inputs[1].shape;
  const auto axis =
      static_cast<size_t>(TW_TRY(normalize_axis(call.attrs.get_int("axis", 0), data.size())));
  bool fits = indices.size() == data.size();
  for (size_t i = 0; fits && i < data.size(); ++i) fits = i == axis || indices[i] <= data[i];
  if (!fits || (data[axis] == 0 && element_count(indices) != 0))
    return invalid(
        call, "the indices do not fit the data",
        fmt::format("data {}, indices {}, axis {}", to_string(data), to_string(indices), axis));
  TW_TRY_STATUS(require_indices(call, 1, data[axis]));
  return std::vector<TensorType>{{call.inputs[0].dtype, indices}};
}

std::vector<Tensor> define_gather_elements(const OpCall& call, const std::vector<Tensor>& in) {
  const auto axis =
      static_cast<size_t>(*normalize_axis(call.attrs.get_int("axis", 0), in[0].rank()));
  return {compute(call.op, dims_of(call.inputs[1].shape), [&](const Indices& at) {
    Indices from = at;
    from[axis] = index_value(call, 1, in[1], at, in[0].dim(axis));
    return in[0](from);
  })};
}

Inferred infer_gather_nd(const OpCall& call) {
  TW_TRY_STATUS(require_int(call, 1));
  const Shape& data = call.inputs[0].shape;
  const Shape& indices = call.inputs[1].shape;
  const int64_t batch = call.attrs.get_int("batch_dims", 0);
  const auto ranks = static_cast<int64_t>(std::min(data.size(), indices.size()));
  if (batch < 0 || batch >= ranks)
    return invalid(call, fmt::format("batch_dims is {}", batch),
                   fmt::format("data {}, indices {}", to_string(data), to_string(indices)));
  const auto b = static_cast<size_t>(batch);
  const int64_t tuple = indices.back();
  if (tuple < 1 || tuple > static_cast<int64_t>(data.size() - b))
    return invalid(call, fmt::format("index tuples have {} elements", tuple),
                   fmt::format("data {} with {} batch axes", to_string(data), b));
  if (!std::equal(data.begin(), data.begin() + batch, indices.begin()))
    return invalid(call, "the batch axes differ",
                   fmt::format("data {}, indices {}", to_string(data), to_string(indices)));
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + batch + tuple, data.end());
  const bool empty = std::count(data.begin() + batch, data.begin() + batch + tuple, 0) > 0;
  if (empty && element_count(shape) != 0)
    return invalid(call, "an indexed axis has no elements", "data " + to_string(data));
  return one_output(call, call.inputs[0].dtype, shape);
}

std::vector<Tensor> define_gather_nd(const OpCall& call, const std::vector<Tensor>& in) {
  const auto batch = static_cast<std::ptrdiff_t>(call.attrs.get_int("batch_dims", 0));
  const Shape& indices = call.inputs[1].shape;
  const auto prefix = static_cast<std::ptrdiff_t>(indices.size()) - 1;
  return {compute(call.op, dims_of((*infer(call))[0].shape), [&](const Indices& at) {
    Indices from(at.begin(), at.begin() + batch);
    for (int64_t k = 0; k < indices.back(); ++k) {
      Indices where(at.begin(), at.begin() + prefix);
      where.push_back(int_imm(k));
      from.push_back(wrap_index(in[1](where), in[0].dim(from.size())));
    }
    from.insert(from.end(), at.begin() + prefix, at.end());
    return in[0](from);
  })};
}

Inferred infer_one_hot(const OpCall& call) {
  const Shape& indices = call.inputs[0].shape;
  const Array& depth = *call.inputs[1].value;
  // It may be a float. What a double cannot tell from 2^63 has no whole number.
  if (depth.size() != 1 || !(depth.get(0) >= 1) || depth.get(0) >= 0x1p63)
    return invalid(call, "the depth must be one positive number below 2^63",
                   depth.size() == 1 ? fmt::format("it is {}", depth.get(0))
                                     : "it has " + counted(depth.size(), "element"));
  TW_TRY_STATUS(require_shape(call, 2, {2}));
  const int64_t axis = TW_TRY(normalize_axis(call.attrs.get_int("axis", -1), indices.size() + 1));
  Shape shape = indices;
  shape.insert(shape.begin() + axis, static_cast<int64_t>(depth.get(0)));
  return one_output(call, call.inputs[2].dtype, shape);
}

std::vector<Tensor> define_one_hot(const OpCall& call, const std::vector<Tensor>& in) {
  const Shape shape = (*infer(call))[0].shape;
  const auto axis =
      static_cast<std::ptrdiff_t>(*normalize_axis(call.attrs.get_int("axis", -1), shape.size()));
  const int64_t depth = shape[static_cast<size_t>(axis)];
  return {compute(call.op, dims_of(shape), [&](const Indices& at) {
    Indices where = at;
    where.erase(where.begin() + axis);
    // Outside [-depth, depth) the index equals no position, before or after wrapping.
    const Expr index = cast(DType::I64, in[0](where));
    const Expr wrapped = select(index < 0, index + int_imm(depth), index);
    return select(eq(wrapped, at[static_cast<size_t>(axis)]), in[2]({int_imm(1)}),
                  in[2]({int_imm(0)}));
  })};
}

Inferred infer_reverse_sequence(const OpCall& call) {
  TW_TRY_STATUS(require_int(call, 1));
  const Shape& shape = call.inputs[0].shape;
  const int64_t time = call.attrs.get_int("time_axis", 0);
  const int64_t batch = call.attrs.get_int("batch_axis", 1);
  if (shape.size() < 2 || time < 0 || time > 1 || batch != 1 - time)
    return invalid(call, fmt::format("time_axis {} and batch_axis {} do not fit", time, batch),
                   fmt::format("they must be 0 and 1 in some order; input {}", to_string(shape)));
  TW_TRY_STATUS(require_shape(call, 1, {shape[static_cast<size_t>(batch)]}));
  return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
}

std::vector<Tensor> define_reverse_sequence(const OpCall& call, const std::vector<Tensor>& in) {
  const auto time = static_cast<size_t>(call.attrs.get_int("time_axis", 0));
  const int64_t steps = in[0].dim(time);
  return {compute(call.op, dims_of(in[0].shape()), [&](const Indices& at) {
    const Expr given = cast(DType::I64, in[1]({at[1 - time]}));
    const Expr length = min(max(given, int_imm(0)), int_imm(steps));
    Indices from = at;
    from[time] = select(at[time] < length, length - int_imm(1) - at[time], at[time]);
    return in[0](from);
  })};
}

Inferred infer_trilu(const OpCall& call) {
  const InputInfo& x = call.inputs[0];
  if (x.shape.size() < 2)
    return invalid(call, "needs matrices", "the input is " + to_string(x.shape));
  TW_TRY_STATUS(require_int(call, 1));
  if (const InputInfo* k = call.input(1); k && element_count(k->shape) != 1)
    return invalid(call, "k must be one number", "its shape is " + to_string(k->shape));
  return std::vector<TensorType>{{x.dtype, x.shape}};
}

std::vector<Tensor> define_trilu(const OpCall& call, const std::vector<Tensor>& in) {
  const bool upper = call.attrs.get_int("upper", 1) != 0;
  Expr k = int_imm(0);
  if (const InputInfo* info = call.input(1))
    k = info->value ? int_imm(info->value->get_int(0))
                    : cast(DType::I64, in[1](Indices(info->shape.size(), int_imm(0))));
  return {compute(call.op, dims_of(in[0].shape()), [&](const Indices& at) {
    const Expr diagonal = at[at.size() - 1] - at[at.size() - 2];
    return select(upper ? diagonal >= k : diagonal <= k, in[0](at), const_of(in[0].dtype(), 0));
  })};
}

}  // namespace

void add_index_ops(std::vector<OpDef>& table) {
  table.push_back(movement_row("Gather", 2, 2, infer_gather, define_gather));
  table.push_back(
      movement_row("GatherElements", 2, 2, infer_gather_elements, define_gather_elements));
  table.push_back(movement_row("GatherND", 2, 2, infer_gather_nd, define_gather_nd));
  table.push_back(movement_row("OneHot", 3, 3, infer_one_hot, define_one_hot, {1}));
  table.push_back(
      movement_row("ReverseSequence", 2, 2, infer_reverse_sequence, define_reverse_sequence));
  table.push_back(movement_row("Trilu", 1, 2, infer_trilu, define_trilu));
}

}  // namespace tilewright::tensor
