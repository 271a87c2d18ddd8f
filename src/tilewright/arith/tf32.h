// TF32, the numbers that matrix instructions of GPUs multiply in place of f32: 8 bits of exponent
// and 10 of mantissa.
#pragma once

#include "tilewright/ir/expr.h"

namespace tilewright::arith {

/// The nearest such number to `x`, of two the one farther from zero; NaN stays NaN. Four integer
/// operations and a test. requires: `x` is f32, and cheap: it stands there three times.
Expr round_to_tf32(const Expr& x);

/// The `x` of round_to_tf32(x); an empty handle for anything else.
Expr rounded_to_tf32(const Expr& e);

}  // namespace tilewright::arith
