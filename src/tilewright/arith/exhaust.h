// Facts about index expressions that are shown by trying all values.
#pragma once

#include "tilewright/arith/bounds.h"

namespace tilewright::arith {

/// Whether `e` grows by one with `var`, whatever the other variables are: also where `/` and `%`
/// take a sum of variables apart and `e` puts it together again. False where there are too many
/// values to try.
bool counts_up(const Expr& e, const Var& var, const Bounds& bounds);

/// Whether `e` is a multiple of `n` for all values of its variables; false as above.
bool is_multiple(const Expr& e, int64_t n, const Bounds& bounds);

}  // namespace tilewright::arith
