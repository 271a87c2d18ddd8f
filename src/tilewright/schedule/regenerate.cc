#include "tilewright/schedule/regenerate.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"

namespace tilewright::schedule {
namespace {

bool mentions_any(const Expr& e, const std::vector<Id>& loops, const Tree& tree) {
  for (const Var& v : free_vars(e))
    for (Id l : loops)
      if (tree.loop(l).var == v) return true;
  return false;
}

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

/// Innermost loop around the place that also holds `block`; kNone if there is none.
Id innermost_shared(const Tree& tree, const std::vector<Id>& loops, Id block) {
  Id shared = kNone;
  for (Id l : loops)
    if (tree.inside(block, l)) shared = l;
  return shared;
}

/// Variables of loops in `loops` strictly inside `scope`.
std::vector<Var> vars_below(const Tree& tree, const std::vector<Id>& loops, Id scope) {
  std::vector<Var> vars;
  for (Id l : loops)
    if (scope == kNone || (l != scope && tree.inside(l, scope))) vars.push_back(tree.loop(l).var);
  return vars;
}

/// True if every loop provably runs at least once.
bool all_run(const Tree& tree, const std::vector<Id>& loops, const arith::Bounds& bounds) {
  return std::all_of(loops.begin(), loops.end(),
                     [&](Id l) { return arith::prove(tree.loop(l).extent >= 1, bounds); });
}

bool several_setters(const Tree& tree, const Uses& uses, const Buffer& buffer) {
  int setters = 0;
  for (Id w : uses.writers(buffer)) {
    const Store* s = single_store(tree.block(w));
    setters += s == nullptr || s->combine == Combine::Set;
  }
  return setters > 1;
}

/// True if within one iteration of loop `shared` the block `writer` gives all elements of `box`
/// their final value.
bool writes_all(const Tree& tree, const Uses& uses, Id writer, Id shared, const Buffer& buffer,
                const arith::Box& box, const arith::Bounds& bounds) {
  const Block& block = tree.block(writer);
  const Store* store = single_store(block);
  if (store == nullptr || store->buffer != buffer) return false;
  arith::Bounds all = tree.bounds_at(writer);
  if (!residual_guard(block, all).empty()) return false;
  if (!all_run(tree, loops_below(tree, writer, shared), all)) return false;
  if (block.guard && several_setters(tree, uses, buffer)) return false;
  // A shared loop that the sum runs over leaves the element unfinished in one iteration.
  const Id alloc = tree.alloc_of(buffer);
  const Id scope = alloc == kNone ? kNone : tree.parent(alloc);
  std::vector<Id> common;
  for (Id l : tree.loops_around(writer))
    if (l <= shared && tree.inside(shared, l) && (scope == kNone || tree.inside(l, scope)))
      common.push_back(l);
  for (const Iter& iter : block.iters)
    if (iter.kind != IterKind::Space && store->combine != Combine::Set &&
        mentions_any(iter.binding, common, tree))
      return false;
  for (const Access& a : accesses(block)) {
    if (!a.write || a.buffer != buffer) continue;
    const arith::Box written = box_of(a, vars_of(tree, loops_below(tree, writer, shared)), all);
    for (const auto& [var, range] : bounds.ranges()) all.bind_range(var, range.lo, range.hi);
    return written.exact && arith::contains(written, box, all);
  }
  return false;
}

/// True if block `old` makes a read of at least `box`, all of it certainly executed.
bool reads_at_least(const Tree& tree, Id old, Id shared, const Buffer& buffer,
                    const arith::Box& box, const arith::Bounds& bounds) {
  arith::Bounds all = tree.bounds_at(old);
  const std::vector<Var> vars = vars_of(tree, loops_below(tree, old, shared));
  for (const Access& a : accesses(tree.block(old))) {
    if (a.write || a.buffer != buffer) continue;
    const arith::Box before = box_of(a, vars, all);
    arith::Bounds both = bounds;
    for (const auto& [var, range] : all.ranges()) both.bind_range(var, range.lo, range.hi);
    if (before.exact && arith::contains(before, box, both)) return true;
  }
  return false;
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

std::optional<std::vector<Axis>> axes_of(const std::vector<Expr>& indices, const Block& block) {
  std::vector<Axis> axes;
  std::set<int> seen;
  auto iter_of = [&](const Expr& e) {
    const VarRef* v = e.as<VarRef>();
    for (size_t i = 0; v && i < block.iters.size(); ++i)
      if (block.iters[i].var == v->var) return static_cast<int>(i);
    return -1;
  };
  for (const Expr& index : indices) {
    const arith::Affine a = arith::as_affine(index);
    Axis axis;
    if (a.terms.size() == 1 && a.terms[0].second == 1) {
      axis = {iter_of(a.terms[0].first), a.constant};
    }
    if (axis.iter < 0) {
      for (const Iter& iter : block.iters)
        if (uses(index, iter.var)) return std::nullopt;
      axis = {};
    } else if (!seen.insert(axis.iter).second) {
      return std::nullopt;
    }
    axes.push_back(axis);
  }
  return axes;
}

std::vector<IterRange> ranges_of(const Block& block, const std::vector<Axis>& axes,
                                 const arith::Box& box, const arith::Bounds& bounds, bool widen) {
  std::vector<IterRange> ranges(block.iters.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].iter < 0) continue;
    IterRange& r = ranges[axes[d].iter];
    r.begin = arith::simplify(box.dims[d].begin - axes[d].shift, bounds);
    r.size = arith::simplify(box.dims[d].size, bounds);
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    IterRange& r = ranges[i];
    const Expr& extent = block.iters[i].extent;
    if (block.iters[i].kind == IterKind::Scan) {
      r.keep = true;
      continue;
    }
    if (!r.begin) {
      r.whole = true;
    } else {
      const auto begin = as_int(r.begin), n = as_int(extent);
      const auto most = arith::const_range(r.size, bounds);
      if (most && (widen ? !as_int(r.size) : most->second < 0))
        r.size = int_imm(std::max<int64_t>(most->second, 0));
      if (as_int(r.size).value_or(0) < 0) r.size = int_imm(0);
      const auto size = as_int(r.size);
      const int64_t unbounded = kUnclipped / 2;
      if (!most || most->second >= (widen ? n.value_or(unbounded) : unbounded)) {
        r.whole = true;
      } else if (begin && size && n) {
        const int64_t lo = std::clamp<int64_t>(*begin, 0, *n);
        const int64_t hi = std::clamp<int64_t>(*begin + *size, lo, *n);
        r.begin = int_imm(lo), r.size = int_imm(hi - lo);
        r.whole = lo == 0 && hi == *n;
      } else if (begin && *begin <= 0) {
        r.whole = arith::prove(r.begin + r.size >= extent, bounds);
      }
    }
    if (r.whole) r.begin = int_imm(0), r.size = extent;
  }
  return ranges;
}

/// Gives every iteration with a range a loop and its new binding.
static void add_loops(Nest& nest, const std::vector<IterRange>& ranges,
                      const std::vector<size_t>& order, NamePool& names, arith::Bounds& bounds) {
  for (size_t i : order) {
    if (ranges[i].keep) continue;
    Iter& iter = nest.block.iters[i];
    const Var var(names.loop(nest.block.name + "." + iter.var.name()));
    nest.loops.emplace_back(var, ranges[i].size);
    bounds.bind(var, ranges[i].size);
    iter.binding = arith::simplify(ranges[i].begin + loop_value(var, ranges[i].size), bounds);
  }
}

/// Guards the iterations that may leave their extents.
static void add_guard(Nest& nest, const std::vector<IterRange>& ranges, std::vector<Expr> guard,
                      const arith::Bounds& bounds) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].whole || ranges[i].keep) continue;
    const Iter& iter = nest.block.iters[i];
    for (const Expr& inside : {iter.binding >= 0, iter.binding < iter.extent}) {
      const Expr e = arith::simplify(inside, bounds);
      if (!is_const_int(e, 1) && !arith::prove(e, bounds)) guard.push_back(e);
    }
  }
  nest.block.guard = conjunction(guard);
}

