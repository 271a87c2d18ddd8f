// A block's nest built anew at another place: which iterations it must run there, and whether all
// that it reads is complete at that place.
//
//   block P(i) { P[i] = f(i) }, elements 4*j .. 4*j + 3 wanted  =>  for i in 4 { block P(4*j + i) }
//
// ComputeAt, ReverseComputeAt, CacheRead, CacheWrite, Reindex and RFactor all make their nests
// here.
#include "tilewright/schedule/regenerate.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"

namespace tilewright::schedule {
namespace {

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

/// True if elements of `buffer` may be set again, as those of rings are.
bool set_again(const Tree& tree, const Uses& uses, const Buffer& buffer) {
  const Id alloc = tree.alloc_of(buffer);
  if (alloc == kNone || !several_setters(tree, uses, buffer)) return false;
  for (Id w : uses.writers(buffer)) {
    const std::vector<Var> vars = vars_of(tree, loops_below(tree, w, tree.parent(alloc)));
    for (const Access& a : accesses(tree.block(w))) {
      if (!(a.buffer == buffer) || !a.write || a.update) continue;
      bool wraps = false;
      for (const Expr& index : a.indices)
        walk(index, [&](const Expr& e) {
          const auto* b = e.as<Binary>();
          wraps |= b != nullptr && b->op == BinaryOp::Mod;
        });
      if (!wraps) continue;
      const Meeting m = meet(a.indices, a.indices, {vars.begin(), vars.end()}, tree.bounds_at(w));
      for (const Var& v : vars)
        if (!m.never && !m.equal.contains(v)) return true;
    }
  }
  return false;
}

/// True if within one iteration of loop `shared` the block `writer` gives all elements of `box`
/// their final value.
bool writes_all(const Tree& tree, const Uses& uses, Id writer, Id shared, const Buffer& buffer,
                const arith::Box& box, const arith::Bounds& bounds) {
  const Block& block = tree.block(writer);
  const Store* store = single_store(block);
  if (store == nullptr || store->buffer != buffer) return false;
  arith::Bounds all = tree.bounds_at(writer);
  if (leaves_elements_out(block, all)) return false;
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

bool all_written(const Tree& tree, const Uses& uses, const Place& place, const Buffer& buffer,
                 const arith::Box& box, const arith::Bounds& bounds) {
  if (set_again(tree, uses, buffer)) return false;
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
  if (set_again(tree, uses, buffer))
    return fmt::format("elements of {} are set again and again", buffer.name());
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
