// Simplification of statements: loops give ranges, guards and conditions give facts.
#include "tilewright/arith/simplifier.h"

namespace tilewright::arith {
namespace {

bool empty(const Stmt& s) { return !s || (s.as<Seq>() && s.as<Seq>()->stmts.empty()); }

class StmtSimplifier {
 public:
  explicit StmtSimplifier(const Bounds& bounds) : simplifier_(bounds) {}

  Stmt run(const Stmt& s) {
    if (!s) return s;
    return match(
        s, [&](const For& x) { return loop(s, x); }, [&](const Block& x) { return block(s, x); },
        [&](const Store& x) { return store(s, x); }, [&](const Alloc&) { return s; },
        [&](const If& x) { return condition(s, x); }, [&](const Seq& x) { return sequence(s, x); },
        [&](const Call& x) { return call(s, x); });
  }

 private:
  /// Replaces `e` by its canonical form; true if it changed.
  bool update(Expr& e) {
    Expr out = simplifier_.run(e);
    for (int round = 0; round < 3 && !same(out, e); ++round) {
      Expr next = simplifier_.run(out);
      if (same(next, out)) break;
      out = std::move(next);
    }
    const bool changed = !same(out, e);
    e = std::move(out);
    return changed;
  }

  Stmt loop(const Stmt& s, const For& x) {
    Expr extent = x.extent;
    bool changed = update(extent);
    simplifier_.context().bind(x.var, extent);
    Stmt body = run(x.body);
    if (empty(body)) return seq({});
    changed |= body.get() != x.body.get();
    return changed ? make(For{x.var, extent, x.kind, x.axis, x.marks, body}) : s;
  }

  Stmt block(const Stmt& s, const Block& x) {
    Block out = x;
    bool changed = out.guard && update(out.guard);
    if (out.guard && is_const_int(out.guard, 1)) out.guard = Expr();
    simplifier_.under(out.guard, [&] {
      for (Iter& iter : out.iters) {
        const bool extent = update(iter.extent), binding = update(iter.binding);
        changed |= extent || binding;
        bind_iteration(iter);
      }
      out.body = simplifier_.under(bindings(out), [&] { return run(x.body); });
      return 0;
    });
    changed |= out.body.get() != x.body.get();
    return changed ? make(std::move(out)) : s;
  }

  /// An iteration lies in its extent and in the range of its binding.
  void bind_iteration(const Iter& iter) {
    Context& context = simplifier_.context();
    context.bind(iter.var, iter.extent);
    const Bounds::Range whole = context.var_range(iter.var);
    const Interval r = context.range(iter.binding), e = context.range(context.affine(iter.extent));
    const DType dtype = iter.var.dtype();
    Expr lo = r.lo > 0 ? int_imm(r.lo, dtype) : whole.lo, hi = whole.hi;
    if (r.hi != kMaxInt && (e.hi == kMaxInt || r.hi < e.hi - 1)) hi = int_imm(r.hi, dtype);
    context.bind_range(iter.var, lo, hi);
  }

  /// What holds for loops holds for the iterations: stated only where something is known.
  Expr bindings(const Block& x) {
    Expr out;
    if (!simplifier_.context().has_facts()) return out;
    for (const Iter& iter : x.iters) {
      if (as_int(iter.binding) || iter.binding.dtype() != iter.var.dtype()) continue;
      const Expr known = eq(ref(iter.var), iter.binding);
      out = out ? logical_and(out, known) : known;
    }
    return out;
  }

  Stmt store(const Stmt& s, const Store& x) {
    std::vector<Expr> indices = x.indices;
    Expr value = x.value;
    bool changed = update(value);
    for (Expr& index : indices) changed |= update(index);
    return changed ? make(Store{x.buffer, std::move(indices), std::move(value), x.combine}) : s;
  }

  Stmt condition(const Stmt& s, const If& x) {
    Expr c = x.condition;
    bool changed = update(c);
    if (const auto value = as_int(c)) {
      const Stmt taken = run(*value != 0 ? x.then_body : x.else_body);
      return taken ? taken : seq({});
    }
    const Stmt yes = simplifier_.under(c, [&] { return run(x.then_body); });
    const Stmt no = x.else_body ? simplifier_.under(simplifier_.run(logical_not(c)),
                                                    [&] { return run(x.else_body); })
                                : Stmt();
    if (empty(yes) && empty(no)) return seq({});
    if (empty(yes)) return make(If{simplifier_.run(logical_not(c)), no, Stmt()});
    changed |= yes.get() != x.then_body.get() || no.get() != x.else_body.get();
    return changed ? make(If{c, yes, empty(no) ? Stmt() : no}) : s;
  }

  Stmt sequence(const Stmt& s, const Seq& x) {
    std::vector<Stmt> out;
    out.reserve(x.stmts.size());
    bool changed = false;
    for (const Stmt& child : x.stmts) {
      Stmt next = run(child);
      changed |= next.get() != child.get();
      if (!empty(next)) out.push_back(std::move(next));
    }
    return changed ? seq(std::move(out)) : s;
  }

  Stmt call(const Stmt& s, const Call& x) {
    Call out = x;
    bool changed = false;
    for (auto& arg : out.args) {
      if (auto* e = std::get_if<Expr>(&arg)) {
        changed |= update(*e);
      } else {
        for (auto& [begin, size] : std::get<Region>(arg).dims) {
          const bool b = update(begin), n = update(size);
          changed |= b || n;
        }
      }
    }
    return changed ? make(std::move(out)) : s;
  }

  Simplifier simplifier_;
};

}  // namespace

Stmt simplify(const Stmt& s, const Bounds& bounds) { return StmtSimplifier(bounds).run(s); }

}  // namespace tilewright::arith
