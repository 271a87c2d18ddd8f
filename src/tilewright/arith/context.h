// What holds at a program point, in the form the simplifier asks for: intervals and inequalities.
#pragma once

#include <unordered_map>
#include <vector>

#include "tilewright/arith/affine.h"

namespace tilewright::arith {

/// Answers questions under `bounds`; conditions can be pushed and taken back in stack order.
class Context {
 public:
  /// requires: `bounds` outlives the context.
  explicit Context(const Bounds& bounds);

  /// Ranges of further variables; they are unique, so they are never taken back.
  void bind(const Var& var, const Expr& extent);
  void bind_range(const Var& var, const Expr& lo, const Expr& hi);

  /// Adds a condition that holds. requires: simplified.
  void assume(const Expr& condition);
  size_t mark() const { return known_.size(); }
  void rollback(size_t mark);
  bool has_facts() const { return !known_.empty(); }

  /// Interval of a simplified integer or bool expression, also of a sum.
  Interval range(const Expr& e);
  Interval range(const Affine& a);

  /// `e` as a sum equal to it as a mathematical integer: a wrapping operation stays one term.
  Affine affine(const Expr& e);
  /// True if evaluating `a` in `dtype` gives the mathematical value. i64 arithmetic on variables
  /// counts as exact (indices do not overflow), on loaded data only if its range shows it.
  bool exact(const Affine& a, DType dtype);

  /// True only if a >= 0 always.
  bool nonneg(const Affine& a);
  /// Truth of a bool expression that a known condition states literally.
  std::optional<bool> stated(const Expr& condition) const;

  /// Range of a variable as expressions.
  Bounds::Range var_range(const Var& var) const;
  struct Fact {
    Affine sum;  ///< sum >= 0
    size_t owner;
  };
  const std::vector<Fact>& inequalities() const { return inequalities_; }

 private:
  const Bounds::Range* find_range(const Var& var) const;
  bool is_data(const Expr& e);
  Interval compute_range(const Expr& e);
  Interval sum_range(const Expr& e, const Binary& b);
  Interval binary_range(const Binary& b, DType dtype);
  Interval var_interval(const Var& var);
  Interval pair_range(const Affine& a);
  Interval extremum_range(const Affine& a);
  void add_inequality(const Affine& a);
  bool search(const Affine& a, int depth);
  bool search_facts(const Affine& a, int depth);
  bool search_pair(const Affine& a, int depth);
  bool search_variable(const Affine& a, const Expr& term, int64_t c, int depth);
  bool search_term(const Affine& a, const Expr& term, int64_t c, int depth);
  bool search_product(const Affine& a, const Expr& term, int64_t c, int depth);
  bool search_symbolic_quotient(const Affine& a, const Expr& term, int64_t c, int depth);
  bool search_quotient(const Affine& a, const Expr& term, int64_t c, int depth);

  const std::map<Var, Bounds::Range>& outer_ranges_;
  std::map<Var, Bounds::Range> ranges_;  // of this context; these come first
  std::vector<Expr> known_;
  std::vector<Fact> inequalities_;
  struct Known {
    Expr e;  // keeps the node alive, so its address stays unique
    Interval interval;
  };
  std::unordered_map<const ExprNode*, Known> memo_;
  std::unordered_map<const ExprNode*, std::pair<Expr, bool>> data_;
  int depth_ = 0;
  int budget_ = 0;
};

}  // namespace tilewright::arith
