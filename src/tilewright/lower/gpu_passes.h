// The steps of lower_for_gpu, one file each.
#pragma once

#include <map>

#include "tilewright/ir/stmt.h"
#include "tilewright/lower/gpu.h"

namespace tilewright::lower {

using ThreadLoops = std::map<Var, const For*>;
Stmt make_sync();
/// Whether `s` or anything inside it satisfies the predicate.
bool contains(const Stmt& s, bool (*predicate)(const Stmt&));

/// Gives `local` buffers that are allocated outside thread loops an axis per thread loop in front:
/// `C[4*ty + i, 4*tx + j]` => `C[ty, tx, i, j]`. errors: Unsupported (threads share elements).
Result<Func> privatize(const Func& func);

/// In pipelined loops, copies into asynchronous buffers that threads have to make themselves (what
/// is copied lies apart, or is computed) read first, into registers, and store after the rest of
/// the loop's body, which hides how long memory takes; their buffers are no longer asynchronous.
///   rewrite:  for t { P[t + d] = f(A[..])  .. P[t] .. }  =>
///             for t { h = f(A[..])  .. P[t] ..  P[t + d] = h }
/// requires: what `pipeline` makes sure of: the rest uses other parts of the ring.
Func hold_copies(const Func& func);

/// Inserts calls of `sync.block` between statements of a block's threads that use the same elements
/// of memory the block shares, one of them writing, and where a loop comes round to such a pair.
/// Whole buffers count: what threads do with memory of their own block only may get a barrier more
/// than it needs.
Stmt insert_syncs(const Stmt& kernel);

}  // namespace tilewright::lower
