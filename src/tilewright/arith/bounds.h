// Facts about integer index expressions: ranges of variables, simplification, proofs.
// Never touches floating-point values: a float sub-expression is left exactly as it is.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tilewright/ir/stmt.h"
#include "tilewright/ir/walk.h"

namespace tilewright::arith {

/// What is known in a scope: ranges of variables and conditions that hold. A value: copy to extend.
class Bounds {
 public:
  Bounds() = default;
  /// Scalar parameters of `func` with their ranges.
  explicit Bounds(const Func& func);

  /// 0 <= var < extent.
  void bind(const Var& var, const Expr& extent);
  /// lo <= var <= hi (either may be absent).
  void bind_range(const Var& var, const Expr& lo, const Expr& hi);
  /// `condition` holds here; conjunctions are split.
  void assume(const Expr& condition);

  struct Range {
    Expr lo, hi;  ///< inclusive, may be absent
  };
  const std::map<Var, Range>& ranges() const { return ranges_; }
  const std::vector<Expr>& facts() const { return facts_; }

 private:
  std::map<Var, Range> ranges_;
  std::vector<Expr> facts_;
};

/// Canonical, usually smaller form with the same value wherever the bounds hold. Idempotent;
/// returns the same handle if nothing changed. Handles + - * / % min max, comparisons, && ||,
/// select, casts between integers; cancels `(16*k + i)/32` and `%` alike using ranges.
Expr simplify(const Expr& e, const Bounds& bounds = {});
/// Simplifies every index, extent, binding, guard and condition in `s`, tracking loops and guards.
Stmt simplify(const Stmt& s, const Bounds& bounds = {});

/// True only if `condition` holds for all values within the bounds.
bool prove(const Expr& condition, const Bounds& bounds);

/// Constant range [lo, hi] of an integer expression, if one can be shown.
std::optional<std::pair<int64_t, int64_t>> const_range(const Expr& e, const Bounds& bounds);

/// Smallest and largest value as expressions that do not mention `vars` (for region hulls and loop
/// maxima): bounds for all values of `vars` within their ranges. Absent if unknown.
std::optional<Expr> lower_bound(const Expr& e, const std::vector<Var>& vars, const Bounds& bounds);
std::optional<Expr> upper_bound(const Expr& e, const std::vector<Var>& vars, const Bounds& bounds);

/// constant + sum of coefficient * term; a term is a variable or an opaque non-affine
/// sub-expression.
struct Affine {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>>
      terms;  ///< in order of first appearance, no zero coefficients
  int64_t coefficient(const Var& var) const;  ///< 0 if absent
};
/// Always succeeds for integer expressions (worst case: one opaque term).
Affine as_affine(const Expr& e);
Expr to_expr(const Affine& a, DType dtype = DType::I64);

}  // namespace tilewright::arith