/// Why the block does not run its iterations over all of their extents; absent if it does.
static std::optional<std::string> gaps(const Tree& tree, Id id) {
  const Block& block = tree.block(id);
  const arith::Bounds bounds = tree.bounds_at(id);
  // Loops outside the life of the result start it anew: only those inside count.
  const Store* store = single_store(block);
  const Id alloc = store ? tree.alloc_of(store->buffer) : kNone;
  const std::vector<Var> vars =
      vars_of(tree, loops_below(tree, id, alloc == kNone ? kNone : tree.parent(alloc)));
  std::vector<Expr> reductions;
  for (const Iter& iter : block.iters) {
    if (iter.kind == IterKind::Reduce) reductions.push_back(iter.binding);
    const arith::Box box = box_of({iter.binding}, vars, bounds);
    const bool whole = arith::prove(box.dims[0].begin <= 0, bounds) &&
                       arith::prove(box.dims[0].begin + box.dims[0].size >= iter.extent, bounds);
    if (!box.exact || (iter.kind == IterKind::Reduce && !whole))
      return fmt::format("block {} does not run all of its iteration {}", block.name,
                         iter.var.name());
  }
  if (reductions.size() > 1 && !box_of(reductions, vars, bounds).exact)
    return fmt::format("block {} does not run all combinations of its reductions", block.name);
  return std::nullopt;
}

