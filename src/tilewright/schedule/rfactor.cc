// The step RFactor: the iterations of one reduction loop become partial results, which a second
// reduction combines.
//
//   for k.o in 4, k.i in 8 { C += A[8*k.o + k.i] }               (loop = k.o)
//   =>
//   for part in 4 { C.rf[part] = 0 }
//   for k.o in 4, k.i in 8 { C.rf[k.o] += A[8*k.o + k.i] }
//   for part in 4 { C += C.rf[part] }
//
// The loop becomes an iteration `part` of kind space; the iteration that it belonged to keeps what
// the other loops count. The initial values and the final reduction are new nests over the elements
// that the block writes. Then `k.o` can be parallel or vectorised: it no longer combines.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/regenerate.h"

namespace tilewright::schedule {
namespace {

Expr identity(Combine combine, DType dtype) {
  const double inf = std::numeric_limits<double>::infinity();
  switch (combine) {
    case Combine::Mul:
      return const_of(dtype, 1);
    case Combine::Max:
    case Combine::Min: {
      const bool max = combine == Combine::Max;
      if (is_float(dtype)) return float_imm(max ? -inf : inf, dtype);
      if (dtype == DType::Bool) return bool_imm(!max);
      const int bits = bit_width(dtype);
      if (is_unsigned_int(dtype))
        return int_imm(max ? 0 : bits == 64 ? -1 : (int64_t{1} << bits) - 1, dtype);
      const int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - bits);
      return int_imm(max ? lowest : ~lowest, dtype);
    }
    default:
      return const_of(dtype, 0);
  }
}

/// The reduction with `loop` taken out of its sum: iteration `part` runs over the loop, the other
/// iterations over what is left.
struct Factored {
  std::vector<Iter> iters;
  Var part;
  VarMap values;  ///< old iterations in terms of the new ones
};

/// A name no iteration of the block has.
std::string part_name(const Block& block) {
  std::string name = "part";
  auto taken = [&](const Iter& iter) { return iter.var.name() == name; };
  for (int n = 1; std::any_of(block.iters.begin(), block.iters.end(), taken); ++n)
    name = fmt::format("part{}", n);
  return name;
}

Result<Factored> factor(const Tree& tree, Id block_id, Id loop_id) {
  const Block& block = tree.block(block_id);
  const For& loop = tree.loop(loop_id);
  const arith::Bounds bounds = tree.bounds_at(block_id);
  Factored out;
  out.part = Var(part_name(block));
  out.iters.push_back({out.part, IterKind::Space, loop.extent, ref(loop.var)});
  bool found = false;
  for (const Iter& iter : block.iters) {
    if (!uses(iter.binding, loop.var)) {
      out.iters.push_back(iter);
      continue;
    }
    if (iter.kind != IterKind::Reduce)
      return refuse(
          2, fmt::format("loop {} also runs iteration {}", loop.var.name(), iter.var.name()));
    found = true;
    if (free_vars(iter.binding).size() == 1) {
      out.values[iter.var] = substitute(iter.binding, {{loop.var, ref(out.part)}});
      continue;
    }
    const arith::Affine a = arith::as_affine(iter.binding);
    const int64_t c = a.coefficient(loop.var);
    arith::Affine rest;
    int64_t step = 0;
    for (const auto& [term, k] : a.terms) {
      const VarRef* v = term.as<VarRef>();
      if (v && v->var == loop.var) continue;
      rest.terms.emplace_back(term, k);
      step = std::gcd(step, k);
    }
    for (auto& entry : rest.terms) entry.second /= step;
    const Expr binding = arith::to_expr(rest);
    const auto range = arith::const_range(binding, bounds);
    const arith::Box box = box_of({binding}, vars_of(tree, tree.loops_around(block_id)), bounds);
    if (c == 0 || uses(binding, loop.var) || !range || range->first != 0 || !box.exact)
      return refuse(2, fmt::format("loop {} is not a plain part of iteration {}", loop.var.name(),
                                   iter.var.name()));
    const Var left(iter.var.name());
    out.iters.push_back({left, IterKind::Reduce, int_imm(range->second + 1), binding});
    out.values[iter.var] = arith::simplify(ref(out.part) * c + ref(left) * step + a.constant);
  }
  if (!found) return refuse(2, fmt::format("loop {} runs no reduction", loop.var.name()));
  return out;
}

/// The block whose loops are to be factored: the only reduction in the loop over it.
Result<Id> reduction_in(const Tree& tree, Id loop) {
  Id found = kNone;
  for (Id b : tree.blocks_in(loop)) {
    bool reduces = false;
    for (const Iter& iter : tree.block(b).iters)
      reduces |= iter.kind == IterKind::Reduce && uses(iter.binding, tree.loop(loop).var);
    if (!reduces) continue;
    if (found != kNone)
      return refuse(
          2, fmt::format("loop {} runs reductions of several blocks", tree.loop(loop).var.name()));
    found = b;
  }
  if (found == kNone)
    return refuse(2, fmt::format("loop {} runs no reduction", tree.loop(loop).var.name()));
  return found;
}

/// The parts of the new program.
struct Parts {
  Buffer partial;
  Block init, main, final;
};

Parts make_parts(const Block& block, const Factored& f, const std::vector<Axis>& axes,
                 const std::string& name, const Expr& parts) {
  const Store& store = *single_store(block);
  Parts out;
  std::vector<Expr> shape{parts};
  shape.insert(shape.end(), store.buffer.shape().begin(), store.buffer.shape().end());
  out.partial = Buffer(name, store.buffer.dtype(), shape, store.buffer.scope());
  // Initialisation and final sum run over the elements the block writes.
  const Var part_init(f.part.name()), part_final(f.part.name());
  std::vector<Expr> init_index{ref(part_init)}, final_index{ref(part_final)}, target;
  out.init.iters.push_back({part_init, IterKind::Space, parts, Expr()});
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].iter < 0) {
      init_index.push_back(store.indices[d]), final_index.push_back(store.indices[d]);
      target.push_back(store.indices[d]);
      continue;
    }
    const Iter& iter = block.iters[axes[d].iter];
    const Var a(iter.var.name()), b(iter.var.name());
    out.init.iters.push_back({a, IterKind::Space, iter.extent, Expr()});
    out.final.iters.push_back({b, IterKind::Space, iter.extent, Expr()});
    auto shifted = [&](const Var& v) {
      return axes[d].shift == 0 ? ref(v) : ref(v) + axes[d].shift;
    };
    init_index.push_back(shifted(a));
    final_index.push_back(shifted(b)), target.push_back(shifted(b));
  }
  out.final.iters.push_back({part_final, IterKind::Reduce, parts, Expr()});
  out.init.name = name + ".init";
  out.init.body = make(
      Store{out.partial, init_index, identity(store.combine, store.buffer.dtype()), Combine::Set});
  out.final.name = block.name;
  out.final.marks = block.marks;
  out.final.body = make(Store{store.buffer, target, load(out.partial, final_index), store.combine});
  out.main = block;
  out.main.name = name;
  out.main.iters = f.iters;
  std::vector<Expr> index{ref(f.part)};
  for (const Expr& e : store.indices) index.push_back(e);
  out.main.body = make(Store{out.partial, index, substitute(store.value, f.values), store.combine});
  return out;
}

