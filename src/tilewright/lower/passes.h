// The passes, one file each; lower.cc holds the table with their names.
#pragma once

#include <set>
#include <string>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

// --- For CPUs; GPUs use some of them.

/// Dissolves blocks: iterations become their bindings, guards become ifs: `block C(i: space 8 = 2*o
/// + p) where p < 3 { A[i] = x }` => `if p < 3 { A[2*o + p] = x }`. Terms that add nothing are
/// left out: `A[i] += select(p < 3, x, -0.0)` => `if p < 3 { A[i] += x }`.
Result<Func> bind_iters(const Func& func);

/// Makes one parallel loop of several that follow each other, write parts of the same buffers and
/// touch nothing that another writes: `for a in 1 parallel { S } for b in 3 parallel { T }` =>
/// `for a in 4 parallel { if a < 1 { S } else { T } }`.
Result<Func> join_parallel(const Func& func);

/// Canonical index arithmetic; loops of extent 1 or 0, guards and conditions that are constant
/// disappear.
Result<Func> simplify(const Func& func);

/// Moves each Alloc into the innermost Seq that holds all uses and carries no value from one
/// iteration to the next; unused ones disappear.
Result<Func> place_allocs(const Func& func);

/// Shrinks allocations to the footprint touched in their scope: `alloc T: f32[64]`, used at
/// `T[16*o + i]` inside loop o => `alloc T: f32[16]`, used at `T[i]`.
Result<Func> compact(const Func& func);

/// Splits loops at the first iteration for which a guard may fail: `for o in 4, i in 16 { if
/// 16*o + i < 55 { B } }` => `for o in 3, i in 16 { B } for i in 7 { B }`.
Result<Func> peel(const Func& func);

/// Moves guards out of loops that they do not depend on, and joins neighbours under one guard:
/// `for i in 8 { if p < 3 { B } }` => `if p < 3 { for i in 8 { B } }`.
Result<Func> hoist_guards(const Func& func);

/// Replaces `unroll` loops by copies of their body, in order; loops that would exceed the statement
/// budget become serial.
Result<Func> unroll(const Func& func);

/// Expands f32 (and f16, bf16 through f32) exp, log, tanh, sigmoid, erf, rsqrt into arithmetic that
/// vectorises; relative error <= 1e-6, exact at NaN, infinities and zero.
Result<Func> expand_math(const Func& func);

// --- For FPGAs.

/// Blocks lose their marks in lowering, loops keep them: the `port` of a block goes to a loop of
/// its own around it.
Result<Func> keep_ports(const Func& func);

/// Takes guards away from tiles on the chip that go over the end of a loop: copies fill the rest
/// with zeros, sums add them. `if 8*t + a < 10 { W[a] = B[8*t + a] }` =>
/// `W[a] = select(8*t + a < 10, B[8*t + a], 0)`, and `if 8*t + a < 10 { C[a] += P[l] * W[a] }`
/// loses its guard where C[a] is not written elsewhere.
Result<Func> whole_tiles(const Func& func);

// --- For GPUs.

/// Blocks lose their marks in lowering, allocations keep them: a shared buffer whose writers are
/// all marked `async` gets the mark itself, `async=bulk` if all of them are.
Result<Func> keep_async_marks(const Func& func);

/// Gives buffers of scope `warp` the layout of the instructions that use them: an axis of lanes in
/// front, axes of tiles in place of those of elements, an axis of registers behind. With a layout
/// of 16 x 8 tiles: `C: f32[64,32]`, `C[i, j]` => `C: f32[32, 4, 4, 4]`,
/// `C[lane(i % 16, j % 8), i/16, j/8, register(i % 16, j % 8)]`. Calls become calls of
/// `lanes_form`. errors: Unsupported (no instruction uses a buffer, or two in different ways; an
/// operand is in the wrong memory or does not begin on a tile).
Result<Func> fragments(const Func& func);

/// Gives `local` buffers that are allocated outside thread loops an axis per thread loop in front:
/// `C[4*ty + i, 4*tx + j]` => `C[ty, tx, i, j]`. errors: Unsupported (threads share elements).
Result<Func> privatize(const Func& func);

/// In pipelined loops, copies into asynchronous buffers that threads have to make themselves (what
/// is copied lies apart, or is computed) read first, into registers, and store after the rest of
/// the loop's body, which hides how long memory takes; their buffers are no longer asynchronous.
///   rewrite:  for t { P[t + d] = f(A[..])  .. P[t] .. }  =>
///             for t { h = f(A[..])  .. P[t] ..  P[t + d] = h }
/// requires: what `pipeline` makes sure of: the rest uses other parts of the ring.
Result<Func> hold_copies(const Func& func);

// --- For each kernel of a GPU.

/// Inserts calls of `sync.block` between statements of a block's threads that use the same elements
/// of memory the block shares, one of them writing, and where a loop comes round to such a pair.
/// Whole buffers count: what threads do with memory of their own block only may get a barrier more
/// than it needs.
Result<Func> insert_syncs(const Func& kernel);

/// Inserts commits and waits into a kernel with its barriers. In loops marked `pipeline=depth` each
/// iteration starts one group of copies, and before a barrier all but the last depth - 2 are
/// waited for; elsewhere all.
Result<Func> insert_waits(const Func& kernel);

/// Inserts waits for products of groups of warps (lower/gpu_products.h) into a kernel with its
/// barriers and waits for copies: in pipelined loops whose copies the copy engine makes, the
/// products of an iteration run beside those of the next.
Result<Func> wait_for_products(const Func& kernel);

// --- Shared by passes.

/// Statement after removing unit and empty loops, constant guards and conditions; index arithmetic
/// is simplified.
Stmt tidy(const Stmt& s, const arith::Bounds& bounds);

/// The terms of a conjunction, in order.
std::vector<Expr> conjuncts(const Expr& condition);
/// Their conjunction; absent if there is none.
Expr conjunction(const std::vector<Expr>& terms);

bool reads_memory(const Expr& e);
/// The condition of an `if` without `else` that no statement can change, since it reads no memory;
/// absent for all other statements.
Expr lasting_guard(const Stmt& s);

/// Number of statements in `s`.
int64_t count_statements(const Stmt& s);

/// Names of loops, blocks and buffers in a Func; hands out unused ones.
class Namer {
 public:
  explicit Namer(const Func& func);
  /// `base` + `suffix`, made unique by a number.
  std::string fresh(const std::string& base, const std::string& suffix);

 private:
  std::set<std::string> used_;
};

}  // namespace tilewright::lower