Result<Nest> make_nest(const Tree& tree, Id old_id, const std::vector<IterRange>& ranges,
                       const Place& place, NamePool& names, int requirement) {
  const Block& old = tree.block(old_id);
  if (auto why = gaps(tree, old_id)) return refuse(requirement, *why);
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
  add_guard(nest, ranges, std::move(guard), bounds);
  return nest;
}

Nest make_new_nest(const Block& block, const std::vector<IterRange>& ranges, NamePool& names,
                   arith::Bounds bounds) {
  Nest nest;
  nest.block = block;
  std::vector<size_t> order(block.iters.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  add_loops(nest, ranges, order, names, bounds);
  add_guard(nest, ranges, {}, bounds);
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

bool all_written(const Tree& tree, const Uses& uses, const Place& place, const Buffer& buffer,
                 const arith::Box& box, const arith::Bounds& bounds) {
  for (Id w : uses.writers(buffer)) {
    const Block& block = tree.block(w);
    const Store* store = single_store(block);
    if (w >= place.order(tree) || store == nullptr || store->combine != Combine::Set) continue;
    const auto axes = axes_of(store->indices, block);
    const Id shared = innermost_shared(tree, loops_around(tree, place), w);
    if (!axes || !writes_all(tree, uses, w, shared, buffer, box, bounds)) continue;
    bool inside = true;  // the guard of the writer may cut its box off at its extents
    for (size_t d = 0; d < axes->size(); ++d) {
      if ((*axes)[d].iter < 0) continue;
      const Expr end = block.iters[(*axes)[d].iter].extent + (*axes)[d].shift;
      const Expr first = int_imm((*axes)[d].shift);
      inside &= arith::prove(end >= buffer.shape()[d], bounds) ||
                arith::prove(box.dims[d].begin + box.dims[d].size <= end, bounds);
      inside &=
          arith::prove(first <= 0, bounds) || arith::prove(box.dims[d].begin >= first, bounds);
    }
    if (inside) return true;
  }
  return false;
}

std::optional<std::string> not_final(const Tree& tree, const Uses& uses, const Place& place,
                                     const Access& read, const std::vector<Var>& own,
                                     const arith::Bounds& bounds, Id old) {
  const Buffer& buffer = read.buffer;
  const Id alloc = tree.alloc_of(buffer);
  const int order = place.order(tree);
  if (alloc != kNone && !(alloc < order && tree.inside(place.at, tree.parent(alloc))))
    return fmt::format("buffer {} is not alive there", buffer.name());
  const std::vector<Id> around = loops_around(tree, place);
  for (Id w : uses.writers(buffer)) {
    const Id shared = innermost_shared(tree, around, w);
    const bool before = w < order;
    if (before && shared == kNone && (old == kNone || w < old)) continue;
    std::vector<Var> vars = vars_below(tree, around, shared);
    vars.insert(vars.end(), own.begin(), own.end());
    const arith::Box box = box_of(read, vars, bounds);
    if (before && shared != kNone && writes_all(tree, uses, w, shared, buffer, box, bounds))
      continue;
    if (old != kNone && before == (w < old) &&
        innermost_shared(tree, tree.loops_around(old), w) == shared &&
        reads_at_least(tree, old, shared, buffer, box, bounds))
      continue;
    return fmt::format("what it reads of {} may not be complete there (written by block {})",
                       buffer.name(), tree.block(w).name);
  }
  return std::nullopt;
}

std::optional<std::string> sources_not_final(const Tree& tree, const Uses& uses, const Place& place,
                                             const Nest& nest, Id old,
                                             const std::vector<Buffer>& except) {
  const arith::Bounds bounds = nest.bounds(tree.bounds_at(place.at));
  for (const Access& a : accesses(nest.block)) {
    if (a.write || std::find(except.begin(), except.end(), a.buffer) != except.end()) continue;
    if (auto why = not_final(tree, uses, place, a, nest.vars(), bounds, old)) return why;
  }
  return std::nullopt;
}

std::optional<std::string> other_instances(const Tree& tree, Id old, const Place& place,
                                           const std::vector<IterRange>& ranges) {
  const Block& block = tree.block(old);
  const std::vector<Id> around = loops_around(tree, place);
  const Id shared = innermost_shared(tree, around, old);
  const std::vector<Var> between = vars_below(tree, around, shared);
  arith::Bounds bounds = tree.bounds_at(place.at);
  arith::Bounds old_bounds = tree.bounds_at(old);
  for (const auto& [var, range] : old_bounds.ranges()) bounds.bind_range(var, range.lo, range.hi);
  std::vector<Var> vars = between;
  std::vector<Expr> now, then;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].keep) continue;
    const Var p(block.iters[i].var.name());
    bounds.bind(p, ranges[i].size);
    vars.push_back(p);
    then.push_back(ranges[i].begin + ref(p));
    now.push_back(block.iters[i].binding);
  }
  for (Id l : around)
    if (shared == kNone || (l != shared && tree.inside(l, shared)))
      if (!all_run(tree, {l}, bounds))
        return fmt::format("loop {} may have no iterations", tree.loop(l).var.name());
  const arith::Box before = box_of(now, vars_of(tree, loops_below(tree, old, shared)), bounds);
  const arith::Box after = box_of(then, vars, bounds);
  if (!before.exact || !after.exact)
    return fmt::format("the instances of block {} do not form a box without gaps", block.name);
  if (!arith::contains(after, before, bounds))
    return fmt::format("not all instances of block {} would run there", block.name);
  size_t k = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].keep) continue;
    const arith::Box::Dim &b = before.dims[k], &a = after.dims[k];
    ++k;
    const bool domain = arith::prove(b.begin <= 0, bounds) &&
                        arith::prove(b.begin + b.size >= block.iters[i].extent, bounds);
    if (!domain && !(arith::prove(b.begin <= a.begin, bounds) &&
                     arith::prove(a.begin + a.size <= b.begin + b.size, bounds)))
      return fmt::format("more instances of block {} would run there than now", block.name);
  }
  const Meeting m = meet(then, then, {vars.begin(), vars.end()}, bounds);
  for (const Var& v : between)
    if (!m.never && !m.equal.contains(v))
      return fmt::format("iterations of loop {} would run instances of block {} again", v.name(),
                         block.name);
  return std::nullopt;
}

