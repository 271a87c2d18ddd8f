// Rows of Winograd's transforms as expressions: shared by the operators of all layouts.
#pragma once

#include <functional>
#include <vector>

#include "tilewright/ir/expr.h"

namespace tilewright::tensor {

using Coefficients = std::vector<double>;
/// The j-th element of a vector.
using Terms = std::function<Expr(int64_t)>;

/// Sum of c[j] * term(j) over c[j] != 0, positive ones first; absent if there is none. A factor
/// that all have is applied to the sum, so that the sums of two rows are the same expression.
Expr sum_of(const Coefficients& c, const Terms& term);
/// One row of B^T: of the rows for points p and -p, one is the sum and one the difference of the
/// terms at even and at odd places.
Expr input_row(const Coefficients& row, const Terms& term);
/// One row of A^T: points p and -p stand side by side and differ in the sign at most.
Expr output_row(const Coefficients& row, const Terms& term);

using RowRule = Expr (*)(const Coefficients&, const Terms&);
/// Row `at` of matrix * vector, where the row is an index: constant once its loop is unrolled.
Expr row_of(const std::vector<double>& matrix, int64_t rows, const Expr& at, RowRule rule,
            const Terms& term);

}  // namespace tilewright::tensor
