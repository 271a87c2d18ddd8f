#include "tilewright/ir/walk.h"

#include <algorithm>

#include "tilewright/base/check.h"

namespace tilewright {
namespace {

using ExprFn = std::function<Expr(const Expr&)>;
using StmtFn = std::function<Stmt(const Stmt&)>;

/// Applies f to each element; true if any handle changed.
bool rewrite_all(std::vector<Expr>& exprs, const ExprFn& f) {
  bool changed = false;
  for (Expr& e : exprs) {
    Expr next = f(e);
    changed |= !same(next, e);
    e = std::move(next);
  }
  return changed;
}

Expr with_op(const Expr& e, ExprOp op) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{e.dtype(), std::move(op)}));
}

Expr map_children(const Expr& e, const ExprFn& f) {
  return match(
      e,
      [&](const Unary& x) {
        Expr a = f(x.a);
        return same(a, x.a) ? e : unary(x.op, std::move(a));
      },
      [&](const Binary& x) {
        Expr a = f(x.a), b = f(x.b);
        return same(a, x.a) && same(b, x.b) ? e : binary(x.op, std::move(a), std::move(b));
      },
      [&](const Select& x) {
        Expr c = f(x.condition), t = f(x.on_true), u = f(x.on_false);
        if (same(c, x.condition) && same(t, x.on_true) && same(u, x.on_false)) return e;
        return select(std::move(c), std::move(t), std::move(u));
      },
      [&](const Cast& x) {
        Expr a = f(x.a);
        return same(a, x.a) ? e : with_op(e, Cast{std::move(a), x.bits});
      },
      [&](const Load& x) {
        std::vector<Expr> indices = x.indices;
        return rewrite_all(indices, f) ? with_op(e, Load{x.buffer, std::move(indices)}) : e;
      },
      [&](const MathCall& x) {
        std::vector<Expr> args = x.args;
        return rewrite_all(args, f) ? with_op(e, MathCall{x.fn, std::move(args)}) : e;
      },
      [&](const auto&) { return e; });
}

bool deleted(const Stmt& s) { return !s || (s.as<Seq>() && s.as<Seq>()->stmts.empty()); }

/// One level of rewriting: children through fs, own expressions through fe.
class StmtRewriter {
 public:
  StmtRewriter(const StmtFn& f_stmt, const ExprFn& f_expr) : f_stmt_(f_stmt), f_expr_(f_expr) {}

  Stmt run(const Stmt& s) const {
    if (!s) return s;
    Stmt rebuilt = rebuild(s);
    if (deleted(rebuilt) || !f_stmt_) return rebuilt;
    return f_stmt_(rebuilt);
  }

 private:
  Expr expr(const Expr& e) const { return e && f_expr_ ? f_expr_(e) : e; }
  bool exprs(std::vector<Expr>& es) const {
    return f_expr_ && rewrite_all(es, [&](const Expr& e) { return expr(e); });
  }

  Stmt rebuild(const Stmt& s) const {
    return match(
        s,
        [&](const For& x) -> Stmt {
          Stmt body = run(x.body);
          if (deleted(body)) return Stmt();
          Expr extent = expr(x.extent);
          if (body.get() == x.body.get() && same(extent, x.extent)) return s;
          return make(For{x.var, std::move(extent), x.kind, x.axis, x.marks, std::move(body)});
        },
        [&](const Block& x) { return block(s, x); },
        [&](const Store& x) -> Stmt {
          std::vector<Expr> indices = x.indices;
          const bool changed = exprs(indices);
          Expr value = expr(x.value);
          if (!changed && same(value, x.value)) return s;
          return make(Store{x.buffer, std::move(indices), std::move(value), x.combine});
        },
        [&](const Alloc&) { return s; },
        [&](const If& x) -> Stmt {
          Expr condition = expr(x.condition);
          Stmt yes = run(x.then_body), no = run(x.else_body);
          if (deleted(yes) && deleted(no)) return Stmt();
          if (same(condition, x.condition) && yes.get() == x.then_body.get() &&
              no.get() == x.else_body.get())
            return s;
          if (deleted(yes))
            return make(If{logical_not(std::move(condition)), std::move(no), Stmt()});
          return make(
              If{std::move(condition), std::move(yes), deleted(no) ? Stmt() : std::move(no)});
        },
        [&](const Seq& x) -> Stmt {
          std::vector<Stmt> stmts;
          bool changed = false;
          for (const Stmt& child : x.stmts) {
            Stmt next = run(child);
            changed |= next.get() != child.get();
            if (!deleted(next)) stmts.push_back(std::move(next));
          }
          return changed ? seq(std::move(stmts)) : s;
        },
        [&](const Call& x) { return call(s, x); });
  }

