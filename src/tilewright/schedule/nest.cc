// Nests made anew for a moved or staged block: loops, bindings, guards.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/regenerate.h"

namespace tilewright::schedule {
namespace {

/// Positions of the iterations in the order their loops are made: reductions in the order they run
/// at present where that order is part of the meaning.
std::vector<size_t> loop_order(const Tree& tree, Id id) {
  const Block& block = tree.block(id);
  std::vector<size_t> order(block.iters.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const Store* store = single_store(block);
  if (!store || !order_matters(tree.func().math, store->buffer.dtype(), store->combine))
    return order;
  const std::vector<Var> loops = vars_of(tree, tree.loops_around(id));
  auto depth = [&](size_t i) {
    size_t best = loops.size();
    for (const Var& v : free_vars(block.iters[i].binding))
      best = std::min<size_t>(best, std::find(loops.begin(), loops.end(), v) - loops.begin());
    return best;
  };
  std::vector<size_t> reduce;
  for (size_t i : order)
    if (block.iters[i].kind == IterKind::Reduce) reduce.push_back(i);
  std::stable_sort(reduce.begin(), reduce.end(),
                   [&](size_t a, size_t b) { return depth(a) < depth(b); });
  size_t next = 0;
  for (size_t& i : order)
    if (block.iters[i].kind == IterKind::Reduce) i = reduce[next++];
  return order;
}

/// Gives every iteration with a range a loop and its new binding.
void add_loops(Nest& nest, const std::vector<IterRange>& ranges, const std::vector<size_t>& order,
               NamePool& names, arith::Bounds& bounds) {
  for (size_t i : order) {
    if (ranges[i].keep) continue;
    Iter& iter = nest.block.iters[i];
    const Var var(names.loop(nest.block.name + "." + iter.var.name()));
    nest.loops.emplace_back(var, ranges[i].size);
    bounds.bind(var, ranges[i].size);
    iter.binding = arith::simplify(ranges[i].begin + loop_value(var, ranges[i].size), bounds);
  }
}

/// Values an iteration takes: from `begin`, before `end`.
struct Domain {
  Expr begin, end;
  bool whole = true;  ///< all of the iteration's extent
};

std::vector<Domain> whole_domains(const Block& block) {
  std::vector<Domain> domains;
  for (const Iter& iter : block.iters) domains.push_back({int_imm(0), iter.extent, true});
  return domains;
}

/// Guards the iterations that may leave their domains.
void add_guard(Nest& nest, const std::vector<IterRange>& ranges, const std::vector<Domain>& domains,
               std::vector<Expr> guard, const arith::Bounds& bounds) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].keep || (ranges[i].whole && domains[i].whole)) continue;
    const auto& [var, kind, extent, binding] = nest.block.iters[i];
    // A domain that is not whole may still reach over the extent's end: both are asked.
    for (const Expr& inside :
         {binding >= 0, binding < extent, binding >= domains[i].begin, binding < domains[i].end}) {
      const Expr e = arith::simplify(inside, bounds);
      if (!is_const_int(e, 1) && !arith::prove(e, bounds)) guard.push_back(e);
    }
  }
  nest.block.guard = conjunction(guard);
}

Domain domain_of(const arith::Box& box, const Iter& iter, const arith::Bounds& bounds) {
  const Expr begin = box.dims[0].begin, end = begin + box.dims[0].size;
  const bool first = arith::prove(begin <= 0, bounds);
  const bool last = arith::prove(end >= iter.extent, bounds);
  return {first ? int_imm(0) : begin, last ? iter.extent : end, first && last};
}

/// The domains of a block's iterations in the whole program: its new nest must run no instance that
/// never ran, since its sources may never have been written. In the life of its result they are
/// boxes without gaps, reductions whole.
Result<std::vector<Domain>> domains_of(const Tree& tree, Id id, int requirement) {
  const Block& block = tree.block(id);
  const arith::Bounds bounds = tree.bounds_at(id);
  // Loops outside the life of the result start it anew: only those inside count.
  const Store* store = single_store(block);
  const Id alloc = store ? tree.alloc_of(store->buffer) : kNone;
  const std::vector<Var> vars =
      vars_of(tree, loops_below(tree, id, alloc == kNone ? kNone : tree.parent(alloc)));
  std::vector<Domain> domains;
  std::vector<Expr> reductions;
  for (const Iter& iter : block.iters) {
    if (iter.kind == IterKind::Reduce) reductions.push_back(iter.binding);
    const arith::Box box = box_of({iter.binding}, vars, bounds);
    if (!box.exact || (iter.kind == IterKind::Reduce && !domain_of(box, iter, bounds).whole))
      return refuse(requirement, fmt::format("block {} does not run all of its iteration {}",
                                             block.name, iter.var.name()));
    const arith::Box ever = box_of({iter.binding}, vars_of(tree, tree.loops_around(id)), bounds);
    domains.push_back(domain_of(ever, iter, bounds));
  }
  if (reductions.size() > 1 && !box_of(reductions, vars, bounds).exact)
    return refuse(requirement, fmt::format("block {} does not run all combinations of its "
                                           "reductions",
                                           block.name));
  return domains;
}

}  // namespace

