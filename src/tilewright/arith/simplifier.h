// The rewriting engine behind simplify: one object per call, or per statement walk.
#pragma once

#include <unordered_map>

#include "tilewright/arith/context.h"

namespace tilewright::arith {

class Simplifier {
 public:
  explicit Simplifier(const Bounds& bounds) : context_(bounds) {}
  Simplifier(const Simplifier&) = delete;
  Simplifier& operator=(const Simplifier&) = delete;

  /// The canonical form; the same handle if nothing changed.
  Expr run(const Expr& e);
  Context& context() { return context_; }

  /// Calls f while `condition` (simplified) holds.
  template <class F>
  auto under(const Expr& condition, F&& f) {
    if (!condition || as_int(condition)) return f();
    Memo outer;
    outer.swap(memo_);
    const size_t mark = context_.mark();
    context_.assume(condition);
    auto out = f();
    context_.rollback(mark);
    outer.swap(memo_);
    return out;
  }

  /// floor(n / d) and n - d * floor(n / d) for d > 0, as sums.
  std::optional<Affine> divide(const Affine& n, int64_t d, DType dtype);
  std::optional<Affine> modulo(const Affine& n, int64_t d, DType dtype);
  /// Puts x % d and x / d terms together again.
  void recombine(Affine& a, DType dtype);

 private:
  struct Entry {
    Expr from, to;  // `from` keeps the key's node alive
  };
  using Memo = std::unordered_map<const ExprNode*, Entry>;

  Expr dispatch(const Expr& e);
  Expr children(const Expr& e);
  Expr unary_node(const Expr& e, const Unary& x);
  Expr binary_node(const Expr& e, const Binary& x);
  Expr select_node(const Expr& e, const Select& x);
  Expr cast_node(const Expr& e, const Cast& x);

  Expr sum(const Expr& e);
  bool collect(const Expr& e, int64_t scale, Affine& out, int& fuel);
  bool collect_product(const Expr& a, const Expr& b, int64_t scale, Affine& out);
  Expr quotient(const Expr& e, const Binary& x);
  Expr quotient_by_term(const Expr& e, const Expr& a, const Expr& b, bool mod);
  Expr extremum(const Expr& e, const Binary& x);
  Expr comparison(const Expr& e, const Binary& x);
  Expr equality(const Expr& plain, BinaryOp op, Affine d, DType dtype);
  Expr ordering(const Expr& plain, Affine d, DType dtype);
  Expr logical(const Expr& e, const Binary& x);
  Expr without_implied(const Expr& conjunction, const Expr& by);
  Expr bits(const Expr& e, const Binary& x);
  Expr rebuilt(const Expr& e, const Expr& a, const Expr& b);
  Expr negated(const Expr& e);

  /// Writes `a` as an expression of `dtype`; empty if it does not fit there.
  Expr write(const Affine& a, DType dtype);
  bool never_zero(const Affine& a, DType dtype);

  std::optional<Affine> divide_rest(const Affine& r, int64_t d, DType dtype);
  std::optional<Affine> divide_by_factor(const Affine& r, int64_t d, DType dtype);
  std::optional<Affine> modulo_by_factor(const Affine& r, int64_t d, DType dtype);
  bool recombine_symbolic(Affine& a, size_t i);
  bool recombine_mod(Affine& a, size_t i, DType dtype);
  bool recombine_div(Affine& a, size_t i, DType dtype);

  Context context_;
  Memo memo_;
};

/// The opposite comparison, `<` for `>=`.
BinaryOp opposite(BinaryOp op);

}  // namespace tilewright::arith
