#include "tilewright/arith/copy.h"

#include <algorithm>

#include "tilewright/arith/affine.h"

namespace tilewright::arith {
namespace {

tl::unexpected<Error> refuse(const std::string& block, const std::string& why) {
  return fail(ErrorKind::NotApplicable, "`" + block + "` is not a strided copy", why,
              "keep it as loops, or bring its indices into sums of loop variables");
}

/// The loops, the block and what it stores, in terms of the loops.
struct Nest {
  std::vector<std::pair<Var, Expr>> loops;  // extents
  const Block* block = nullptr;
  const Store* store = nullptr;
  VarMap bindings;
  Bounds inside;
};

Result<Nest> open(const Stmt& nest, const Bounds& bounds) {
  Nest out;
  out.inside = bounds;
  const Stmt* at = &nest;
  while (const auto* loop = at->as<For>()) {
    const Expr extent = simplify(loop->extent, out.inside);
    out.inside.bind(loop->var, extent);
    if (is_const_int(extent, 1))
      out.bindings[loop->var] = int_imm(0, loop->var.dtype());
    else
      out.loops.emplace_back(loop->var, extent);
    at = &loop->body;
  }
  out.block = at->as<Block>();
  if (out.block == nullptr) return refuse("nest", "more than one block is inside the loops");
  out.store = out.block->body.as<Store>();
  if (out.store == nullptr) return refuse(out.block->name, "its body is not one store");
  if (out.store->combine != Combine::Set) return refuse(out.block->name, "it accumulates");
  VarMap iterations;
  for (const Iter& iter : out.block->iters)
    iterations[iter.var] = substitute(iter.binding, out.bindings);
  out.bindings.insert(iterations.begin(), iterations.end());
  for (const auto& [var, extent] : out.loops)
    for (const auto& [other, ignored] : out.loops)
      if (uses(extent, other))
        return refuse(out.block->name, "the extent of loop `" + var.name() + "` varies");
  return out;
}

/// What is copied where, and under which conditions.
struct CopyParts {
  Expr source;  // a load
  Expr fill;
  std::vector<Expr> inside;  // else fill
  std::vector<Expr> guard;   // else nothing
};

void split(const Expr& condition, std::vector<Expr>& out) {
  const auto* b = condition.as<Binary>();
  if (b != nullptr && b->op == BinaryOp::And) {
    split(b->a, out);
    split(b->b, out);
  } else if (!is_const_int(condition, 1)) {
    out.push_back(condition);
  }
}

bool immediate(const Expr& e) { return e.as<IntImm>() || e.as<FloatImm>(); }

Status take_value(const Expr& value, const Nest& nest, CopyParts& out) {
  if (value.as<Load>()) {
    out.source = value;
    return {};
  }
  const auto* s = value.as<Select>();
  if (s != nullptr && prove(s->condition, nest.inside)) return take_value(s->on_true, nest, out);
  if (s != nullptr && prove(logical_not(s->condition), nest.inside))
    return take_value(s->on_false, nest, out);
  if (s == nullptr)
    return refuse(nest.block->name, immediate(value) ? "it only fills" : "it computes something");
  const bool swapped = immediate(s->on_true);
  const Expr& fill = swapped ? s->on_true : s->on_false;
  if (!immediate(fill)) return refuse(nest.block->name, "its fill is not a constant");
  if (out.fill && !equal(out.fill, fill)) return refuse(nest.block->name, "it has two fills");
  out.fill = fill;
  split(swapped ? simplify(logical_not(s->condition)) : s->condition, out.inside);
  return take_value(swapped ? s->on_false : s->on_true, nest, out);
}

/// Coefficients of the loops in a sum; the rest mentions none of them.
struct Linear {
  std::vector<int64_t> c;
  Affine rest;
};

bool mentions(const Expr& e, const std::vector<std::pair<Var, Expr>>& loops) {
  for (const Var& v : free_vars(e))
    for (const auto& [loop, extent] : loops)
      if (loop == v) return true;
  return false;
}

std::optional<Linear> linear(const Affine& a, const std::vector<std::pair<Var, Expr>>& loops) {
  Linear out;
  out.rest.constant = a.constant;
  for (const auto& [var, extent] : loops) out.c.push_back(a.coefficient(var));
  for (const auto& [term, c] : a.terms) {
    if (const auto* r = term.as<VarRef>()) {
      const Var& v = r->var;
      if (std::any_of(loops.begin(), loops.end(), [&](const auto& l) { return l.first == v; }))
        continue;
    }
    if (mentions(term, loops)) return std::nullopt;
    out.rest.terms.emplace_back(term, c);
  }
  return out;
}

/// sum >= 0; `pads` tells a fill from an element that is not written.
struct Condition {
  Linear sum;
  bool pads;
};

class Recogniser {
 public:
  Recogniser(Nest nest, const Bounds& bounds, const StrideMap& strides)
      : nest_(std::move(nest)), bounds_(bounds), strides_(strides) {}

