// Dependence tests: which loops must agree for two accesses to meet on one element.
#pragma once

#include <set>

#include "tilewright/schedule/access.h"

namespace tilewright::schedule {

/// What holds whenever two instances of accesses touch the same element.
struct Meeting {
  bool never = false;   ///< provably no common element
  std::set<Var> equal;  ///< loops that provably have the same value in both instances
};

/// Compares two index lists evaluated at two points that agree on every variable except `varying`.
/// Mixed-radix argument: `c*x + r` with |difference of r| < c fixes x; `x/c` and `x%c` together fix
/// x. requires: `bounds` holds ranges of all variables.
Meeting meet(const std::vector<Expr>& a, const std::vector<Expr>& b, const std::set<Var>& varying,
             const arith::Bounds& bounds);

/// A conflict that different iterations of `loop` may have, in words; absent if there is none.
/// Buffers allocated inside the loop are private to an iteration. `atomic_ok`: updates by blocks
/// marked atomic do not conflict.
std::optional<std::string> carried_by(const Tree& tree, Id loop, bool atomic_ok);

/// carried_by for every concurrent loop around any block named in `blocks`. errors: NotApplicable
/// with `requirement`.
Status check_concurrency(const Func& func, const std::vector<std::string>& blocks, int requirement);

/// A dependence that running the loops in the order `after` instead of `before` (the same loops,
/// both outermost first, perfectly nested down to the last of `before`) could turn round.
std::optional<std::string> reorder_conflict(const Tree& tree, const std::vector<Id>& before,
                                            const std::vector<Id>& after);

/// True if both subtrees may touch one element of a buffer and one of them writes it.
bool may_conflict(const Tree& tree, Id a, Id b);

}  // namespace tilewright::schedule
