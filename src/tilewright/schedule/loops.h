// Replacing a loop's variable by an expression of new loops: the core of split, fuse and cut.
#pragma once

#include "tilewright/schedule/tree.h"

namespace tilewright::schedule {

/// `s` with `var` replaced by `value` in bindings, guards, extents and shapes; bindings and guards
/// that mentioned it are simplified. `guard` (may be absent) is added to every block. `bounds`
/// holds what is around `s`, the variables of `value` included.
Stmt replace_loop_var(const Stmt& s, const Var& var, const Expr& value, const Expr& guard,
                      const arith::Bounds& bounds);

/// Shrinks loops to the iterations that the guards of all their blocks leave, whatever the loops
/// inside do, and drops what the new extents prove.
Stmt shrink_guarded(const Stmt& s, const arith::Bounds& bounds);

/// The loops of a perfect nest from `outer` down: each is the only statement of the one before.
std::vector<Id> perfect_nest(const Tree& tree, Id outer);

}  // namespace tilewright::schedule
