// Shape arithmetic that operator rules share: broadcasting, axes, flat indices, common checks.
#pragma once

#include <string>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// What a shape rule gives.
using Inferred = Result<std::vector<TensorType>>;

/// NumPy broadcasting of two shapes. errors: Invalid, naming both shapes and the axis.
Result<Shape> broadcast(const Shape& a, const Shape& b);
/// The same over all present inputs of a call, from `first` on.
Result<Shape> broadcast_inputs(const OpCall& call, size_t first = 0);
/// Indices into a tensor of `shape` broadcast to the rank of `at`; 0 on axes of extent 1.
Indices broadcast_at(const Shape& shape, const Indices& at);
/// The element of `t` broadcast to an output indexed by `at`.
inline Expr broadcast_load(const Tensor& t, const Indices& at) {
  return t(broadcast_at(t.shape(), at));
}

/// Axes for a shape: the given names, then i0, i1, ... for the rest.
std::vector<Dim> dims_of(const Shape& shape, const std::vector<std::string>& names = {});

/// A negative axis counts from the end. errors: Invalid if outside [-rank, rank).
Result<int64_t> normalize_axis(int64_t axis, size_t rank);
/// Several axes, without duplicates, in the given order. errors: Invalid.
Result<std::vector<int64_t>> normalize_axes(std::vector<int64_t> axes, size_t rank);

/// Row-major position of `at` in `shape`; and back. Axes of extent 1 get index 0.
Expr flatten_index(const Indices& at, const Shape& shape);
Indices unflatten_index(const Expr& flat, const Shape& shape);

/// `begin + i * step` without terms that change nothing.
Expr affine(const Expr& i, int64_t step, int64_t begin = 0);
/// 0 <= i < extent as a condition; a side that always holds (lo >= 0, hi < extent) is left out. The
/// empty handle means it always holds.
Expr inside(const Expr& i, int64_t lo, int64_t hi, int64_t extent);
/// Both conditions; an empty handle means true.
Expr both(Expr a, Expr b);
/// `value` where `condition` holds, else `otherwise`; just `value` if the condition is empty.
Expr guarded(Expr condition, Expr value, Expr otherwise);

/// The constant `value` of the type of `like`.
inline Expr num(const Expr& like, double value) { return const_of(like.dtype(), value); }
/// A constant of `dtype` with the given real value.
inline Expr constant(DType dtype, double value) { return const_of(dtype, value); }
/// Arithmetic type of an operator's inside: f32 for f16 and bf16, else the type itself.
DType compute_type(DType dtype);

/// Element types an input may have.
enum class Types { Any, Float, Number, Signed, Int, Unsigned, Bool };
bool allows(Types types, DType dtype);

/// `leaky_relu` for LeakyRelu: what a definition calls its result.
std::string tensor_name(const OpCall& call);
/// Input `i` broadcast to an output indexed by `at`; an immediate if it is one element whose value
/// is known. requires: the input is present.
Expr element(const OpCall& call, const std::vector<Tensor>& inputs, size_t i, const Indices& at);
/// Converts by ONNX rules: anything non-zero is true, the rest as Cast.
Expr convert(DType dtype, Expr a);
/// Element type of an ONNX TensorProto.DataType number. errors: Unsupported.
Result<DType> onnx_dtype(int64_t number);

// Checks for shape rules; all name the operator, the input's position and what was found.
/// errors: Invalid if present inputs `first`.. differ in dtype.
Status require_same_dtypes(const OpCall& call, size_t first = 0);
/// errors: Invalid if input `i` (when present) is of another type.
Status require_types(const OpCall& call, size_t i, Types types);
/// The same for Types::Float.
Status require_float(const OpCall& call, size_t i = 0);
/// errors: Invalid if input `i` does not have the rank.
Status require_rank(const OpCall& call, size_t i, size_t rank);
/// errors: Invalid if input `i` (when present) does not have exactly this shape.
Status require_shape(const OpCall& call, size_t i, const Shape& shape);
/// An attribute of at least 1. errors: Invalid.
Result<int64_t> positive_attr(const OpCall& call, const char* key);
/// An attribute with entries of at least `least`; `rank` of them, or any number if that is 0.
/// errors: Invalid.
Result<std::vector<int64_t>> axis_ints(const OpCall& call, const char* key, size_t rank,
                                       int64_t least);
/// An Invalid error that starts with the operator's name.
tl::unexpected<Error> invalid(const OpCall& call, const std::string& what,
                              const std::string& why = {}, const std::string& fix = {});
/// An Unsupported error that starts with the operator's name.
tl::unexpected<Error> unsupported(const OpCall& call, const std::string& what,
                                  const std::string& why = {}, const std::string& fix = {});

/// Integers of a constant input; empty if the input is absent. requires: its value is known (infer
/// has checked it).
std::vector<int64_t> int_values(const OpCall& call, size_t i);

}  // namespace tilewright::tensor