  Stmt block(const Stmt& s, const Block& x) const {
    Block copy = x;
    bool changed = false;
    for (Iter& iter : copy.iters) {
      Expr extent = expr(iter.extent), binding = expr(iter.binding);
      changed |= !same(extent, iter.extent) || !same(binding, iter.binding);
      iter.extent = std::move(extent);
      iter.binding = std::move(binding);
    }
    copy.guard = expr(x.guard);
    copy.body = run(x.body);
    if (deleted(copy.body)) return Stmt();
    changed |= !same(copy.guard, x.guard) || copy.body.get() != x.body.get();
    return changed ? make(std::move(copy)) : s;
  }

  Stmt call(const Stmt& s, const Call& x) const {
    Call copy = x;
    bool changed = false;
    auto update = [&](Expr& e) {
      Expr next = expr(e);
      changed |= !same(next, e);
      e = std::move(next);
    };
    for (auto& arg : copy.args) {
      if (auto* e = std::get_if<Expr>(&arg)) {
        update(*e);
      } else {
        for (auto& [begin, size] : std::get<Region>(arg).dims) update(begin), update(size);
      }
    }
    return changed ? make(std::move(copy)) : s;
  }

  const StmtFn& f_stmt_;
  const ExprFn& f_expr_;
};

Buffer replaced(const BufferMap& map, const Buffer& buffer) {
  const auto it = map.find(buffer);
  return it == map.end() ? buffer : it->second;
}

}  // namespace

void walk(const Expr& e, const std::function<void(const Expr&)>& f) {
  if (!e) return;
  f(e);
  match(
      e, [&](const Unary& x) { walk(x.a, f); },
      [&](const Binary& x) { walk(x.a, f), walk(x.b, f); },
      [&](const Select& x) { walk(x.condition, f), walk(x.on_true, f), walk(x.on_false, f); },
      [&](const Cast& x) { walk(x.a, f); },
      [&](const Load& x) {
        for (const Expr& index : x.indices) walk(index, f);
      },
      [&](const MathCall& x) {
        for (const Expr& arg : x.args) walk(arg, f);
      },
      [](const auto&) {});
}

void walk(const Stmt& s, const std::function<void(const Stmt&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr) {
  if (!s) return;
  if (on_stmt) on_stmt(s);
  auto expr = [&](const Expr& e) {
    if (on_expr) walk(e, on_expr);
  };
  match(
      s, [&](const For& x) { expr(x.extent), walk(x.body, on_stmt, on_expr); },
      [&](const Block& x) {
        for (const Iter& iter : x.iters) expr(iter.extent), expr(iter.binding);
        expr(x.guard);
        walk(x.body, on_stmt, on_expr);
      },
      [&](const Store& x) {
        for (const Expr& index : x.indices) expr(index);
        expr(x.value);
      },
      [&](const Alloc& x) {
        for (const Expr& extent : x.buffer.shape()) expr(extent);
      },
      [&](const If& x) {
        expr(x.condition);
        walk(x.then_body, on_stmt, on_expr), walk(x.else_body, on_stmt, on_expr);
      },
      [&](const Seq& x) {
        for (const Stmt& child : x.stmts) walk(child, on_stmt, on_expr);
      },
      [&](const Call& x) {
        for (const auto& arg : x.args) {
          if (const auto* e = std::get_if<Expr>(&arg)) {
            expr(*e);
          } else {
            for (const auto& [begin, size] : std::get<Region>(arg).dims) expr(begin), expr(size);
          }
        }
      });
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f) {
  return f(map_children(e, [&](const Expr& child) { return rewrite(child, f); }));
}

Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& f_stmt,
             const std::function<Expr(const Expr&)>& f_expr) {
  return StmtRewriter(f_stmt, f_expr).run(s);
}