  Result<StridedCopy> run() {
    TW_TRY_STATUS(read());
    merge_loops();
    TW_TRY_STATUS(one_loop_each());
    StridedCopy out;
    out.target = nest_.store->buffer;
    out.source = parts_.source.as<Load>()->buffer;
    out.fill = parts_.fill;
    target_ = flat(out.target, target_indices_);
    source_ = flat(out.source, source_indices_);
    out.target_base = target_.base;
    out.source_base = source_.base;
    std::vector<Expr> always = outer_conditions(false), inside = outer_conditions(true);
    if (nest_.loops.empty() && (!always.empty() || !inside.empty())) add_unit_loop();
    for (size_t k = 0; k < nest_.loops.size(); ++k) {
      CopyAxis axis = axis_of(k, out);
      if (k == 0) apply_outer(axis, always, inside);
      out.axes.push_back(std::move(axis));
    }
    out.target_base = simplify(out.target_base, bounds_);
    out.source_base = simplify(out.source_base, bounds_);
    return out;
  }

 private:
  /// A flat offset: base + sum of loop * stride.
  struct Flat {
    Expr base;
    std::vector<Expr> strides;
  };

  Expr in_loops(const Expr& e) const {
    return simplify(substitute(e, nest_.bindings), nest_.inside);
  }

  // Conditions are taken as written: simplified ones may have lost the inner part of a split loop.
  Status read() {
    if (nest_.block->guard) split(substitute(nest_.block->guard, nest_.bindings), parts_.guard);
    TW_TRY_STATUS(read_conditions(parts_.guard, false));
    TW_TRY_STATUS(take_value(substitute(nest_.store->value, nest_.bindings), nest_, parts_));
    TW_TRY_STATUS(read_indices(nest_.store->indices, target_indices_));
    TW_TRY_STATUS(read_conditions(parts_.inside, true));
    return read_indices(parts_.source.as<Load>()->indices, source_indices_);
  }

  /// Reads those that are not known already; they are known afterwards.
  Status read_conditions(const std::vector<Expr>& conditions, bool pads) {
    for (const Expr& c : conditions)
      if (!prove(c, nest_.inside)) TW_TRY_STATUS(read_condition(c, pads));
    for (const Expr& c : conditions) nest_.inside.assume(c);
    return {};
  }

  Status read_indices(const std::vector<Expr>& indices, std::vector<Linear>& out) {
    for (const Expr& index : indices) {
      auto l = linear(as_affine(in_loops(index)), nest_.loops);
      if (!l) return refuse(nest_.block->name, "an index is not a sum of loop variables");
      out.push_back(std::move(*l));
    }
    return {};
  }

