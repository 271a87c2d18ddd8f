// Sums of unrolled reductions as balanced trees.
#pragma once

#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// `for c in 4 unroll { C[k] += X[c] * W[c] }` becomes `C[k] += (p0 + p1) + (p2 + p3)`: tools for
/// high-level synthesis do not regroup sums of floats. Only where the type of the sum is an integer
/// or `math` permits it; other loops stay as they are.
Stmt balance_sums(const Stmt& body, MathMode math);

}  // namespace tilewright::codegen
