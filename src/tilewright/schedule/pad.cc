// The step Pad: an iteration is rounded up to a multiple, so that tiles and instructions fit.
//
//   for k in 7 { T[k] = A[k] }  for k in 7 { C += T[k] * U[k] }  (iter = k, multiple = 4)
//   =>
//   for k in 8 { T[k] = select(k < 7, A[k], 0) }  for k in 8 { C += T[k] * U[k] }
//
// Everything that must grow is collected first: the loop of the iteration, the axis of the result
// and of its initial values (for a space iteration), and the axis of each staged operand, whose
// staging block writes zeros there. A reduction grows only if what it then adds is zero.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/dependence.h"

namespace tilewright::schedule {
namespace {

/// An iteration with the loop that alone runs it.
struct PlainIter {
  size_t iter;
  Id loop;
};

/// The iteration called `name` if its binding is one loop over exactly its extent.
std::optional<PlainIter> plain_iter(const Tree& tree, Id block_id, const Var& var) {
  const Block& block = tree.block(block_id);
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const Iter& iter = block.iters[i];
    const VarRef* v = iter.var == var ? iter.binding.as<VarRef>() : nullptr;
    if (v == nullptr || !as_int(iter.extent)) continue;
    for (Id l : tree.loops_around(block_id)) {
      const For& loop = tree.loop(l);
      if (!block.guard && loop.var == v->var && as_int(loop.extent) == as_int(iter.extent) &&
          loop.kind == ForKind::Serial && tree.blocks_in(l).size() == 1)
        return PlainIter{i, l};
    }
  }
  return std::nullopt;
}

/// Everything that grows from `size` to `padded`.
struct Growth {
  int64_t size = 0, padded = 0;
  std::vector<std::pair<Id, PlainIter>> iters;     ///< block and iteration
  std::vector<std::pair<Buffer, size_t>> buffers;  ///< buffer and axis
  std::vector<std::pair<Id, size_t>> zero_filled;  ///< staging block and iteration
};

bool grows(const Growth& g, const Buffer& buffer) {
  return std::any_of(g.buffers.begin(), g.buffers.end(),
                     [&](const auto& entry) { return entry.first == buffer; });
}

/// The only axis where `indices` use `var`, as the bare variable; absent otherwise.
std::optional<size_t> bare_axis(const std::vector<Expr>& indices, const Var& var) {
  std::optional<size_t> axis;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!uses(indices[d], var)) continue;
    const VarRef* v = indices[d].as<VarRef>();
    if (axis || v == nullptr) return std::nullopt;
    axis = d;
  }
  return axis;
}

bool axis_has_size(const Buffer& buffer, size_t axis, int64_t size) {
  return as_int(buffer.shape()[axis]) == size;
}

/// Lets the result's axis grow, and the init with it.
Status grow_result(const Tree& tree, const Uses& uses, Id id, const Var& var, Growth& g) {
  const Store& store = *single_store(tree.block(id));
  const auto axis = bare_axis(store.indices, var);
  if (!axis || !axis_has_size(store.buffer, *axis, g.size) || tree.alloc_of(store.buffer) == kNone)
    return refuse(3, fmt::format("{} is not an allocated buffer with iteration {} as an axis",
                                 store.buffer.name(), var.name()));
  g.buffers.emplace_back(store.buffer, *axis);
  const auto producer = producer_of(tree, uses, store.buffer);
  if (!producer || producer->main != id)
    return refuse(
        3, fmt::format("{} has other writers than the block and its init", store.buffer.name()));
  if (producer->init == kNone) return {};
  const Block& init = tree.block(producer->init);
  const Expr& index = single_store(init)->indices[*axis];
  const VarRef* v = index.as<VarRef>();
  const auto plain = v ? plain_iter(tree, producer->init, v->var) : std::nullopt;
  const bool reads_along =
      v && !sources(init).empty() && tilewright::uses(single_store(init)->value, v->var);
  if (!plain || !bare_axis(single_store(init)->indices, v->var) || reads_along)
    return refuse(3, fmt::format("block {} does not set {} along a loop of its own", init.name,
                                 store.buffer.name()));
  g.iters.emplace_back(producer->init, *plain);
  return {};
}

