// All accesses to one buffer in a statement, each with what holds where it stands: the loops around
// it, and the guards, ifs and sides of selects on the way as assumed conditions.
//
//   for i in 8 { if i < 5 { Y[i] = select(i > 0, P[i - 1], 0.0) } }
//   ->  a read of P at i - 1 with 0 <= i < 8, i < 5 and i > 0
#include "tilewright/lower/accesses.h"

#include "tilewright/ir/walk.h"

namespace tilewright::lower {
namespace {

/// Walks with the facts of the current place; copies of it are made where facts are added.
class Collector {
 public:
  Collector(const Buffer& buffer, std::vector<BufferAccess>& out) : buffer_(buffer), out_(out) {}

  struct Place {
    std::vector<Var> vars;
    std::vector<Expr> conditions;
    arith::Bounds bounds, unguarded, outer;
    VarMap iters;

    Place where(const Expr& condition) const {
      Place next = *this;
      const Expr c = substitute(condition, iters);
      next.conditions.push_back(c);
      next.bounds.assume(c);
      next.outer.assume(c);
      return next;
    }
  };

  void stmt(const Stmt& s, const Place& at) {
    if (!s) return;
    match(
        s,
        [&](const For& x) {
          expr(x.extent, at);
          Place inside = at;
          inside.vars.push_back(x.var);
          inside.bounds.bind(x.var, substitute(x.extent, at.iters));
          inside.unguarded.bind(x.var, substitute(x.extent, at.iters));
          stmt(x.body, inside);
        },
        [&](const Block& x) {
          if (x.guard) expr(x.guard, at);
          Place inside = x.guard ? at.where(x.guard) : at;
          for (const Iter& iter : x.iters) {
            expr(iter.binding, inside);
            inside.iters[iter.var] = substitute(iter.binding, at.iters);
          }
          stmt(x.body, inside);
        },
        [&](const Store& x) {
          expr(x.value, at);
          for (const Expr& index : x.indices) expr(index, at);
          if (!(x.buffer == buffer_)) return;
          if (x.combine != Combine::Set) add(x.indices, at).reads = true;
          if (x.combine == Combine::Set) add(x.indices, at).sets = true;
        },
        [](const Alloc&) {},
        [&](const If& x) {
          expr(x.condition, at);
          stmt(x.then_body, at.where(x.condition));
          if (x.else_body) stmt(x.else_body, at.where(logical_not(x.condition)));
        },
        [&](const Seq& x) {
          for (const Stmt& child : x.stmts) stmt(child, at);
        },
        [&](const Call& x) { call(x, at); });
  }

 private:
  void call(const Call& x, const Place& at) {
    for (const auto& arg : x.args) {
      if (const auto* e = std::get_if<Expr>(&arg)) {
        expr(*e, at);
        continue;
      }
      const Region& region = std::get<Region>(arg);
      std::vector<Expr> begins, sizes;
      for (const auto& dim : region.dims) {
        expr(dim.first, at), expr(dim.second, at);
        begins.push_back(dim.first), sizes.push_back(substitute(dim.second, at.iters));
      }
      if (!(region.buffer == buffer_)) continue;
      BufferAccess& access = add(begins, at);
      access.sizes = sizes;
      access.reads = access.opaque = true;
    }
  }

  void expr(const Expr& e, const Place& at) {
    if (!e) return;
    match(
        e, [&](const Unary& x) { expr(x.a, at); },
        [&](const Binary& x) {
          expr(x.a, at);
          const bool lazy = x.op == BinaryOp::And || x.op == BinaryOp::Or;
          if (!lazy || !loads_buffer(x.b)) return expr(x.b, at);
          expr(x.b, at.where(x.op == BinaryOp::And ? x.a : logical_not(x.a)));
        },
        [&](const Select& x) {
          expr(x.condition, at);
          if (loads_buffer(x.on_true)) expr(x.on_true, at.where(x.condition));
          if (loads_buffer(x.on_false)) expr(x.on_false, at.where(logical_not(x.condition)));
        },
        [&](const Cast& x) { expr(x.a, at); },
        [&](const Load& x) {
          for (const Expr& index : x.indices) expr(index, at);
          if (x.buffer == buffer_) add(x.indices, at).reads = true;
        },
        [&](const MathCall& x) {
          for (const Expr& arg : x.args) expr(arg, at);
        },
        [](const auto&) {});
  }

  bool loads_buffer(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>()) found |= l->buffer == buffer_;
    });
    return found;
  }

  BufferAccess& add(const std::vector<Expr>& indices, const Place& at) {
    BufferAccess access;
    access.buffer = buffer_;
    for (const Expr& index : indices) access.indices.push_back(substitute(index, at.iters));
    access.vars = at.vars;
    access.conditions = at.conditions;
    access.bounds = at.bounds;
    access.unguarded = at.unguarded;
    access.outer = at.outer;
    out_.push_back(std::move(access));
    return out_.back();
  }

  const Buffer& buffer_;
  std::vector<BufferAccess>& out_;
};

}  // namespace

std::vector<BufferAccess> accesses_of(const Stmt& s, const Buffer& buffer,
                                      const arith::Bounds& outer) {
  std::vector<BufferAccess> out;
  Collector::Place at;
  at.bounds = at.unguarded = at.outer = outer;
  Collector(buffer, out).stmt(s, at);
  return out;
}

}  // namespace tilewright::lower
