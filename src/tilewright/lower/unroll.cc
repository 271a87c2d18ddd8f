// The pass `unroll`: loops marked so become copies of their body.
//
//   for o in 2 unroll, i in 16 vector { if 16*o + i < 24 { S } }
//   =>
//   for i in 16 vector { S }  for i in 8 vector { S }      (o = 0; o = 1)
//
// What is left of a guard in a vector loop is often that its last lanes do nothing: the loop gets
// shorter then, so that no lane has to be tested. Copies that are left with the same guard share
// one:
//
//   for t in 9 parallel, i in 4 unroll { if 4*t + i < 34 { S } }
//   =>
//   for t in 9 parallel { S  S  if t < 8 { S  S } }        (i = 0, 1, 2, 3)
#include <fmt/format.h>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// Statements one Func may grow to; beyond it unrolled loops stay loops.
constexpr int64_t kMostUnrolled = 12000;

class Unroller {
 public:
  explicit Unroller(const Func& func) : namer_(func) {}

  /// Children first, so that the cost of a copy is known.
  Stmt run(const Stmt& s) {
    return rewrite(s, [&](const Stmt& x) {
      const auto* loop = x.as<For>();
      if (loop == nullptr || loop->kind != ForKind::Unroll) return x;
      return expand(*loop);
    });
  }

 private:
  Stmt expand(const For& loop) {
    const auto extent = as_int(loop.extent);
    const int64_t size = count_statements(loop.body);
    if (!extent || *extent * size > kMostUnrolled - total_) {
      For serial = loop;
      serial.kind = ForKind::Serial;
      return make(std::move(serial));
    }
    total_ += (*extent - 1) * size;
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) {
      const Stmt body = clone(loop.body, [&](const std::string& name) {
        return namer_.fresh(name, fmt::format(".u{}", i));
      });
      copies.push_back(substitute(body, {{loop.var, int_imm(i)}}));
    }
    return seq(std::move(copies));
  }

  Namer namer_;
  int64_t total_ = 0;
};

/// The vector loop without its last lanes, if all it does is under a guard `lane < constant`.
Stmt without_idle_lanes(const Stmt& s) {
  const auto* loop = s.as<For>();
  if (loop == nullptr || loop->kind != ForKind::Vector) return s;
  const auto* branch = loop->body.as<If>();
  const auto extent = as_int(loop->extent);
  if (branch == nullptr || branch->else_body || !extent) return s;
  int64_t lanes = *extent;
  std::vector<Expr> others;
  for (const Expr& term : conjuncts(branch->condition)) {
    const auto* less = term.as<Binary>();
    const auto* lane = less != nullptr && less->op == BinaryOp::Lt ? less->a.as<VarRef>() : nullptr;
    const auto end = less == nullptr ? std::nullopt : as_int(less->b);
    if (lane != nullptr && lane->var == loop->var && end && *end > 0)
      lanes = std::min(lanes, *end);
    else
      others.push_back(term);
  }
  if (lanes == *extent) return s;
  For out = *loop;
  out.extent = int_imm(lanes);
  out.body = branch->then_body;
  if (const Expr rest = conjunction(others)) out.body = make(If{rest, out.body, Stmt()});
  return make(std::move(out));
}

/// Neighbours under the same guard, under one.
Stmt under_one_guard(const Stmt& s) {
  const auto* list = s.as<Seq>();
  if (list == nullptr) return s;
  std::vector<Stmt> out;
  for (const Stmt& next : list->stmts) {
    const Expr guard = lasting_guard(next);
    const Expr before = guard && !out.empty() ? lasting_guard(out.back()) : Expr();
    if (before && equal(before, guard))
      out.back() =
          make(If{guard, seq({out.back().as<If>()->then_body, next.as<If>()->then_body}), Stmt()});
    else
      out.push_back(next);
  }
  return out.size() == list->stmts.size() ? s : seq(std::move(out));
}

}  // namespace

Result<Func> unroll(const Func& func) {
  Func out = func;
  const Stmt copies = tidy(Unroller(func).run(func.body), arith::Bounds(func));
  out.body = rewrite(rewrite(copies, without_idle_lanes), under_one_guard);
  return out;
}

}  // namespace tilewright::lower
