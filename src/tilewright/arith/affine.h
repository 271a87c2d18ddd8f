// Integer intervals and arithmetic on affine forms, shared by the files of this layer.
#pragma once

#include <cstdint>
#include <limits>

#include "tilewright/arith/bounds.h"

namespace tilewright::arith {

inline constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

/// [lo, hi] with kMinInt and kMaxInt standing for "no bound".
struct Interval {
  int64_t lo = kMinInt, hi = kMaxInt;
  bool bounded() const { return lo != kMinInt && hi != kMaxInt; }
  bool inside(const Interval& outer) const { return outer.lo <= lo && hi <= outer.hi; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// requires: b != 0, not kMinInt / -1.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

/// Sums and products that stick to the infinities.
Interval add(const Interval& a, const Interval& b);
Interval scale(const Interval& a, int64_t c);
Interval multiply(const Interval& a, const Interval& b);
Interval floor_div(const Interval& a, const Interval& b);
Interval floor_mod(const Interval& a, const Interval& b);
Interval unite(const Interval& a, const Interval& b);
Interval intersect(const Interval& a, const Interval& b);

/// All values of an integer type; unbounded for i64 and u64 (whose order is not that of its bits).
Interval type_range(DType dtype);
/// `value` reduced to the bits of `dtype`.
int64_t wrap(int64_t value, DType dtype);
/// Integer value of `a op b` in `dtype`, if defined.
std::optional<int64_t> fold(BinaryOp op, int64_t a, int64_t b, DType dtype);

/// Equal up to the order of summands and factors.
bool same_term(const Expr& a, const Expr& b);

/// a += c * term and a += c * b. False if a coefficient overflows (then `a` is unusable).
bool add_term(Affine& a, const Expr& term, int64_t c);
bool add_scaled(Affine& a, const Affine& b, int64_t c);
bool add_constant(Affine& a, int64_t c);
std::optional<Affine> minus(const Affine& a, const Affine& b);
std::optional<Affine> times(const Affine& a, int64_t c);
inline Affine constant_affine(int64_t value) { return Affine{value, {}}; }
inline Affine term_affine(const Expr& term) { return Affine{0, {{term, 1}}}; }
/// Coefficient of a term, 0 if absent.
int64_t coefficient_of(const Affine& a, const Expr& term);
/// True if `a` has every term of c * b with exactly that coefficient (constants do not matter).
bool includes(const Affine& a, const Affine& b, int64_t c);
/// a + come - gone, with the new terms of `come` where `gone` first takes one away.
std::optional<Affine> splice(const Affine& a, const Affine& gone, const Affine& come);
/// Greatest common divisor of all coefficients (0 without terms).
int64_t content(const Affine& a);

/// Adds the sum `e` spells out, times `scale`: through + - and products with constants; everything
/// else is a term. Holds in the ring of the dtype, whether or not something overflows.
bool flatten(const Expr& e, int64_t scale, Affine& out);

/// The factors of a product, `e` itself if it is none.
void factors(const Expr& e, std::vector<Expr>& out);
/// The product of two factor chains, left to right.
Expr monomial(const Expr& a, const Expr& b);
/// `term` without one `factor` (1 if nothing is left); empty if it has no such factor.
Expr without_factor(const Expr& term, const Expr& factor);
/// a * factor. requires: `factor` is no constant.
std::optional<Affine> times(const Affine& a, const Expr& factor);

}  // namespace tilewright::arith
