// What blocks read and write, in terms of the loops around them.
#pragma once

#include <vector>

#include "tilewright/arith/region.h"
#include "tilewright/schedule/tree.h"

namespace tilewright::schedule {

/// One load, store or intrinsic region of a block.
struct Access {
  Buffer buffer;
  std::vector<Expr> indices;  ///< of loops around the block and of `inner`
  bool write = false;
  bool update = false;  ///< a write that combines with the old value
  Combine combine = Combine::Set;
  /// Variables running over the region of an intrinsic's argument, with their extents.
  std::vector<std::pair<Var, Expr>> inner;
};

/// Every access of `block`, its guard and bindings included; bindings are substituted for
/// iterations. An updating store is one access (write and update).
std::vector<Access> accesses(const Block& block);

/// Who uses which buffer.
class Uses {
 public:
  explicit Uses(const Tree& tree);
  /// Blocks storing to `buffer`, in program order.
  std::vector<Id> writers(const Buffer& buffer) const { return users(buffer, true); }
  /// Blocks loading from `buffer` (updates of it alone do not count), in program order.
  std::vector<Id> readers(const Buffer& buffer) const { return users(buffer, false); }
  std::vector<Id> users(const Buffer& buffer) const;

 private:
  struct Use {
    Id block;
    Buffer buffer;
    bool write;
  };
  std::vector<Id> users(const Buffer& buffer, bool write) const;
  std::vector<Use> uses_;
};

/// The only Store of a block, or null.
const Store* single_store(const Block& block);
/// How a buffer comes to its values: one writer, or an init and a reduction.
struct Producer {
  Id init = kNone;  ///< the block that sets before `main` combines; kNone without
  Id main = kNone;  ///< sets (no init) or combines
};
/// Absent if the writers of `buffer` are anything else.
std::optional<Producer> producer_of(const Tree& tree, const Uses& uses, const Buffer& buffer);

/// Buffers loaded by `block` (guard and bindings included), without repetition.
std::vector<Buffer> sources(const Block& block);

/// The size of an axis of a box that could not be bounded.
inline constexpr int64_t kUnclipped = int64_t{1} << 40;
/// Elements at `indices` while `vars` run, not clipped to any shape; the result mentions only other
/// variables. Sees through `x / c` and `x % c` of fused loops.
arith::Box box_of(const std::vector<Expr>& indices, const std::vector<Var>& vars,
                  const arith::Bounds& bounds);
/// The same for an access with the variables of its region. `bounds` must hold the ranges of all
/// loops around.
arith::Box box_of(const Access& access, const std::vector<Var>& vars, const arith::Bounds& bounds);
/// Loop variables of `ids`.
std::vector<Var> vars_of(const Tree& tree, const std::vector<Id>& loops);
/// True if the variable of one of `loops` occurs free in `e`.
bool mentions_any(const Expr& e, const std::vector<Id>& loops, const Tree& tree);
/// Loops around `id` that are strictly inside `scope` (kNone: all).
std::vector<Id> loops_below(const Tree& tree, Id id, Id scope);

/// The part of the guard that does more than keep the iterations (`space_only`: those of kind
/// space) inside their extents.
std::vector<Expr> residual_guard(const Block& block, const arith::Bounds& bounds,
                                 bool space_only = false);
/// Whether the guard keeps the block from elements of its box. One of a sum that names reduction
/// loops alone only leaves terms out: each element gets its sum all the same.
bool leaves_elements_out(const Block& block, const arith::Bounds& bounds);

/// True if regrouping updates of this kind can change a result under `math`.
bool order_matters(MathMode math, DType dtype, Combine combine);

}  // namespace tilewright::schedule
