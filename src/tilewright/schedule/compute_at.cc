// The step ComputeAt: a producer moves into a loop of its consumer.
//
//   for i in 10 { P[i] = f(i) }  for j in 8 { Y[j] = P[j] + P[j + 2] }      (block = P, loop = j)
//   =>
//   for j in 8 { for i in 3 { P[j + i] = f(j + i) }  Y[j] = P[j] + P[j + 2] }
//
// The box of elements that all readers touch in one iteration of the loop decides which iterations
// the producer runs there (schedule/regenerate.h builds the new nest). A reduction moves together
// with the block that sets its initial values. Named on an initial block alone, only that moves.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/regenerate.h"

namespace tilewright::schedule {
namespace {

/// What moves where, found before anything is built.
struct Move {
  Id loop = kNone;
  Buffer buffer;
  Producer producer;
  std::vector<Id> moved;    ///< blocks that move, in program order
  std::vector<Id> waiting;  ///< blocks that need them
  Place place;
};

Result<Move> plan(const Tree& tree, const Uses& uses, const ComputeAt& step) {
  Move move;
  const Id block = TW_TRY(tree.find_block(step.block));
  move.loop = TW_TRY(tree.find_loop(step.loop));
  const Store* store = single_store(tree.block(block));
  if (store == nullptr) return refuse(1, fmt::format("block {} is not a single store", step.block));
  move.buffer = store->buffer;
  const auto producer = producer_of(tree, uses, move.buffer);
  if (!producer || (producer->main != block && producer->init != block))
    return refuse(1, fmt::format("{} has other writers than {} and its init", move.buffer.name(),
                                 step.block));
  move.producer = *producer;
  if (producer->init != kNone) move.moved.push_back(producer->init);
  if (producer->main == block) move.moved.push_back(producer->main);
  for (Id user : uses.users(move.buffer))
    if (std::find(move.moved.begin(), move.moved.end(), user) == move.moved.end())
      move.waiting.push_back(user);
  if (move.waiting.empty()) return refuse(2, fmt::format("nothing reads {}", move.buffer.name()));
  for (Id id : move.moved)
    for (const Buffer& source : sources(tree.block(id)))
      if (source == move.buffer)
        return refuse(1, fmt::format("block {} reads its own result", tree.block(id).name));
  return move;
}

/// Sets the place: before the first statement of the loop's body with a user of the buffer.
Status find_place(const Tree& tree, Move& move) {
  for (Id child : tree.body_of(move.loop))
    for (Id user : move.waiting)
      if (move.place.at == kNone && tree.inside(user, child)) move.place = {child, false};
  if (move.place.at == kNone)
    return refuse(2, fmt::format("no block that needs {} is inside loop {}", move.buffer.name(),
                                 tree.loop(move.loop).var.name()));
  for (Id user : move.waiting)
    if (user < move.place.at)
      return refuse(2, fmt::format("block {} needs {} before loop {}", tree.block(user).name,
                                   move.buffer.name(), tree.loop(move.loop).var.name()));
  return {};
}

/// Hull of everything `users` touch of the buffer in one iteration of the loop.
Result<arith::Box> needed(const Tree& tree, const Move& move, const std::vector<Id>& users,
                          const arith::Bounds& bounds) {
  std::optional<arith::Box> box;
  for (Id user : users) {
    const arith::Bounds inner = tree.bounds_at(user);
    const std::vector<Var> vars = vars_of(tree, loops_below(tree, user, move.loop));
    for (const Access& a : accesses(tree.block(user))) {
      if (a.buffer != move.buffer) continue;
      const arith::Box part = box_of(a, vars, inner);
      box = box ? arith::hull(*box, part, bounds) : part;
    }
  }
  if (!box) return refuse(2, fmt::format("nothing reads {}", move.buffer.name()));
  return *std::move(box);
}

/// The nests of the moved blocks over `box`.
Result<std::vector<Nest>> nests_over(const Tree& tree, const Uses& uses, const Move& move,
                                     const arith::Box& box) {
  NamePool names(tree, {move.moved.begin(), move.moved.end()});
  const arith::Bounds bounds = tree.bounds_at(move.place.at);
  std::vector<Nest> nests;
  for (Id id : move.moved) {
    const Block& block = tree.block(id);
    const auto axes = axes_of(single_store(block)->indices, block);
    if (!axes)
      return refuse(3, fmt::format("the indices of {} in block {} are not its iterations",
                                   move.buffer.name(), block.name));
    const std::vector<IterRange> ranges =
        ranges_of(block, *axes, box, bounds, move.moved.back() == move.producer.main);
    if (move.moved.size() == 1 && id == move.producer.init) {
      // Its updates stay where they are: each element must be set exactly once, before the first.
      if (auto why = other_instances(tree, id, move.place, ranges)) return refuse(6, *why);
    }
    Nest nest = TW_TRY(make_nest(tree, id, ranges, move.place, names, 3));
    if (auto why = sources_not_final(tree, uses, move.place, nest, id)) return refuse(4, *why);
    nests.push_back(std::move(nest));
  }
  return nests;
}

}  // namespace

Result<Func> run(const ComputeAt& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  Move move = TW_TRY(plan(tree, uses, step));
  if (in_vector_loop(tree, move.loop))
    return refuse(5, fmt::format("loop {} is in a vector loop", step.loop));
  TW_TRY_STATUS(find_place(tree, move));
  const bool init_only = move.moved.back() != move.producer.main;
  const Id alloc = tree.alloc_of(move.buffer);
  if (!init_only) {
    if (alloc == kNone)
      return refuse(2, fmt::format("{} is a parameter, also needed outside", move.buffer.name()));
    for (Id user : move.waiting)
      if (!tree.inside(user, move.loop))
        return refuse(2, fmt::format("block {} reads {} outside loop {}", tree.block(user).name,
                                     move.buffer.name(), step.loop));
  } else if (!tree.inside(move.producer.main, move.loop)) {
    return refuse(2, fmt::format("block {} is not inside loop {}",
                                 tree.block(move.producer.main).name, step.loop));
  } else if (alloc != kNone &&
             !(alloc < move.place.at && tree.inside(move.place.at, tree.parent(alloc)))) {
    return refuse(4, fmt::format("{} is not alive in loop {}", move.buffer.name(), step.loop));
  }
  std::vector<Id> users = move.waiting;
  if (init_only) std::erase_if(users, [&](Id u) { return !tree.inside(u, move.loop); });
  const arith::Box box = TW_TRY(needed(tree, move, users, tree.bounds_at(move.place.at)));
  const std::vector<Nest> nests = TW_TRY(nests_over(tree, uses, move, box));
  Edit edit(tree);
  std::vector<Stmt> made;
  if (!init_only) {
    made.push_back(tree.stmt(alloc));
    edit.erase(alloc);
  }
  for (const Nest& nest : nests) made.push_back(nest.stmt());
  for (Id id : move.moved) edit.erase(id);
  edit.before(move.place.at, std::move(made));
  Func out = edit.func();
  std::vector<std::string> names;
  for (Id id : move.moved) names.push_back(tree.block(id).name);
  if (init_only) {
    names.push_back(tree.block(move.producer.main).name);
    if (alloc != kNone) out = sink_alloc(out, move.buffer);
  }
  TW_TRY_STATUS(check_concurrency(out, names, 5));
  return out;
}

}  // namespace tilewright::schedule
