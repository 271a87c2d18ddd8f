// The pass `peel`: a loop is split where one of its guards begins to fail, so that the first part
// tests nothing.
//
//   for o in 4, i in 16 { if 16*o + i < 55 { S } }
//   =>
//   for o in 3, i in 16 { S }  for i in 7 { S }            (o = 3 in the second part)
//
// A guard is an affine inequality in the loop variable. If its slope is negative, it holds in all
// iterations before some `first`, whatever the loops inside do; that is computed with the smallest
// value of the other terms. Parallel loops stay one loop with a choice inside. Each copy costs
// code, so peeling stops at a number of statements.
#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// Statements a Func may have before peeling stops making copies.
constexpr int64_t kMostPeeled = 600;

/// `c` as `d >= 0`, if it is an integer comparison.
std::optional<Expr> as_non_negative(const Expr& c) {
  const auto* b = c.as<Binary>();
  if (b == nullptr || b->a.dtype() != DType::I64) return std::nullopt;
  switch (b->op) {
    case BinaryOp::Lt:
      return b->b - b->a - 1;
    case BinaryOp::Le:
      return b->b - b->a;
    case BinaryOp::Gt:
      return b->a - b->b - 1;
    case BinaryOp::Ge:
      return b->a - b->b;
    default:
      return std::nullopt;
  }
}

/// A guard term that fails only from some iteration of a loop on.
struct Late {
  Expr term;
  Expr first;                 ///< the first iteration where it may fail; not clamped to the loop
  bool from_then_on = false;  ///< from `first` on it fails always
};

class Peeler {
 public:
  explicit Peeler(const Func& func) : namer_(func), statements_(count_statements(func.body)) {}

  Stmt run(const Stmt& s, const arith::Bounds& bounds) {
    if (const auto* list = s.as<Seq>()) {
      std::vector<Stmt> stmts;
      for (const Stmt& child : list->stmts) stmts.push_back(run(child, bounds));
      return seq(std::move(stmts));
    }
    if (const auto* branch = s.as<If>()) {
      If out = *branch;
      out.then_body = run(branch->then_body, bounds);
      if (branch->else_body) out.else_body = run(branch->else_body, bounds);
      return make(std::move(out));
    }
    const auto* loop = s.as<For>();
    return loop ? run_loop(*loop, bounds) : s;
  }

 private:
  Stmt run_loop(const For& loop, const arith::Bounds& bounds) {
    if (loop.kind == ForKind::Bind) return keep(loop, bounds);  // a grid is one launch
    const std::vector<Late> late = late_terms(loop, bounds);
    if (late.empty()) return keep(loop, bounds);
    Expr first = late[0].first;
    for (size_t i = 1; i < late.size(); ++i) first = min(first, late[i].first);
    first = arith::simplify(min(max(first, int_imm(0)), loop.extent), bounds);
    const int64_t size = count_statements(loop.body);
    if (is_const_int(first, 0) || statements_ + size > kMostPeeled) return keep(loop, bounds);

    const Stmt tail = late.size() == 1 && late[0].from_then_on && all_under(loop.body, late[0].term)
                          ? seq({})
                          : tail_of(loop, first, bounds);
    const bool whole = tail.as<Seq>() && tail.as<Seq>()->stmts.empty();
    // A vector or unrolled loop is worth changing only if it gets shorter.
    const bool once = loop.kind == ForKind::Vector || loop.kind == ForKind::Unroll;
    if (once && (!whole || !as_int(first))) return keep(loop, bounds);
    if (!whole) statements_ += size;

    arith::Bounds inside = bounds;
    inside.bind(loop.var, first);
    const Stmt main = run(tidy(without(loop.body, late), inside), inside);
    For head = loop;
    head.body = main;
    if (loop.kind == ForKind::Parallel && !whole) {
      // One parallel loop with a choice inside: two would join the threads twice.
      head.body = make(If{ref(loop.var) < first, main, parallel_tail(loop, first, bounds)});
      return make(std::move(head));
    }
    head.extent = first;
    return whole ? make(std::move(head)) : seq({make(std::move(head)), tail});
  }

  Stmt keep(const For& loop, const arith::Bounds& bounds) {
    arith::Bounds inside = bounds;
    inside.bind(loop.var, loop.extent);
    For out = loop;
    out.body = run(loop.body, inside);
    return out.body.get() == loop.body.get() ? make(loop) : make(std::move(out));
  }

  std::string rename(const std::string& name) { return namer_.fresh(name, ".tail"); }

  /// The iterations from `first` on, as a loop of their own; an empty Seq if nothing runs there.
  Stmt tail_of(const For& loop, const Expr& first, const arith::Bounds& bounds) {
    const Expr rest = arith::simplify(loop.extent - first, bounds);
    if (is_const_int(rest, 0)) return seq({});
    const Stmt body = clone(loop.body, [&](const std::string& n) { return rename(n); });
    For tail = loop;
    tail.var = Var(rename(loop.var.name()));
    tail.extent = rest;
    tail.body = substitute(body, {{loop.var, first + ref(tail.var)}});
    const Var var = tail.var;
    const Stmt out = tidy(make(std::move(tail)), bounds);
    // The tail is cut once; only loops inside it may be cut further.
    const auto* still = out.as<For>();
    return still && still->var == var ? keep(*still, bounds) : run(out, bounds);
  }