/// Ranges of a part's iterations over `box` of the result; its `part` iteration runs whole.
std::vector<IterRange> part_ranges(const Block& part, const arith::Box& box, bool part_axis,
                                   const arith::Bounds& bounds) {
  const Store& store = *single_store(part);
  std::vector<Expr> indices = store.indices;
  arith::Box whole = box;
  if (part_axis) {
    whole.dims.insert(whole.dims.begin(), {int_imm(0), part.iters[0].extent});
  }
  return ranges_of(part, *axes_of(indices, part), whole, bounds, false);
}

/// What of the block's guard decides in loops outside `statement` whether it runs at all.
Result<Expr> outer_guard(const Tree& tree, Id id, Id statement) {
  const Block& block = tree.block(id);
  const arith::Bounds bounds = tree.bounds_at(id);
  std::vector<Expr> terms;
  auto place_of = [&](const Expr& e, bool& inside, bool& outside) {
    for (const Var& v : free_vars(e))
      for (Id l : tree.loops_around(id))
        if (tree.loop(l).var == v) (tree.inside(l, statement) ? inside : outside) = true;
  };
  for (const Expr& e : residual_guard(block, bounds, true)) {
    bool inside = false, outside = false;
    place_of(e, inside, outside);
    if (!inside) terms.push_back(e);
  }
  for (const Expr& e : residual_guard(block, bounds)) {
    bool inside = false, outside = false;
    place_of(e, inside, outside);
    bool cuts = false;
    for (const Iter& iter : block.iters)
      for (const Var& v : free_vars(e))
        cuts |= iter.kind != IterKind::Reduce && uses(iter.binding, v);
    if (inside && (outside || cuts))
      return refuse(5,
                    fmt::format("the guard of block {} cuts off elements of its box", block.name));
  }
  return conjunction(terms);
}

