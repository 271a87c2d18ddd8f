// What blocks read and write, with iterations replaced by the loops that they are bound to.
//
//   for o in 4, i in 8 { block C(x: space 32 = 8*o + i) { C[x] = A[x + 1] } }
//   ->  write C[8*o + i], read A[8*o + i + 1]; with i running, C's box is [8*o :+8]
#include "tilewright/schedule/access.h"

#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/digits.h"

namespace tilewright::schedule {
namespace {

void add_loads(const Expr& e, const VarMap& bindings, std::vector<Access>& out) {
  walk(e, [&](const Expr& x) {
    const Load* l = x.as<Load>();
    if (l == nullptr) return;
    Access a;
    a.buffer = l->buffer;
    for (const Expr& index : l->indices) a.indices.push_back(substitute(index, bindings));
    out.push_back(std::move(a));
  });
}

void add_store(const Store& s, const VarMap& bindings, std::vector<Access>& out) {
  Access a;
  a.buffer = s.buffer;
  for (const Expr& index : s.indices) a.indices.push_back(substitute(index, bindings));
  a.write = true;
  a.update = s.combine != Combine::Set;
  a.combine = s.combine;
  out.push_back(std::move(a));
  for (const Expr& index : s.indices) add_loads(index, bindings, out);
  add_loads(s.value, bindings, out);
}

void add_region(const Region& region, bool write, const VarMap& bindings,
                std::vector<Access>& out) {
  Access a;
  a.buffer = region.buffer;
  a.write = write;
  for (const auto& [begin, size] : region.dims) {
    Expr index = substitute(begin, bindings);
    if (!is_const_int(size, 1)) {
      const Var v("region");
      a.inner.emplace_back(v, substitute(size, bindings));
      index = index + ref(v);
    }
    a.indices.push_back(std::move(index));
    add_loads(begin, bindings, out), add_loads(size, bindings, out);
  }
  out.push_back(std::move(a));
}

void add_call(const Call& call, const VarMap& bindings, std::vector<Access>& out) {
  size_t param = 0;
  for (const auto& arg : call.args) {
    if (const Expr* e = std::get_if<Expr>(&arg)) {
      add_loads(*e, bindings, out);
      continue;
    }
    const ParamMode mode = call.callee->params[param++].mode;
    const Region& region = std::get<Region>(arg);
    if (mode != ParamMode::Out) add_region(region, false, bindings, out);
    if (mode == ParamMode::Out || mode == ParamMode::InOut) add_region(region, true, bindings, out);
  }
}

}  // namespace

std::vector<Access> accesses(const Block& block) {
  VarMap bindings;
  for (const Iter& iter : block.iters) bindings[iter.var] = iter.binding;
  std::vector<Access> out;
  for (const Iter& iter : block.iters) add_loads(iter.binding, {}, out);
  if (block.guard) add_loads(block.guard, {}, out);
  auto body = [&](const Stmt& s) {
    if (const Store* store = s.as<Store>()) add_store(*store, bindings, out);
    if (const Call* call = s.as<Call>()) add_call(*call, bindings, out);
  };
  if (const Seq* list = block.body.as<Seq>()) {
    for (const Stmt& s : list->stmts) body(s);
  } else {
    body(block.body);
  }
  return out;
}

Uses::Uses(const Tree& tree) {
  for (Id id : tree.blocks()) {
    const Block& block = tree.block(id);
    auto add = [&](const Buffer& buffer, bool write) {
      for (const Use& u : uses_)
        if (u.block == id && u.buffer == buffer && u.write == write) return;
      uses_.push_back({id, buffer, write});
    };
    walk(
        make(block),
        [&](const Stmt& s) {
          if (const Store* store = s.as<Store>()) add(store->buffer, true);
          if (const Call* call = s.as<Call>()) {
            size_t param = 0;
            for (const auto& arg : call->args) {
              const Region* region = std::get_if<Region>(&arg);
              if (region == nullptr) continue;
              const ParamMode mode = call->callee->params[param++].mode;
              if (mode != ParamMode::Out) add(region->buffer, false);
              if (mode == ParamMode::Out || mode == ParamMode::InOut) add(region->buffer, true);
            }
          }
        },
        [&](const Expr& e) {
          if (const Load* l = e.as<Load>()) add(l->buffer, false);
        });
  }
}

std::vector<Id> Uses::users(const Buffer& buffer, bool write) const {
  std::vector<Id> ids;
  for (const Use& u : uses_)
    if (u.buffer == buffer && u.write == write) ids.push_back(u.block);
  return ids;
}

std::vector<Id> Uses::users(const Buffer& buffer) const {
  std::vector<Id> ids;
  for (const Use& u : uses_)
    if (u.buffer == buffer && (ids.empty() || ids.back() != u.block)) ids.push_back(u.block);
  return ids;
}

const Store* single_store(const Block& block) { return block.body.as<Store>(); }

std::optional<Producer> producer_of(const Tree& tree, const Uses& uses, const Buffer& buffer) {
  const std::vector<Id> writers = uses.writers(buffer);
  for (Id id : writers)
    if (single_store(tree.block(id)) == nullptr) return std::nullopt;
  auto sets = [&](Id id) { return single_store(tree.block(id))->combine == Combine::Set; };
  if (writers.size() == 1 && sets(writers[0])) return Producer{kNone, writers[0]};
  if (writers.size() == 2 && sets(writers[0]) && !sets(writers[1]))
    return Producer{writers[0], writers[1]};
  return std::nullopt;
}

std::vector<Buffer> sources(const Block& block) {
  std::vector<Buffer> out;
  walk(make(block), {}, [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (l && std::find(out.begin(), out.end(), l->buffer) == out.end()) out.push_back(l->buffer);
  });
  return out;
}

arith::Box box_of(const std::vector<Expr>& indices, const std::vector<Var>& vars,
                  const arith::Bounds& bounds) {
  // Elements outside a buffer do not exist, so clipping would only hide that a hull is exact.
  const std::vector<Expr> shape(indices.size(), int_imm(kUnclipped));
  DigitTable table;
  for (const Expr& index : indices) table.find(index);
  if (table.entries().empty()) return arith::touched(indices, shape, vars, bounds);
  arith::Bounds more = bounds;
  table.make(more, false);
  std::vector<Var> all;
  bool ragged = false;
  for (const Var& v : vars) {
    const Digits* d = table.of(v);
    if (d == nullptr || d->digits.empty()) {
      all.push_back(v);
    } else {
      all.insert(all.end(), d->digits.begin(), d->digits.end());
      ragged |= d->ragged;
    }
  }
  // Variables that stay are not cut: the box is in terms of them.
  VarMap whole;
  for (const Digits& d : table.entries()) {
    if (std::find(vars.begin(), vars.end(), d.var) != vars.end()) {
      // Where it was not written in digits: inside something that is no sum.
      if (!d.digits.empty()) whole[d.var] = table.expand(ref(d.var));
      continue;
    }
    for (size_t i = 0; i < d.digits.size(); ++i) {
      Expr digit = ref(d.var) / d.cuts[i];
      if (i + 1 < d.cuts.size()) digit = digit % (d.cuts[i + 1] / d.cuts[i]);
      whole[d.digits[i]] = digit;
    }
  }
  std::vector<Expr> plain;
  for (const Expr& index : indices) plain.push_back(substitute(table.expand(index), whole));
  arith::Box box = arith::touched(plain, shape, all, more);
  if (ragged) box.exact = false;
  return box;
}

arith::Box box_of(const Access& access, const std::vector<Var>& vars, const arith::Bounds& bounds) {
  if (access.inner.empty()) return box_of(access.indices, vars, bounds);
  std::vector<Var> all = vars;
  arith::Bounds more = bounds;
  for (const auto& [var, extent] : access.inner) {
    all.push_back(var);
    more.bind(var, extent);
  }
  return box_of(access.indices, all, more);
}

std::vector<Var> vars_of(const Tree& tree, const std::vector<Id>& loops) {
  std::vector<Var> vars;
  for (Id id : loops) vars.push_back(tree.loop(id).var);
  return vars;
}

bool mentions_any(const Expr& e, const std::vector<Id>& loops, const Tree& tree) {
  for (const Var& v : free_vars(e))
    for (Id l : loops)
      if (tree.loop(l).var == v) return true;
  return false;
}

std::vector<Id> loops_below(const Tree& tree, Id id, Id scope) {
  std::vector<Id> loops = tree.loops_around(id);
  if (scope == kNone) return loops;
  std::erase_if(loops, [&](Id l) { return l == scope || !tree.inside(l, scope); });
  return loops;
}

std::vector<Expr> residual_guard(const Block& block, const arith::Bounds& bounds, bool space_only) {
  std::vector<Expr> rest;
  const std::vector<Expr> all = conjuncts(block.guard);
  if (all.empty()) return rest;
  arith::Bounds domain = bounds;
  for (const Iter& iter : block.iters) {
    if (space_only && iter.kind != IterKind::Space) continue;
    domain.assume(iter.binding < iter.extent);
    domain.assume(iter.binding >= 0);
  }
  for (const Expr& e : all)
    if (!arith::prove(e, domain)) rest.push_back(e);
  return rest;
}

bool leaves_elements_out(const Block& block, const arith::Bounds& bounds) {
  const std::vector<Expr> rest = residual_guard(block, bounds);
  const Store* store = single_store(block);
  if (rest.empty() || store == nullptr || store->combine == Combine::Set) return !rest.empty();
  std::set<Var> terms, elements;
  for (const Iter& iter : block.iters)
    for (const Var& v : free_vars(iter.binding))
      (iter.kind == IterKind::Reduce ? terms : elements).insert(v);
  return std::any_of(rest.begin(), rest.end(), [&](const Expr& e) {
    const std::vector<Var> vars = free_vars(e);
    return std::any_of(vars.begin(), vars.end(),
                       [&](const Var& v) { return !terms.contains(v) || elements.contains(v); });
  });
}

bool order_matters(MathMode math, DType dtype, Combine combine) {
  return math == MathMode::Exact && is_float(dtype) &&
         (combine == Combine::Add || combine == Combine::Mul);
}

}  // namespace tilewright::schedule