Func sink_alloc(const Func& func, const Buffer& buffer) {
  const Tree tree(func);
  const Id alloc = tree.alloc_of(buffer);
  const Uses uses(tree);
  const std::vector<Id> users = uses.users(buffer);
  if (alloc == kNone || users.empty()) return func;
  const Id target = tree.common(users);
  if (tree.as<Seq>(target) == nullptr || target == tree.parent(alloc)) return func;
  for (Id user : users)
    for (const Access& a : accesses(tree.block(user))) {
      if (a.buffer != buffer || (a.write && !a.update)) continue;
      bool covered = false;
      for (Id w : uses.writers(buffer)) {
        const Store* set = single_store(tree.block(w));
        if (w >= user || set == nullptr || set->combine != Combine::Set) continue;
        const Id shared = innermost_shared(tree, tree.loops_around(user), w);
        const arith::Bounds bounds = tree.bounds_at(user);
        const arith::Box box = box_of(a, vars_of(tree, loops_below(tree, user, shared)), bounds);
        covered |= writes_all(tree, uses, w, shared, buffer, box, bounds);
      }
      if (!covered) return func;
    }
  Edit edit(tree);
  const Stmt decl = tree.stmt(alloc);
  edit.erase(alloc);
  edit.before(tree.child_towards(target, users.front()), {decl});
  return edit.func();
}

std::vector<Id> loops_around(const Tree& tree, const Place& place) {
  return tree.loops_around(place.at);
}

bool in_vector_loop(const Tree& tree, Id loop) {
  for (Id l = loop; l != kNone; l = tree.parent(l))
    if (tree.as<For>(l) && tree.loop(l).kind == ForKind::Vector) return true;
  return false;
}

}  // namespace tilewright::schedule