/// Lets an operand's axis grow: its staging block writes zeros there.
Status grow_operand(const Tree& tree, const Uses& uses, const Load& l, const Var& var, Growth& g) {
  const auto axis = bare_axis(l.indices, var);
  const auto no = [&](const char* why) {
    return refuse(4, fmt::format("operand {} {}", l.buffer.name(), why));
  };
  if (!axis || !axis_has_size(l.buffer, *axis, g.size))
    return no("is not indexed by the plain iteration");
  if (tree.alloc_of(l.buffer) == kNone) return no("is a parameter: stage it first");
  if (grows(g, l.buffer)) return no("is read along two axes");
  const auto producer = producer_of(tree, uses, l.buffer);
  if (!producer || producer->init != kNone) return no("is not staged by one plain block");
  const Store& store = *single_store(tree.block(producer->main));
  const VarRef* v = store.indices[*axis].as<VarRef>();
  const auto plain = v ? plain_iter(tree, producer->main, v->var) : std::nullopt;
  if (!plain || !bare_axis(store.indices, v->var))
    return no("is not staged along a loop of its own");
  g.buffers.emplace_back(l.buffer, *axis);
  g.iters.emplace_back(producer->main, *plain);
  g.zero_filled.emplace_back(producer->main, plain->iter);
  return {};
}

/// Lets every operand that block `id` reads along `var` grow.
Status grow_operands(const Tree& tree, const Uses& uses, Id id, const Var& var, Growth& g) {
  std::vector<Load> loads;
  walk(tree.block(id).body, {}, [&](const Expr& e) {
    if (const Load* l = e.as<Load>()) loads.push_back(*l);
  });
  std::vector<std::pair<Buffer, size_t>> done;
  for (const Load& l : loads) {
    const bool along = std::any_of(l.indices.begin(), l.indices.end(),
                                   [&](const Expr& e) { return tilewright::uses(e, var); });
    if (!along) continue;
    const auto axis = bare_axis(l.indices, var);
    const auto it = std::find_if(done.begin(), done.end(),
                                 [&](const auto& entry) { return entry.first == l.buffer; });
    if (it != done.end()) {
      if (axis == it->second) continue;
      return refuse(4, fmt::format("operand {} is read along two axes", l.buffer.name()));
    }
    TW_TRY_STATUS(grow_operand(tree, uses, l, var, g));
    done.emplace_back(l.buffer, *axis);
  }
  return {};
}

/// The factors of a product of loads, casts looked through; absent for anything else.
std::optional<std::vector<const Load*>> factors(const Expr& e) {
  if (const Load* l = e.as<Load>()) return std::vector<const Load*>{l};
  if (const Cast* c = e.as<Cast>(); c && !c->bits) return factors(c->a);
  const Binary* b = e.as<Binary>();
  if (b == nullptr || b->op != BinaryOp::Mul) return std::nullopt;
  auto left = factors(b->a), right = factors(b->b);
  if (!left || !right) return std::nullopt;
  left->insert(left->end(), right->begin(), right->end());
  return left;
}

/// A padded reduction must add zeros only: a product whose factors are all zero there (or one of
/// them, for integers: zero times anything is zero).
Status check_adds_zero(const Block& block, const Var& var) {
  const Store& store = *single_store(block);
  const auto all = factors(store.value);
  bool every = all && !all->empty(), any = false;
  if (all)
    for (const Load* l : *all) {
      bool along = false;
      for (const Expr& index : l->indices) along |= uses(index, var);
      every &= along;
      any |= along;
    }
  const bool integer = !is_float(store.value.dtype());
  if (store.combine != Combine::Add || !all || !(every || (integer && any)))
    return refuse(
        5, fmt::format("the sum in block {} is not of products of padded operands", block.name));
  return {};
}

