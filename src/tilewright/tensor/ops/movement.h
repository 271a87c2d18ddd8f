// What the tables of data movement share: the parts of the table, rows, and index values.
#pragma once

#include <string>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

// The parts of add_movement_ops, one per file.
void add_rearrange_ops(std::vector<OpDef>& table);  // Reshape, Transpose, Concat, Slice, ...
void add_index_ops(std::vector<OpDef>& table);      // Gather, OneHot, ReverseSequence, Trilu, ...
void add_pad_ops(std::vector<OpDef>& table);        // Pad, CenterCropPad
void add_constant_ops(std::vector<OpDef>& table);   // Constant, Range, Shape, EyeLike, ...
void add_einsum_op(std::vector<OpDef>& table);
// Parts of add_resize_ops: sampling at places computed at run time.
void add_grid_ops(std::vector<OpDef>& table);  // GridSample, AffineGrid
void add_roi_ops(std::vector<OpDef>& table);   // RoiAlign

using InferFn = Result<std::vector<TensorType>> (*)(const OpCall&);
using DefineFn = std::vector<Tensor> (*)(const OpCall&, const std::vector<Tensor>&);

/// A row of ONNX's domain whose definition is one or more plain computations.
OpDef movement_row(const char* name, int min_inputs, int max_inputs, InferFn infer, DefineFn define,
                   std::vector<int> constant_inputs = {});

/// The element type attribute `key` names (TensorProto's numbers), or `fallback` if it is absent or
/// 0. errors: Unsupported, naming the number.
Result<DType> dtype_attr(const OpCall& call, const std::string& key, DType fallback);

/// An index read from a tensor into an axis of `extent`: as i64, negative values count from the
/// end, and what is still outside is moved to the nearest element, so that no input reads out of
/// bounds.
Expr wrap_index(const Expr& value, int64_t extent);

/// The indices in input `i` at `at`: known values become immediates or skip the wrapping.
Expr index_value(const OpCall& call, size_t i, const Tensor& tensor, const Indices& at,
                 int64_t extent);

/// errors: Invalid if input `i` is not of integer type.
Status require_int(const OpCall& call, size_t i);

/// errors: Invalid if a known value of input `i` is outside [-extent, extent).
Status require_indices(const OpCall& call, size_t i, int64_t extent);

/// The only output type of an operator that may grow its input. errors: Capacity if the shape has
/// more elements than any memory here could hold.
Result<std::vector<TensorType>> one_output(const OpCall& call, DType dtype, const Shape& shape);

/// A table known at compile time, as a constant parameter.
Tensor const_table(const std::string& name, const Array& values);

}  // namespace tilewright::tensor
