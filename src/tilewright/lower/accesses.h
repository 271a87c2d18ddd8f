// Every access to one buffer inside a statement, with what is known where it happens.
#pragma once

#include <vector>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

struct BufferAccess {
  Buffer buffer;
  std::vector<Expr> indices;     ///< over loop variables (iterations are substituted)
  std::vector<Expr> sizes;       ///< of a region argument; empty for a load or store
  bool reads = false;            ///< a load, a combining store or a region
  bool sets = false;             ///< a plain store
  bool opaque = false;           ///< a region: direction unknown
  std::vector<Var> vars;         ///< loops between the statement and the access, outermost first
  std::vector<Expr> conditions;  ///< guards, ifs and select conditions on the way
  arith::Bounds bounds;          ///< all variables, with the conditions assumed
  arith::Bounds unguarded;       ///< the same without the conditions
  arith::Bounds outer;           ///< as handed in, with the conditions assumed
};

/// In program order; within one store the loads come before it.
std::vector<BufferAccess> accesses_of(const Stmt& s, const Buffer& buffer,
                                      const arith::Bounds& outer);

}  // namespace tilewright::lower
