// The passes, one file each; lower.cc holds the table.
#pragma once

#include <set>
#include <string>

#include "tilewright/arith/bounds.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// Dissolves blocks: iterations become their bindings, guards become ifs: `block C(i: space 8 = 2*o
/// + p) where p < 3 { A[i] = x }` => `if p < 3 { A[2*o + p] = x }`. Terms that add nothing are
/// left out: `A[i] += select(p < 3, x, -0.0)` => `if p < 3 { A[i] += x }`.
Result<Func> bind_iters(const Func& func, const hw::CpuTarget& target);

/// Canonical index arithmetic; loops of extent 1 or 0, guards and conditions that are constant
/// disappear.
Result<Func> simplify(const Func& func, const hw::CpuTarget& target);

/// Moves each Alloc into the innermost Seq that holds all uses and carries no value from one
/// iteration to the next; unused ones disappear.
Result<Func> place_allocs(const Func& func, const hw::CpuTarget& target);

/// Shrinks allocations to the footprint touched in their scope: `alloc T: f32[64]`, used at
/// `T[16*o + i]` inside loop o => `alloc T: f32[16]`, used at `T[i]`.
Result<Func> compact(const Func& func, const hw::CpuTarget& target);

/// Splits loops at the first iteration for which a guard may fail: `for o in 4, i in 16 { if
/// 16*o + i < 55 { B } }` => `for o in 3, i in 16 { B } for i in 7 { B }`.
Result<Func> peel(const Func& func, const hw::CpuTarget& target);

/// Moves guards out of loops that they do not depend on, and joins neighbours under one guard:
/// `for i in 8 { if p < 3 { B } }` => `if p < 3 { for i in 8 { B } }`.
Result<Func> hoist_guards(const Func& func, const hw::CpuTarget& target);

/// Replaces `unroll` loops by copies of their body, in order; loops that would exceed the statement
/// budget become serial.
Result<Func> unroll(const Func& func, const hw::CpuTarget& target);

/// Expands f32 (and f16, bf16 through f32) exp, log, tanh, sigmoid, erf, rsqrt into arithmetic that
/// vectorises; relative error <= 1e-6, exact at NaN, infinities and zero.
Result<Func> expand_math(const Func& func, const hw::CpuTarget& target);

// --- Shared by passes.

/// Statement after removing unit and empty loops, constant guards and conditions; index arithmetic
/// is simplified.
Stmt tidy(const Stmt& s, const arith::Bounds& bounds);

/// The terms of a conjunction, in order.
std::vector<Expr> conjuncts(const Expr& condition);
/// Their conjunction; absent if there is none.
Expr conjunction(const std::vector<Expr>& terms);

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