/// The store of block `id`, whose reduction over `loop` can be split up: the block and its init
/// alone write the result, and sums may be regrouped.
Result<const Store*> factorable_store(const RFactor& step, const Func& func, const Tree& tree,
                                      const Uses& uses, Id id, Id loop) {
  const Block& block = tree.block(id);
  const Store* store = single_store(block);
  if (store == nullptr || store->combine == Combine::Set)
    return refuse(1, fmt::format("block {} does not combine", block.name));
  const auto producer = producer_of(tree, uses, store->buffer);
  if (!producer || producer->main != id || producer->init == kNone)
    return refuse(1, fmt::format("{} has other writers than {} and its init", store->buffer.name(),
                                 block.name));
  for (const Buffer& source : sources(block))
    if (source == store->buffer)
      return refuse(1, fmt::format("block {} reads its own result", block.name));
  if (order_matters(func.math, store->buffer.dtype(), store->combine))
    return refuse(3, fmt::format("block {} sums floats and the math is exact", block.name));
  if (tree.loop(loop).kind != ForKind::Serial)
    return refuse(4, fmt::format("loop {} is {}", step.loop, name(tree.loop(loop).kind)));
  return store;
}

/// The statement that holds block `id` and no other user of its result; `loop` must be in it.
Result<Id> statement_of(const RFactor& step, const Tree& tree, const Uses& uses, Id id, Id loop,
                        const Buffer& result) {
  Id statement = id;
  auto alone = [&](Id s) {
    for (Id user : uses.users(result))
      if (user != id && tree.inside(user, s)) return false;
    return true;
  };
  while (tree.parent(statement) != kNone && alone(tree.parent(statement)))
    statement = tree.parent(statement);
  if (!tree.inside(loop, statement))
    return refuse(4, fmt::format("loop {} also holds other users of {}", step.loop, result.name()));
  if (in_vector_loop(tree, statement))
    return refuse(4, fmt::format("block {} is in a vector loop", tree.block(id).name));
  return statement;
}

/// The name of what holds partial results of `block`.
std::string partial_name(const Block& block, const NamePool& names) {
  std::string name = block.name + ".rf";
  for (int n = 1;
       names.has_buffer(name) || names.has_block(name) || names.has_block(name + ".init"); ++n)
    name = fmt::format("{}.rf.{}", block.name, n);
  return name;
}

}  // namespace

Result<Func> run(const RFactor& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const Id loop_id = TW_TRY(tree.find_loop(step.loop));
  const Id id = TW_TRY(reduction_in(tree, loop_id));
  const Block& block = tree.block(id);
  const Store* store = TW_TRY(factorable_store(step, func, tree, uses, id, loop_id));
  const Factored factored = TW_TRY(factor(tree, id, loop_id));
  const auto axes = axes_of(store->indices, block);
  if (!axes)
    return refuse(5, fmt::format("the indices of {} are not iterations of {}", store->buffer.name(),
                                 block.name));
  const Id statement = TW_TRY(statement_of(step, tree, uses, id, loop_id, store->buffer));
  const Id outside = tree.parent(statement);
  std::vector<Id> loops = tree.loops_around(id);
  std::erase_if(loops, [&](Id l) { return !tree.inside(l, statement); });
  arith::Box box;
  for (const Access& a : accesses(block))
    if (a.write) box = box_of(a, vars_of(tree, loops), tree.bounds_at(id));
  if (!box.exact || outside == kNone)
    return refuse(5, fmt::format("what block {} writes is not a box without gaps", block.name));
  NamePool names(tree);
  const std::string name = partial_name(block, names);
  const Parts parts = make_parts(block, factored, *axes, name, tree.loop(loop_id).extent);
  const arith::Bounds bounds = tree.bounds_at(statement);
  const Expr guard = TW_TRY(outer_guard(tree, id, statement));
  Nest init = make_new_nest(parts.init, part_ranges(parts.init, box, true, bounds), names, bounds);
  Nest final =
      make_new_nest(parts.final, part_ranges(parts.final, box, false, bounds), names, bounds);
  for (Nest* nest : {&init, &final}) {
    std::vector<Expr> terms = conjuncts(nest->block.guard);
    for (const Expr& e : conjuncts(guard)) terms.push_back(e);
    nest->block.guard = conjunction(terms);
  }
  Edit edit(tree);
  edit.before(statement, {make(Alloc{parts.partial, {}}), init.stmt()});
  edit.after(statement, {final.stmt()});
  edit.replace(id, make(parts.main));
  return edit.func();
}

}  // namespace tilewright::schedule