Expr substitute(const Expr& e, const VarMap& values) {
  if (!e || values.empty()) return e;
  return rewrite(e, [&](const Expr& x) {
    const auto* r = x.as<VarRef>();
    if (r == nullptr) return x;
    const auto it = values.find(r->var);
    return it == values.end() ? x : it->second;
  });
}

Stmt substitute(const Stmt& s, const VarMap& values) {
  if (values.empty()) return s;
  return rewrite(s, {}, [&](const Expr& e) { return substitute(e, values); });
}

Expr replace_buffers(const Expr& e, const BufferMap& map) {
  if (!e || map.empty()) return e;
  return rewrite(e, [&](const Expr& x) {
    const auto* l = x.as<Load>();
    if (l == nullptr || !map.contains(l->buffer)) return x;
    return load(map.at(l->buffer), l->indices);
  });
}

Stmt replace_buffers(const Stmt& s, const BufferMap& map) {
  if (map.empty()) return s;
  return rewrite(
      s,
      [&](const Stmt& x) {
        if (const auto* store = x.as<Store>(); store && map.contains(store->buffer))
          return make(Store{map.at(store->buffer), store->indices, store->value, store->combine});
        if (const auto* alloc = x.as<Alloc>(); alloc && map.contains(alloc->buffer))
          return make(Alloc{map.at(alloc->buffer), alloc->marks});
        if (const auto* call = x.as<Call>()) {
          Call copy = *call;
          for (auto& arg : copy.args)
            if (auto* region = std::get_if<Region>(&arg))
              region->buffer = replaced(map, region->buffer);
          return make(std::move(copy));
        }
        return x;
      },
      [&](const Expr& e) { return replace_buffers(e, map); });
}

Stmt clone(const Stmt& s, const std::function<std::string(const std::string&)>& rename) {
  VarMap vars;
  BufferMap buffers;
  walk(s, [&](const Stmt& x) {
    auto fresh = [&](const Var& v, const std::string& text) {
      vars[v] = ref(Var(text, v.dtype()));
    };
    if (const auto* loop = x.as<For>()) fresh(loop->var, rename(loop->var.name()));
    if (const auto* block = x.as<Block>())
      for (const Iter& iter : block->iters) fresh(iter.var, iter.var.name());
    if (const auto* alloc = x.as<Alloc>()) {
      const Buffer& b = alloc->buffer;
      buffers[b] = Buffer(rename(b.name()), b.dtype(), b.shape(), b.scope());
    }
  });
  auto var_of = [&](const Var& v) { return vars.at(v).as<VarRef>()->var; };
  const Stmt copy = rewrite(
      s,
      [&](const Stmt& x) {
        if (const auto* loop = x.as<For>()) {
          For out = *loop;
          out.var = var_of(loop->var);
          return make(std::move(out));
        }
        if (const auto* block = x.as<Block>()) {
          Block out = *block;
          out.name = rename(block->name);
          for (Iter& iter : out.iters) iter.var = var_of(iter.var);
          return make(std::move(out));
        }
        return x;
      },
      [&](const Expr& e) { return substitute(e, vars); });
  return replace_buffers(copy, buffers);
}

std::vector<Stmt> children(const Stmt& s) {
  return match(
      s, [](const For& x) { return std::vector<Stmt>{x.body}; },
      [](const Block& x) { return std::vector<Stmt>{x.body}; },
      [](const If& x) {
        return x.else_body ? std::vector<Stmt>{x.then_body, x.else_body}
                           : std::vector<Stmt>{x.then_body};
      },
      [](const Seq& x) { return x.stmts; }, [](const auto&) { return std::vector<Stmt>{}; });
}

std::vector<Var> free_vars(const Expr& e) {
  std::vector<Var> vars;
  walk(e, [&](const Expr& x) {
    if (const auto* r = x.as<VarRef>();
        r && std::find(vars.begin(), vars.end(), r->var) == vars.end())
      vars.push_back(r->var);
  });
  return vars;
}

bool uses_any(const Expr& e, const std::vector<Var>& vars) {
  const std::vector<Var> free = free_vars(e);
  return std::any_of(free.begin(), free.end(), [&](const Var& var) {
    return std::find(vars.begin(), vars.end(), var) != vars.end();
  });
}

bool uses(const Expr& e, const Var& var) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    if (const auto* r = x.as<VarRef>()) found |= r->var == var;
  });
  return found;
}

}  // namespace tilewright