  /// Whether nothing in `s` runs where `term` fails.
  static bool all_under(const Stmt& s, const Expr& term) {
    const auto demands = [&](const Expr& condition) {
      const std::vector<Expr> terms = conjuncts(condition);
      return std::any_of(terms.begin(), terms.end(), [&](const Expr& t) { return equal(t, term); });
    };
    if (const auto* branch = s.as<If>(); branch != nullptr && demands(branch->condition))
      return !branch->else_body;
    if (s.as<Store>() != nullptr || s.as<Block>() != nullptr || s.as<Call>() != nullptr)
      return false;
    const std::vector<Stmt> parts = children(s);
    return std::all_of(parts.begin(), parts.end(),
                       [&](const Stmt& part) { return all_under(part, term); });
  }

  Stmt parallel_tail(const For& loop, const Expr& first, const arith::Bounds& bounds) {
    Stmt body = clone(loop.body, [&](const std::string& n) { return rename(n); });
    arith::Bounds inside = bounds;
    if (is_const_int(arith::simplify(loop.extent - first, bounds), 1))
      body = substitute(body, {{loop.var, first}});
    inside.bind_range(loop.var, first, loop.extent - 1);
    return run(tidy(body, inside), inside);
  }

  std::vector<Late> late_terms(const For& loop, const arith::Bounds& bounds) {
    arith::Bounds inside = bounds;
    std::vector<Var> inner;
    std::vector<Late> out;
    collect(loop.body, loop.var, inner, inside, out);
    return out;
  }

  void collect(const Stmt& s, const Var& var, std::vector<Var>& inner, arith::Bounds inside,
               std::vector<Late>& out) {
    if (const auto* f = s.as<For>()) {
      inner.push_back(f->var);
      inside.bind(f->var, f->extent);
      collect(f->body, var, inner, inside, out);
      inner.pop_back();
      return;
    }
    Expr condition;
    if (const auto* block = s.as<Block>()) condition = block->guard;
    if (const auto* branch = s.as<If>()) condition = branch->condition;
    for (const Expr& term : conjuncts(condition))
      if (uses(term, var)) consider(term, var, inner, inside, out);
    for (const Stmt& child : children(s)) collect(child, var, inner, inside, out);
  }

  void consider(const Expr& term, const Var& var, const std::vector<Var>& inner,
                const arith::Bounds& inside, std::vector<Late>& out) {
    const auto d = as_non_negative(term);
    if (!d) return;
    arith::Affine affine = arith::as_affine(arith::simplify(*d, inside));
    const int64_t slope = affine.coefficient(var);
    if (slope >= 0) return;
    std::erase_if(affine.terms, [&](const auto& entry) {
      const auto* r = entry.first.template as<VarRef>();
      return r && r->var == var;
    });
    const Expr rest = arith::to_expr(affine);
    if (uses(rest, var)) return;
    const auto least = arith::lower_bound(rest, inner, inside);
    if (!least) return;
    // slope * var + rest >= 0 for all inner iterations as long as var <= least / -slope.
    const Expr first = arith::simplify(*least / -slope + 1, inside);
    for (const Late& other : out)
      if (equal(other.term, term)) return;
    const bool exact =
        std::none_of(inner.begin(), inner.end(), [&](const Var& v) { return uses(rest, v); });
    out.push_back(Late{term, first, exact});
  }

  static Stmt without(const Stmt& s, const std::vector<Late>& late) {
    auto strip = [&](const Expr& condition) {
      std::vector<Expr> kept;
      for (const Expr& term : conjuncts(condition)) {
        const bool gone = std::any_of(late.begin(), late.end(),
                                      [&](const Late& l) { return equal(l.term, term); });
        if (!gone) kept.push_back(term);
      }
      return conjunction(kept);
    };
    return rewrite(s, [&](const Stmt& x) -> Stmt {
      if (const auto* block = x.as<Block>(); block && block->guard) {
        Block out = *block;
        out.guard = strip(block->guard);
        return make(std::move(out));
      }
      if (const auto* branch = x.as<If>()) {
        const Expr condition = strip(branch->condition);
        if (!condition) return branch->then_body;
        return make(If{condition, branch->then_body, branch->else_body});
      }
      return x;
    });
  }

  Namer namer_;
  int64_t statements_;
};

}  // namespace

Result<Func> peel(const Func& func) {
  Func out = func;
  const arith::Bounds bounds(func);
  const Stmt body = tidy(func.body, bounds);
  out.body = tidy(Peeler(func).run(body, bounds), bounds);
  return out;
}

}  // namespace tilewright::lower