Stmt Nest::stmt() const {
  Stmt s = make(block);
  for (size_t i = loops.size(); i-- > 0;)
    s = make(For{loops[i].first, loops[i].second, ForKind::Serial, "", {}, s});
  return s;
}

std::vector<Var> Nest::vars() const {
  std::vector<Var> out;
  for (const auto& [var, extent] : loops) out.push_back(var);
  return out;
}

arith::Bounds Nest::bounds(arith::Bounds outer) const {
  for (const auto& [var, extent] : loops) outer.bind(var, extent);
  return outer;
}

Result<Nest> make_nest(const Tree& tree, Id old_id, const std::vector<IterRange>& ranges,
                       const Place& place, NamePool& names, int requirement) {
  const Block& old = tree.block(old_id);
  const std::vector<Domain> domains = TW_TRY(domains_of(tree, old_id, requirement));
  arith::Bounds bounds = tree.bounds_at(place.at);
  const std::vector<Id> around = loops_around(tree, place);
  std::vector<Id> lost = tree.loops_around(old_id);
  std::erase_if(lost,
                [&](Id l) { return std::find(around.begin(), around.end(), l) != around.end(); });
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].keep && mentions_any(old.iters[i].binding, lost, tree))
      return refuse(requirement, fmt::format("iteration {} of block {} runs in order and its loop "
                                             "is not around the new place",
                                             old.iters[i].var.name(), old.name));
  Nest nest;
  nest.block = old;
  add_loops(nest, ranges, loop_order(tree, old_id), names, bounds);
  std::vector<Id> alive = around;
  const Store* store = single_store(old);
  if (const Id alloc = store ? tree.alloc_of(store->buffer) : kNone; alloc != kNone)
    std::erase_if(alive, [&](Id l) { return !tree.inside(l, tree.parent(alloc)); });
  std::vector<Expr> guard;
  for (Expr e : residual_guard(old, tree.bounds_at(old_id))) {
    VarMap moved;
    for (size_t i = 0; i < old.iters.size(); ++i)
      if (const VarRef* v = old.iters[i].binding.as<VarRef>())
        moved[v->var] = nest.block.iters[i].binding;
    for (Id l : around) moved.erase(tree.loop(l).var);
    const bool outside = mentions_any(e, alive, tree);
    e = substitute(e, moved);
    // A guard on loops inside the buffer's life may say that an earlier iteration did the work.
    if (mentions_any(e, lost, tree) || outside)
      return refuse(requirement, fmt::format("the guard of block {} is not in terms of its "
                                             "iterations",
                                             old.name));
    guard.push_back(arith::simplify(e, bounds));
  }
  add_guard(nest, ranges, domains, std::move(guard), bounds);
  return nest;
}

Nest make_new_nest(const Block& block, const std::vector<IterRange>& ranges, NamePool& names,
                   arith::Bounds bounds) {
  Nest nest;
  nest.block = block;
  std::vector<size_t> order(block.iters.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  add_loops(nest, ranges, order, names, bounds);
  add_guard(nest, ranges, whole_domains(block), {}, bounds);
  return nest;
}

Block copy_block(const std::string& name, const std::vector<std::string>& iters,
                 const std::vector<Expr>& extents, const Buffer& from, const Buffer& to) {
  Block block;
  block.name = name;
  std::vector<Expr> indices;
  for (size_t d = 0; d < iters.size(); ++d) {
    const Var var(iters[d]);
    block.iters.push_back({var, IterKind::Space, extents[d], Expr()});
    indices.push_back(ref(var));
  }
  block.body = make(Store{to, indices, load(from, indices), Combine::Set});
  return block;
}

}  // namespace tilewright::schedule