  Status read_condition(const Expr& c, bool pads) {
    const auto* b = c.as<Binary>();
    const std::string why = "a condition is not a bound on one loop";
    if (b == nullptr || !is_comparison(b->op) || !is_int(b->a.dtype()))
      return refuse(nest_.block->name, why);
    auto add = [&](const Expr& greater, const Expr& smaller, int64_t slack) -> Status {
      auto d = minus(as_affine(simplify(greater, nest_.inside)),
                     as_affine(simplify(smaller, nest_.inside)));
      auto l = d && add_constant(*d, slack) ? linear(*d, nest_.loops) : std::nullopt;
      if (!l) return refuse(nest_.block->name, why);
      conditions_.push_back({std::move(*l), pads});
      return {};
    };
    switch (b->op) {
      case BinaryOp::Lt:
        return add(b->b, b->a, -1);
      case BinaryOp::Le:
        return add(b->b, b->a, 0);
      case BinaryOp::Gt:
        return add(b->a, b->b, -1);
      case BinaryOp::Ge:
        return add(b->a, b->b, 0);
      case BinaryOp::Eq:
        TW_TRY_STATUS(add(b->a, b->b, 0));
        return add(b->b, b->a, 0);
      default:
        return refuse(nest_.block->name, why);
    }
  }

  /// Loops p, q that only ever occur as p * extent(q) + q are one loop.
  void merge_loops() {
    for (bool again = true; again;) {
      again = false;
      for (size_t p = 0; p < nest_.loops.size() && !again; ++p)
        for (size_t q = 0; q < nest_.loops.size() && !again; ++q) again = p != q && try_merge(p, q);
    }
  }

  template <class F>
  void each_linear(F&& f) {
    for (Linear& l : target_indices_) f(l);
    for (Linear& l : source_indices_) f(l);
    for (Condition& c : conditions_) f(c.sum);
  }

  bool try_merge(size_t p, size_t q) {
    const auto n = as_int(nest_.loops[q].second);
    if (!n) return false;
    bool fits = true, used = false;
    each_linear([&](const Linear& l) {
      fits &= l.c[p] == l.c[q] * *n;
      used |= l.c[q] != 0;
    });
    if (!fits || !used) return false;
    nest_.loops[q].second =
        simplify(binary(BinaryOp::Mul, nest_.loops[p].second, int_imm(*n, DType::I64)), bounds_);
    if (p < q) std::swap(nest_.loops[p], nest_.loops[q]);
    const size_t kept = std::min(p, q), gone = std::max(p, q);
    each_linear([&](Linear& l) {
      l.c[kept] = l.c[q];
      l.c.erase(l.c.begin() + static_cast<std::ptrdiff_t>(gone));
    });
    nest_.loops.erase(nest_.loops.begin() + static_cast<std::ptrdiff_t>(gone));
    return true;
  }

  void add_unit_loop() {
    nest_.loops.emplace_back(Var("unit"), int_imm(1));
    target_.strides = source_.strides = {int_imm(0)};
    each_linear([](Linear& l) { l.c.push_back(0); });
  }

  Flat flat(const Buffer& buffer, const std::vector<Linear>& indices) const {
    std::vector<Expr> strides(buffer.rank());
    if (const auto it = strides_.find(buffer); it != strides_.end() && !it->second.empty()) {
      strides = it->second;
    } else {
      Expr s = int_imm(1);
      for (size_t k = buffer.rank(); k-- > 0;) {
        strides[k] = simplify(s, bounds_);
        s = binary(BinaryOp::Mul, s, buffer.shape()[k]);
      }
    }
    Flat out{int_imm(0), std::vector<Expr>(nest_.loops.size(), int_imm(0))};
    for (size_t k = 0; k < indices.size(); ++k) {
      out.base = out.base + binary(BinaryOp::Mul, to_expr(indices[k].rest), strides[k]);
      for (size_t j = 0; j < nest_.loops.size(); ++j)
        if (indices[k].c[j] != 0) out.strides[j] = out.strides[j] + strides[k] * indices[k].c[j];
    }
    for (Expr& s : out.strides) s = simplify(s, bounds_);
    return out;
  }

  /// Conditions on no loop at all.
  std::vector<Expr> outer_conditions(bool pads) const {
    std::vector<Expr> out;
    for (const Condition& c : conditions_)
      if (c.pads == pads && loop_of(c) == kNone) out.push_back(to_expr(c.sum.rest) >= 0);
    return out;
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);
  static size_t loop_of(const Condition& c) {
    for (size_t k = 0; k < c.sum.c.size(); ++k)
      if (c.sum.c[k] != 0) return k;
    return kNone;
  }

