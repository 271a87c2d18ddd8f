// The same sum of products in another type.
//
//   C[i, j] += A[i, l] * B[l, j]; D = max(C + bias, 0)      all in f32, wanted in i8
//     ->  A, B in i8, products and C, bias, D in i32
//
// Operands of the sum, and copies that pad them, get the type; all else that of its sums.
#pragma once

#include "tilewright/base/result.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::rules {

/// `func` itself where its operands have that type already; else a program of its own name.
/// errors: Unsupported: no single sum of products; an operator or a number that the types lack.
Result<Func> with_operands(const Func& func, DType dtype);

}  // namespace tilewright::rules
