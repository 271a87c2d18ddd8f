// The blocks of a program with the loops that are theirs alone, and accesses in other axes: what
// passes that join or split whole axes share.
#pragma once

#include <functional>
#include <vector>

#include "tilewright/ir/stmt.h"
#include "tilewright/ir/walk.h"

namespace tilewright {

/// A load or a store.
struct BlockAccess {
  Buffer buffer;
  std::vector<Expr> indices;
};

/// One block. `loops`: those around it with nothing else inside, outermost first.
struct BlockNest {
  const Block* block = nullptr;
  std::vector<const For*> loops;
  std::vector<BlockAccess> accesses;

  /// The iteration of `var`, or nullptr.
  const Iter* iter_of(const Var& var) const;
  /// The loop that runs over `iter` and over nothing else: serial, unmarked, of its constant
  /// extent; nullptr: there is none.
  const For* loop_of(const Iter& iter) const;
};

/// In program order. They point into `body`.
std::vector<BlockNest> block_nests(const Stmt& body);

/// The variable that `index` is, or nullptr.
const Var* plain_var(const Expr& index);

/// A program whose buffers get other axes.
struct AxisChange {
  BufferMap buffers;  ///< what stands for each; those that are not in it stay
  std::function<std::vector<Expr>(const Buffer& before, const std::vector<Expr>&)> indices;
  std::function<Stmt(const Stmt&)> other_stmt;  ///< what becomes of loops and blocks
  std::function<Expr(const Expr&)> other_expr;  ///< of expressions that are no loads; may be null
};

/// `func` with parameters, allocations and accesses changed; children before parents.
Func change_axes(const Func& func, const AxisChange& change);

/// Whether `s` calls an intrinsic.
bool has_call(const Stmt& s);

}  // namespace tilewright
