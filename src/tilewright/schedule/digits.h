// Digits: `x / c` and `x % c` of loops (as fuse makes them) written as sums of independent digits.
#pragma once

#include <functional>
#include <vector>

#include "tilewright/arith/bounds.h"

namespace tilewright::schedule {

/// A variable, or a sum under `/` and `%`, cut into digits: value = sum of digit * cut.
struct Digits {
  Var var;                       ///< the variable, or a name for `base`
  Expr base;                     ///< what `var` stands for; absent for a variable
  std::vector<int64_t> cuts{1};  ///< ascending, each divides the next
  std::vector<Var> digits;       ///< one per cut; empty if the cuts do not fit each other
  bool ragged = false;           ///< the top digit does not reach all combinations
};

/// Finds and names the digits that some expressions need.
class DigitTable {
 public:
  /// Records where variables and sums are cut by `/` and `%` with constants.
  void find(const Expr& e);
  /// Makes the digits and binds them in `bounds`. `sums`: cut sums too, not only variables.
  void make(arith::Bounds& bounds, bool sums);
  /// `e` with digits for what was cut.
  Expr expand(const Expr& e) const;
  /// The sum behind a name, its own variables in digits.
  Expr expand_base(const Expr& base) const;
  const std::vector<Digits>& entries() const { return entries_; }
  const Digits* of(const Var& var) const;

 private:
  const Digits* of_base(const Expr& base) const;
  std::vector<Digits> entries_;
};

}  // namespace tilewright::schedule
