// Regions: what part of a buffer a set of accesses touches.
#pragma once

#include "tilewright/arith/bounds.h"

namespace tilewright::arith {

/// A rectangle of a buffer. `exact`: every element of it is touched; else it is a hull.
struct Box {
  struct Dim {
    Expr begin, size;
  };
  std::vector<Dim> dims;
  bool exact = true;
};

/// Elements touched by `indices` while `vars` run over their ranges in `bounds`; the result
/// mentions only other variables. Axes that cannot be bounded fall back to the whole axis of
/// `shape` (hull). Exact also requires gap-free index sums (`4*o + i` with i in 4) and independent
/// axes. A box may reach over the ends of its axis (`o*16:+16` of 55) when its begin depends on
/// other variables: elements out there do not exist, and a known condition that only keeps an index
/// inside its axis leaves the box exact.
Box touched(const std::vector<Expr>& indices, const std::vector<Expr>& shape,
            const std::vector<Var>& vars, const Bounds& bounds);

/// Smallest box holding both (hull unless one provably holds the other).
Box hull(const Box& a, const Box& b, const Bounds& bounds);

/// True only if `inner` provably lies inside `outer`.
bool contains(const Box& outer, const Box& inner, const Bounds& bounds);
/// True only if the boxes provably share no element.
bool disjoint(const Box& a, const Box& b, const Bounds& bounds);

}  // namespace tilewright::arith