/// Elements past the end are computed too: nothing there may go wrong.
Status check_harmless(const Block& block) {
  bool divides = false;
  walk(single_store(block)->value, [&](const Expr& e) {
    const Binary* b = e.as<Binary>();
    const bool division = b && (b->op == BinaryOp::Div || b->op == BinaryOp::Mod);
    const MathCall* m = e.as<MathCall>();
    const bool call = m && (m->fn == MathFn::TruncDiv || m->fn == MathFn::TruncMod);
    if (division) divides |= is_int(e.dtype()) && as_int(b->b).value_or(0) == 0;
    if (call) divides |= is_int(e.dtype()) && as_int(m->args[1]).value_or(0) == 0;
  });
  if (divides) return refuse(5, fmt::format("block {} divides integers by a value", block.name));
  return {};
}

/// The program with everything in `g` grown.
Func grown(const Tree& tree, const Growth& g) {
  std::map<Var, Expr> loops;
  std::map<std::string, std::vector<size_t>> iters, filled;
  for (const auto& [block, plain] : g.iters) {
    loops[tree.loop(plain.loop).var] = int_imm(g.padded);
    iters[tree.block(block).name].push_back(plain.iter);
  }
  for (const auto& [block, iter] : g.zero_filled) filled[tree.block(block).name].push_back(iter);
  BufferMap buffers;
  for (const auto& [buffer, axis] : g.buffers) {
    std::vector<Expr> shape = buffer.shape();
    shape[axis] = int_imm(g.padded);
    buffers[buffer] = Buffer(buffer.name(), buffer.dtype(), shape, buffer.scope());
  }
  Func out = tree.func();
  const Stmt body = rewrite(out.body, [&](const Stmt& s) {
    if (const For* f = s.as<For>(); f && loops.contains(f->var)) {
      For loop = *f;
      loop.extent = loops.at(f->var);
      return make(std::move(loop));
    }
    const Block* b = s.as<Block>();
    if (b == nullptr || !iters.contains(b->name)) return s;
    Block block = *b;
    for (size_t i : iters.at(b->name)) block.iters[i].extent = int_imm(g.padded);
    if (filled.contains(b->name)) {
      Store store = *single_store(block);
      for (size_t i : filled.at(b->name))
        store.value =
            select(ref(block.iters[i].var) < g.size, store.value, const_of(store.value.dtype(), 0));
      block.body = make(std::move(store));
    }
    return make(std::move(block));
  });
  out.body = replace_buffers(body, buffers);
  return out;
}

}  // namespace

Result<Func> run(const Pad& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const Id id = TW_TRY(tree.find_block(step.block));
  const Block& block = tree.block(id);
  if (step.multiple <= 0 || step.multiple > kLargestExtent)
    return fail(ErrorKind::Invalid, "requirement 1 does not hold",
                fmt::format("the multiple is {}", step.multiple));
  const auto it = std::find_if(block.iters.begin(), block.iters.end(),
                               [&](const Iter& i) { return i.var.name() == step.iter; });
  if (it == block.iters.end())
    return fail(ErrorKind::Invalid,
                fmt::format("block {} has no iteration {}", step.block, step.iter));
  if (single_store(block) == nullptr || it->kind == IterKind::Scan || block.guard)
    return refuse(2, fmt::format("block {} is not a single unguarded store", step.block));
  const auto plain = plain_iter(tree, id, it->var);
  if (!plain)
    return refuse(2, fmt::format("iteration {} of {} is not one serial loop of its own", step.iter,
                                 step.block));
  Growth g;
  g.size = *as_int(it->extent);
  g.padded = (g.size + step.multiple - 1) / step.multiple * step.multiple;
  if (g.padded == g.size) return func;
  g.iters.emplace_back(id, *plain);
  if (it->kind == IterKind::Space) {
    TW_TRY_STATUS(grow_result(tree, uses, id, it->var, g));
  } else {
    TW_TRY_STATUS(check_adds_zero(block, it->var));
  }
  TW_TRY_STATUS(check_harmless(block));
  TW_TRY_STATUS(grow_operands(tree, uses, id, it->var, g));
  return grown(tree, g);
}

}  // namespace tilewright::schedule