  struct Ends {
    Expr lo, hi;  // lo <= loop < hi
  };
  /// Where the conditions hold for loop k: c*v + rest >= 0.
  Ends ends(size_t k, bool pads) const {
    Ends out{int_imm(0), nest_.loops[k].second};
    for (const Condition& condition : conditions_) {
      if (condition.pads != pads || loop_of(condition) != k) continue;
      const int64_t c = condition.sum.c[k];
      const Expr rest = to_expr(condition.sum.rest);
      if (c > 0)
        out.lo = max(out.lo, -(rest / int_imm(c)));
      else
        out.hi = min(out.hi, rest / int_imm(-c) + 1);
    }
    return {simplify(out.lo, bounds_), simplify(out.hi, bounds_)};
  }

  CopyAxis axis_of(size_t k, StridedCopy& copy) {
    const Ends run = ends(k, false), valid = ends(k, true);
    CopyAxis axis;
    axis.size = simplify(max(run.hi - run.lo, int_imm(0)), bounds_);
    axis.pad_before = simplify(min(max(valid.lo - run.lo, int_imm(0)), axis.size), bounds_);
    axis.pad_after = simplify(
        min(max(run.lo + axis.size - valid.hi, int_imm(0)), axis.size - axis.pad_before), bounds_);
    axis.target_stride = target_.strides[k];
    axis.source_stride = source_.strides[k];
    copy.target_base = copy.target_base + run.lo * axis.target_stride;
    copy.source_base = copy.source_base + run.lo * axis.source_stride;
    return axis;
  }

  /// A condition that no loop changes turns the whole tile on or off.
  void apply_outer(CopyAxis& axis, const std::vector<Expr>& always,
                   const std::vector<Expr>& inside) const {
    for (const Expr& c : always) axis.size = simplify(select(c, axis.size, int_imm(0)), bounds_);
    for (const Expr& c : always) {
      axis.pad_before = simplify(select(c, axis.pad_before, int_imm(0)), bounds_);
      axis.pad_after = simplify(select(c, axis.pad_after, int_imm(0)), bounds_);
    }
    for (const Expr& c : inside) {
      axis.pad_before = simplify(select(c, axis.pad_before, axis.size), bounds_);
      axis.pad_after = simplify(select(c, axis.pad_after, int_imm(0)), bounds_);
    }
  }

  Status one_loop_each() const {
    for (const Condition& c : conditions_) {
      const auto loops =
          c.sum.c.size() - static_cast<size_t>(std::count(c.sum.c.begin(), c.sum.c.end(), 0));
      if (loops > 1) return refuse(nest_.block->name, "a condition depends on several loops");
    }
    return {};
  }

  Nest nest_;
  const Bounds& bounds_;
  const StrideMap& strides_;
  CopyParts parts_;
  std::vector<Linear> target_indices_, source_indices_;
  std::vector<Condition> conditions_;
  Flat target_, source_;
};

}  // namespace

Result<StridedCopy> strided_copy(const Stmt& nest, const Bounds& bounds, const StrideMap& strides) {
  return Recogniser(TW_TRY(open(nest, bounds)), bounds, strides).run();
}

StridedCopy coalesce(const StridedCopy& copy, const Bounds& bounds) {
  StridedCopy out = copy;
  out.axes.clear();
  auto plain = [](const CopyAxis& a) {
    return is_const_int(a.pad_before, 0) && is_const_int(a.pad_after, 0);
  };
  auto follows = [&](const CopyAxis& p, const CopyAxis& q) {
    return plain(p) && plain(q) &&
           prove(logical_and(eq(p.source_stride, q.source_stride * q.size),
                             eq(p.target_stride, q.target_stride * q.size)),
                 bounds);
  };
  for (const CopyAxis& axis : copy.axes) {
    if (is_const_int(axis.size, 1) && plain(axis)) continue;
    if (!out.axes.empty() && follows(out.axes.back(), axis)) {
      CopyAxis merged = axis;
      merged.size = simplify(out.axes.back().size * axis.size, bounds);
      out.axes.back() = std::move(merged);
    } else {
      out.axes.push_back(axis);
    }
  }
  return out;
}

}  // namespace tilewright::arith
