// The text form of tensor expressions, for `.tw` files and quick experiments:
//
//   # matrix product, then ReLU
//   tensor gemm(A: f32[m, k], const B: f32[k, n]) where m = 64, n = 48, k = 32 {
//     C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
//     D[i in m, j in n] = max(C[i, j], 0)
//     return D
//   }
//
// A reduction (sum, prod, max, min over named indices) is a whole right-hand side. Expressions have
// the operators of the IR text, `select(c, a, b)`, min, max, conversions `f32(x)` and the functions
// of ir/expr.h. Sizes and literals take the type of the other operand; index variables are i64.
// Every read must provably stay inside its tensor, at least under the `select` or `&&` around it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tilewright/ir/stmt.h"

namespace tilewright::tensor {

/// The program of a `.tw` file: a `tensor` as above (`sizes` replaces values of its `where`), or a
/// `func` in IR text (ir/text.h). errors: Parse with line:column, the line and a caret; Invalid if
/// `sizes` names something the file does not have.
Result<Func> parse_tensor_file(std::string_view text,
                               const std::map<std::string, int64_t>& sizes = {});

}  // namespace tilewright::tensor
