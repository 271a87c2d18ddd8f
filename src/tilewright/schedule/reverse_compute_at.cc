// The step ReverseComputeAt: a consumer moves into a loop of its producer.
//
//   for i in 4 { for j in 8 { P[8*i + j] = .. } }  for k in 32 { Y[k] = f(P[k]) }
//   =>
//   for i in 4 { for j in 8 { P[8*i + j] = .. }  for k in 8 { Y[8*i + k] = f(P[8*i + k]) } }
//
// What the producer writes in one iteration of the loop must be a box without gaps; the consumer's
// nest is built anew over the iterations that read exactly this box, and all iterations of the loop
// together must run each instance of the consumer once.
#include "tilewright/schedule/reverse_compute_at.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/regenerate.h"

namespace tilewright::schedule {
namespace {

/// The box of `buffer` that `writer` makes in one iteration of `loop`.
arith::Box made_in(const Tree& tree, Id writer, Id loop, const Buffer& buffer) {
  const std::vector<Var> vars = vars_of(tree, loops_below(tree, writer, loop));
  for (const Access& a : accesses(tree.block(writer)))
    if (a.write && a.buffer == buffer) return box_of(a, vars, tree.bounds_at(writer));
  return {};
}

/// The only way `block` reads `buffer`, in terms of its iterations.
Result<std::vector<Expr>> only_read(const Block& block, const Buffer& buffer) {
  std::vector<const Load*> loads;
  walk(single_store(block)->value, [&](const Expr& e) {
    if (const Load* l = e.as<Load>(); l && l->buffer == buffer) loads.push_back(l);
  });
  if (loads.empty())
    return refuse(2,
                  fmt::format("block {} does not read {} in its value", block.name, buffer.name()));
  for (const Load* l : loads)
    for (size_t d = 0; d < l->indices.size(); ++d)
      if (!equal(l->indices[d], loads[0]->indices[d]))
        return refuse(
            2, fmt::format("block {} reads {} at several places", block.name, buffer.name()));
  return loads[0]->indices;
}

/// `v / cut` or `v % cut`.
struct Digit {
  Var var;
  int64_t cut = 0;
  bool high = false;
};

std::optional<Digit> digit_of(const Expr& index) {
  const Binary* b = index.as<Binary>();
  if (b == nullptr || (b->op != BinaryOp::Div && b->op != BinaryOp::Mod)) return std::nullopt;
  const VarRef* v = b->a.as<VarRef>();
  const int64_t cut = as_int(b->b).value_or(0);
  if (v == nullptr || cut < 1) return std::nullopt;
  return Digit{v->var, cut, b->op == BinaryOp::Div};
}

/// Where `v / cut` and `v % cut` index two axes and the box holds all of the second, both are one
/// axis along `v`.
void join_digits(std::vector<Expr>& indices, arith::Box& box, const arith::Bounds& bounds) {
  for (size_t high = 0; high < indices.size(); ++high) {
    const std::optional<Digit> first = digit_of(indices[high]);
    if (!first || !first->high) continue;
    for (size_t low = 0; low < indices.size(); ++low) {
      const std::optional<Digit> second = digit_of(indices[low]);
      if (!second || second->high || !(second->var == first->var) || second->cut != first->cut)
        continue;
      const arith::Box::Dim all = box.dims[low];
      if (!arith::prove(all.begin <= 0, bounds) ||
          !arith::prove(all.begin + all.size >= first->cut, bounds))
        continue;
      indices[high] = ref(first->var);
      box.dims[high] = {box.dims[high].begin * first->cut, box.dims[high].size * first->cut};
      indices.erase(indices.begin() + static_cast<long>(low));
      box.dims.erase(box.dims.begin() + static_cast<long>(low));
      break;
    }
  }
}

/// The source of `block` that the loop produces: written inside it, not an init.
Result<Buffer> main_source(const Tree& tree, const Uses& uses, Id block, Id loop) {
  for (const Buffer& source : sources(tree.block(block))) {
    const auto p = producer_of(tree, uses, source);
    if (p && tree.inside(p->main, loop) && p->main < block) return source;
  }
  return refuse(2, fmt::format("nothing that block {} reads is written inside loop {} by one block",
                               tree.block(block).name, tree.loop(loop).var.name()));
}

Place place_after_producers(const Tree& tree, const Uses& uses, Id block, Id loop) {
  Place place{kNone, true};
  for (Id child : tree.body_of(loop))
    for (const Buffer& source : sources(tree.block(block)))
      for (Id w : uses.writers(source))
        if (w != block && tree.inside(w, child)) place.at = child;
  return place;
}

/// True if no other block uses what `block` writes from the place to where the block is now.
bool alone_between(const Tree& tree, const Uses& uses, Id block, const Place& place,
                   const Buffer& result) {
  const auto outermost = [&](Id id, Id without) {
    while (tree.parent(id) != kNone && !tree.inside(without, tree.parent(id))) id = tree.parent(id);
    return id;
  };
  const Id from = outermost(place.at, block), to = tree.end(outermost(block, place.at));
  const std::vector<Id> users = uses.users(result);
  return std::none_of(users.begin(), users.end(),
                      [&](Id user) { return user != block && user >= from && user < to; });
}

/// True if the init runs before the place, in the same loops as it shares with the block now.
bool init_precedes(const Tree& tree, Id init, Id block, const Place& place) {
  auto shared = [&](Id id) {
    std::vector<Id> loops = tree.loops_around(id);
    std::erase_if(loops, [&](Id l) { return !tree.inside(init, l); });
    return loops;
  };
  return init < place.order(tree) && shared(block) == shared(place.at);
}

/// The iterations of `block` that read what `writer` makes of `source` in one iteration of `loop`.
Result<std::vector<IterRange>> iterations_reading(const Tree& tree, Id id, const Buffer& source,
                                                  Id writer, Id loop, const arith::Bounds& bounds) {
  const Block& block = tree.block(id);
  std::vector<Expr> indices = TW_TRY(only_read(block, source));
  arith::Box box = made_in(tree, writer, loop, source);
  join_digits(indices, box, bounds);
  const auto axes = axes_of(indices, block);
  if (!axes)
    return refuse(2, fmt::format("the indices of {} in block {} are not its iterations",
                                 source.name(), block.name));
  if (!box.exact)
    return refuse(3, fmt::format("what {} writes in one iteration of {} is not a box without gaps",
                                 tree.block(writer).name, tree.loop(loop).var.name()));
  const Store& store = *single_store(block);
  std::vector<IterRange> ranges = ranges_of(block, *axes, box, bounds, false);
  for (size_t i = 0; i < ranges.size(); ++i)
    if (block.iters[i].kind == IterKind::Reduce && !ranges[i].whole &&
        order_matters(tree.func().math, store.buffer.dtype(), store.combine))
      return refuse(3, fmt::format("it would change the order of the sum in block {} (exact math)",
                                   block.name));
  return ranges;
}

/// The function with `nest` at the place instead of the block, whose `result` is alive there.
Result<Func> moved(const Tree& tree, Id block, const Nest& nest, const Place& place, Id loop,
                   const Buffer& result) {
  Edit edit(tree);
  edit.erase(block);
  edit.after(place.at, {nest.stmt()});
  if (const Id alloc = tree.alloc_of(result); alloc != kNone) {
    const Id home = tree.parent(alloc);
    if (!tree.inside(place.at, home))
      return refuse(5, fmt::format("buffer {} is not alive in loop {}", result.name(),
                                   tree.loop(loop).var.name()));
    if (alloc > place.at) {
      const Stmt decl = tree.stmt(alloc);
      edit.erase(alloc);
      edit.before(tree.child_towards(home, place.at), {decl});
    }
  }
  return edit.func();
}

}  // namespace

Result<Func> move_consumer(const Func& func, const Name& block_name, const Name& loop_name) {
  const Tree tree(func);
  const Uses uses(tree);
  const Id id = TW_TRY(tree.find_block(block_name));
  const Id loop = TW_TRY(tree.find_loop(loop_name));
  const Block& block = tree.block(id);
  const Store* store = single_store(block);
  if (store == nullptr) return refuse(1, fmt::format("block {} is not a single store", block.name));
  const Buffer& result = store->buffer;
  const auto own = producer_of(tree, uses, result);
  const bool only = own && own->main == id;
  const auto others = [&] {
    return refuse(
        1, fmt::format("{} has other writers than {} and its init", result.name(), block.name));
  };
  if (!only && store->combine != Combine::Set) return others();
  if (in_vector_loop(tree, loop))
    return refuse(6, fmt::format("loop {} is in a vector loop", loop_name));
  const Buffer source = TW_TRY(main_source(tree, uses, id, loop));
  if (source == result) return refuse(1, fmt::format("block {} reads its own result", block.name));
  const Producer producer = *producer_of(tree, uses, source);
  if (producer.init != kNone && producer.init > producer.main)
    return refuse(2, fmt::format("{} is set after it is updated", source.name()));

  const Place place = place_after_producers(tree, uses, id, loop);
  const std::vector<Buffer> read = sources(block);
  if (!only && (std::find(read.begin(), read.end(), result) != read.end() ||
                !alone_between(tree, uses, id, place, result)))
    return others();
  if (tree.inside(id, place.at))
    return refuse(2, fmt::format("block {} is already inside its producer's nest", block.name));
  const std::vector<IterRange> ranges =
      TW_TRY(iterations_reading(tree, id, source, producer.main, loop, tree.bounds_at(place.at)));
  if (auto why = other_instances(tree, id, place, ranges)) return refuse(3, *why);
  NamePool names(tree, {id});
  const Nest nest = TW_TRY(make_nest(tree, id, ranges, place, names, 3));
  if (auto why = sources_not_final(tree, uses, place, nest, id)) return refuse(4, *why);

  if (only && own->init != kNone && !init_precedes(tree, own->init, id, place))
    return refuse(5, fmt::format("block {} would not run before it", tree.block(own->init).name));

  Func out = TW_TRY(moved(tree, id, nest, place, loop, result));
  for (const Buffer& b : sources(block))
    if (tree.alloc_of(b) != kNone) out = sink_alloc(out, b);
  TW_TRY_STATUS(check_concurrency(out, {block.name}, 6));
  return out;
}

Result<Func> run(const ReverseComputeAt& step, const Func& func) {
  return move_consumer(func, step.block, step.loop);
}

}  // namespace tilewright::schedule
