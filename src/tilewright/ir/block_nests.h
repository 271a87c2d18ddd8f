// The blocks of a program with the loops that are theirs alone: what passes over whole axes read.
#pragma once

#include <vector>

#include "tilewright/ir/stmt.h"

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

/// Whether `s` calls an intrinsic.
bool has_call(const Stmt& s);

}  // namespace tilewright
