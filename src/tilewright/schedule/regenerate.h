// Building a block's nest anew at another place, and the facts that make this legal.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tilewright/schedule/access.h"
#include "tilewright/schedule/dependence.h"

namespace tilewright::schedule {

/// Directly before or after a statement.
struct Place {
  Id at = kNone;
  bool after = false;
  /// Blocks with a smaller id come first in program order.
  Id order(const Tree& tree) const { return after ? tree.end(at) : at; }
};

/// Which values an iteration takes: begin <= iteration < begin + size, clipped to its extent.
struct IterRange {
  Expr begin, size;
  bool whole = false;  ///< 0 .. extent
  bool keep = false;   ///< keeps its present binding, no loop of its own
};

/// A block with loops of its own around it.
struct Nest {
  std::vector<std::pair<Var, Expr>> loops;
  Block block;
  Stmt stmt() const;
  std::vector<Var> vars() const;
  /// `outer` with the ranges of the loops.
  arith::Bounds bounds(arith::Bounds outer) const;
};

/// For each axis of a store the iteration that runs along it: index = iteration + shift.
struct Axis {
  int iter = -1;  ///< -1: the index does not depend on iterations
  int64_t shift = 0;
};
/// Absent if some index is not of that form or an iteration indexes two axes.
std::optional<std::vector<Axis>> axes_of(const std::vector<Expr>& indices, const Block& block);

/// Ranges of the iterations of `block` such that indices with these `axes` cover `box`. Iterations
/// that index nothing run over their whole extent; scan iterations keep their binding. `widen`: a
/// range as large as the extent may become the whole extent (more instances, no guard).
std::vector<IterRange> ranges_of(const Block& block, const std::vector<Axis>& axes,
                                 const arith::Box& box, const arith::Bounds& bounds, bool widen);

/// The nest of `old` (as it is at `old_id`) over `ranges` at `place`, loops named as born. errors:
/// NotApplicable with `requirement` if its guard or a kept binding speaks of loops that are not
/// around the place.
Result<Nest> make_nest(const Tree& tree, Id old_id, const std::vector<IterRange>& ranges,
                       const Place& place, NamePool& names, int requirement);

/// A nest of a block that is new to the program, over `ranges` of its iterations.
Nest make_new_nest(const Block& block, const std::vector<IterRange>& ranges, NamePool& names,
                   arith::Bounds bounds);

/// A block `name` copying `from` to `to` element by element: iterations `iters[d]` with
/// `extents[d]` on each axis.
Block copy_block(const std::string& name, const std::vector<std::string>& iters,
                 const std::vector<Expr>& extents, const Buffer& from, const Buffer& to);

/// True if all elements of `box` have been set by one block when `place` is reached (needed before
/// reading more than any block reads now).
bool all_written(const Tree& tree, const Uses& uses, const Place& place, const Buffer& buffer,
                 const arith::Box& box, const arith::Bounds& bounds);

/// Why a read at `place` (inside loops `own` of its own; `bounds` holds everything around) might
/// not see final values; absent if it does. `old`: the block that makes an equal or larger read at
/// present, if any.
std::optional<std::string> not_final(const Tree& tree, const Uses& uses, const Place& place,
                                     const Access& read, const std::vector<Var>& own,
                                     const arith::Bounds& bounds, Id old);
/// not_final for every read of a nest but those of `except`.
std::optional<std::string> sources_not_final(const Tree& tree, const Uses& uses, const Place& place,
                                             const Nest& nest, Id old,
                                             const std::vector<Buffer>& except = {});

/// Why `nest` at `place` would not run exactly the instances that block `old` runs at present, each
/// once; absent if it does.
std::optional<std::string> other_instances(const Tree& tree, Id old, const Place& place,
                                           const std::vector<IterRange>& ranges);

/// Moves the allocation of `buffer` to the innermost sequence that holds all its users, if no
/// iteration of the loops passed reads what another one wrote.
Func sink_alloc(const Func& func, const Buffer& buffer);

/// Loops that hold `place` (`place.at` is inside them), outermost first.
std::vector<Id> loops_around(const Tree& tree, const Place& place);
/// True if a loop around the place, or `loop`, is of kind vector.
bool in_vector_loop(const Tree& tree, Id loop);

}  // namespace tilewright::schedule
