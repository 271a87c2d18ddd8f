// The box of elements that an access touches while some loops run.
//
//   A[4*o + i, j] with i in 4, j in 8 running, o fixed   ->   [4*o :+4, 0 :+8], exact
//   A[2*i] with i in 4                                   ->   [0 :+7], a hull: odd ones are missing
//
// Each axis goes from the smallest to the largest value of its index. It has no gaps if, sorted by
// size, each coefficient is at most one more than what the smaller ones reach together; the box is
// exact if no axis has gaps and no two axes move with the same loop.
#include "tilewright/arith/region.h"

#include <algorithm>

#include "tilewright/arith/simplifier.h"

namespace tilewright::arith {
namespace {

bool listed(const Var& var, const std::vector<Var>& vars) {
  return std::find(vars.begin(), vars.end(), var) != vars.end();
}

bool zero(const Expr& e) { return is_const_int(e, 0); }

/// Number of values of a variable whose range does not depend on `vars`; empty if it does.
Expr extent_of(const Var& var, const std::vector<Var>& vars, const Bounds& bounds) {
  const auto it = bounds.ranges().find(var);
  if (it == bounds.ranges().end() || !it->second.lo || !it->second.hi) return Expr();
  const auto& [lo, hi] = it->second;
  if (uses_any(lo, vars) || uses_any(hi, vars)) return Expr();
  return simplify(hi - lo + 1, bounds);
}

/// True if the sum takes every value between its ends: sorted by size, each coefficient is at most
/// one more than what the smaller ones reach together.
bool gap_free(const Affine& a, const std::vector<Var>& vars, const Bounds& bounds) {
  struct Stride {
    int64_t coefficient;
    Expr extent;
  };
  std::vector<Stride> strides;
  for (const auto& [term, c] : a.terms) {
    if (!uses_any(term, vars)) continue;
    const auto* r = term.as<VarRef>();
    if (r == nullptr || c == kMinInt) return false;
    const Expr n = extent_of(r->var, vars, bounds);
    if (!n || !prove(n >= 1, bounds)) return false;
    if (!is_const_int(n, 1)) strides.push_back({std::abs(c), n});
  }
  std::sort(strides.begin(), strides.end(),
            [](const Stride& x, const Stride& y) { return x.coefficient < y.coefficient; });
  int64_t reach = 1;  // at least the values [0, reach) are all taken
  for (const Stride& s : strides) {
    if (s.coefficient > reach) return false;
    const auto n = as_int(s.extent);
    int64_t grown;
    if (!n) continue;
    if (__builtin_mul_overflow(s.coefficient, *n - 1, &grown) ||
        __builtin_add_overflow(reach, grown, &reach))
      return false;
  }
  return true;
}

/// True if `index` takes every value between its ends while `vars` run.
bool contiguous(const Expr& index, const std::vector<Var>& vars, const Bounds& bounds,
                const Expr& size) {
  if (!uses_any(index, vars)) return true;
  const Affine a = as_affine(index);
  if (gap_free(a, vars, bounds)) return true;
  // Only one varying term, a quotient or a whole period of a remainder of a contiguous sum.
  const Expr* varying = nullptr;
  for (const auto& [term, c] : a.terms) {
    if (!uses_any(term, vars)) continue;
    if (varying != nullptr || (c != 1 && c != -1)) return false;
    varying = &term;
  }
  const auto* b = varying->as<Binary>();
  if (b == nullptr || !as_int(b->b) || *as_int(b->b) <= 0) return false;
  if (b->op == BinaryOp::Div) return contiguous(b->a, vars, bounds, Expr());
  if (b->op != BinaryOp::Mod || !size || !contiguous(b->a, vars, bounds, Expr())) return false;
  const auto lo = lower_bound(b->a, vars, bounds), hi = upper_bound(b->a, vars, bounds);
  return lo && hi && prove(*hi - *lo + 1 >= b->b, bounds);
}

/// Clips a hull of constant size to the axis: elements outside it do not exist. False if more than
/// that was added or taken away.
bool clip(Box::Dim& dim, const Expr& extent, const Bounds& bounds) {
  const auto n = as_int(extent), begin = as_int(dim.begin), size = as_int(dim.size);
  if (begin && size) {
    const int64_t lo = std::max<int64_t>(*begin, 0);
    int64_t end;
    if (__builtin_add_overflow(*begin, *size, &end)) return true;
    const int64_t hi = n ? std::min(end, *n) : end;
    if (lo != *begin || hi != end) dim = {int_imm(lo), int_imm(std::max<int64_t>(hi - lo, 0))};
  } else if (n && size && *size >= *n) {
    const bool same = *size == *n;
    dim = {int_imm(0), extent};
    return same;
  } else if (!n && begin && size && *begin == 0 && prove(extent <= *size, bounds)) {
    dim.size = extent;
  }
  return true;
}

/// True if the known conditions take no element away that `vars` would touch: they do not mention
/// `vars`, or only say that an index lies inside its axis.
bool unguarded(const std::vector<Expr>& indices, const std::vector<Expr>& shape,
               const std::vector<Var>& vars, const Bounds& bounds) {
  std::vector<Expr> open;
  Bounds inside;
  for (const auto& [var, range] : bounds.ranges()) inside.bind_range(var, range.lo, range.hi);
  for (const Expr& fact : bounds.facts()) {
    if (uses_any(fact, vars))
      open.push_back(fact);
    else
      inside.assume(fact);
  }
  if (open.empty()) return true;
  for (size_t k = 0; k < indices.size(); ++k)
    inside.assume(logical_and(indices[k] >= 0, binary(BinaryOp::Lt, indices[k], shape[k])));
  for (const Expr& fact : open)
    if (!prove(fact, inside)) return false;
  return true;
}

}  // namespace

Box touched(const std::vector<Expr>& indices, const std::vector<Expr>& shape,
            const std::vector<Var>& vars, const Bounds& bounds) {
  Box box;
  box.exact = unguarded(indices, shape, vars, bounds);
  std::vector<Var> seen;  // a variable in two axes ties them together
  for (size_t k = 0; k < indices.size(); ++k) {
    const Expr index = simplify(indices[k], bounds);
    for (const Var& v : free_vars(index)) {
      if (!listed(v, vars)) continue;
      const Expr n = extent_of(v, vars, bounds);
      if (n && is_const_int(n, 1)) continue;
      box.exact &= !listed(v, seen);
      seen.push_back(v);
    }
    const auto lo = lower_bound(index, vars, bounds), hi = upper_bound(index, vars, bounds);
    bool loads = false;
    walk(index, [&](const Expr& x) { loads |= x.as<Load>() != nullptr; });
    if (!lo || !hi || loads) {
      box.dims.push_back({int_imm(0), shape[k]});
      box.exact = false;
      continue;
    }
    Box::Dim dim{*lo, simplify(*hi - *lo + 1, bounds)};
    box.exact &= contiguous(index, vars, bounds, dim.size);
    if (!as_int(dim.size)) {
      const auto range = const_range(dim.size, bounds);
      const bool relative = !uses_any(dim.size, vars) && range && !as_int(*lo);
      if (relative) {
        dim.size = int_imm(range->second);
        box.exact = false;
      }
    }
    box.exact &= clip(dim, shape[k], bounds);
    box.dims.push_back(std::move(dim));
  }
  return box;
}

bool contains(const Box& outer, const Box& inner, const Bounds& bounds) {
  if (outer.dims.size() != inner.dims.size()) return false;
  for (size_t k = 0; k < outer.dims.size(); ++k) {
    const auto &o = outer.dims[k], &i = inner.dims[k];
    if (!prove(o.begin <= i.begin, bounds)) return false;
    if (!prove(i.begin + i.size <= o.begin + o.size, bounds)) return false;
  }
  return true;
}

bool disjoint(const Box& a, const Box& b, const Bounds& bounds) {
  if (a.dims.size() != b.dims.size()) return false;
  for (size_t k = 0; k < a.dims.size(); ++k) {
    const auto &x = a.dims[k], &y = b.dims[k];
    if (prove(x.begin + x.size <= y.begin, bounds) || prove(y.begin + y.size <= x.begin, bounds))
      return true;
    // One element each: different remainders (ring slots) are enough.
    if (is_const_int(x.size, 1) && is_const_int(y.size, 1) && prove(ne(x.begin, y.begin), bounds))
      return true;
    if (zero(x.size) || zero(y.size)) return true;
  }
  return false;
}

Box hull(const Box& a, const Box& b, const Bounds& bounds) {
  if (contains(a, b, bounds)) return a;
  if (contains(b, a, bounds)) return b;
  Box out;
  int differing = 0;
  bool touching = true;
  for (size_t k = 0; k < a.dims.size(); ++k) {
    const auto &x = a.dims[k], &y = b.dims[k];
    const Expr begin = simplify(min(x.begin, y.begin), bounds);
    const Expr end = simplify(max(x.begin + x.size, y.begin + y.size), bounds);
    out.dims.push_back({begin, simplify(end - begin, bounds)});
    if (prove(logical_and(eq(x.begin, y.begin), eq(x.size, y.size)), bounds)) continue;
    ++differing;
    touching &=
        prove(logical_and(x.begin <= y.begin + y.size, y.begin <= x.begin + x.size), bounds);
  }
  // Two exact boxes that differ along one axis only and leave no gap there form a box.
  out.exact = a.exact && b.exact && differing <= 1 && touching;
  return out;
}

}  // namespace tilewright::arith
