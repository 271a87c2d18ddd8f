// The steps CacheRead and CacheWrite: a block reads, or writes, a copy instead of a buffer.
//
//   for i { .. B[i + k] .. }  =>  for i { for a0 { T[..] = B[..] }  .. T[i + k] .. }   (CacheRead)
//   for i { C[i] += .. }      =>  for i { T[i] += .. }  for i { C[i] = T[i] }         (CacheWrite)
//
// A copy for reading holds the hull of all elements that the block reads in one iteration of the
// loop where it is filled. A copy for writing is written back right after the nest;
// ReverseComputeAt then moves that into the loop that is wanted. Copies have the shape of the
// buffer, so indices stay as they are; the lowering pass `compact` shrinks them.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/regenerate.h"
#include "tilewright/schedule/reverse_compute_at.h"

namespace tilewright::schedule {
namespace {

Status check_new_name(const NamePool& names, const Name& name) {
  if (!valid_name(name))
    return fail(ErrorKind::Invalid, fmt::format("\"{}\" cannot be the name of a buffer", name));
  if (names.has_buffer(name) || names.has_block(name))
    return fail(ErrorKind::Invalid, fmt::format("the name {} is in use", name));
  return {};
}

/// Where a copy of `buffer` for `block` goes: into `loop`, or as early as the source allows.
Result<Place> copy_place(const Tree& tree, const Uses& uses, Id block, const Buffer& buffer,
                         const Name& loop_name) {
  if (!loop_name.empty()) {
    const Id loop = TW_TRY(tree.find_loop(loop_name));
    if (!tree.inside(block, loop))
      return refuse(
          2, fmt::format("block {} is not inside loop {}", tree.block(block).name, loop_name));
    if (in_vector_loop(tree, loop))
      return refuse(4, fmt::format("loop {} is in a vector loop", loop_name));
    for (Id child : tree.body_of(loop))
      if (tree.inside(block, child)) return Place{child, false};
  }
  const Id alloc = tree.alloc_of(buffer);
  const Id home = alloc == kNone ? 0 : tree.parent(alloc);
  if (tree.as<Seq>(home) == nullptr) return Place{home, false};
  const std::vector<Id> children = tree.children(home);
  Place place{children.front(), false};
  for (Id child : children) {
    if (tree.inside(block, child)) {
      if (place.at == child) place.after = false;
      break;
    }
    for (Id w : uses.writers(buffer))
      if (tree.inside(w, child)) place = {child, true};
  }
  return place;
}

std::vector<std::string> axis_names(size_t rank) {
  std::vector<std::string> names;
  for (size_t d = 0; d < rank; ++d) names.push_back(fmt::format("a{}", d));
  return names;
}

/// Hull of what `block` reads of `buffer` in one run of the statements around the place.
Result<arith::Box> read_box(const Tree& tree, Id block, const Buffer& buffer, const Place& place) {
  std::optional<arith::Box> box;
  const arith::Bounds bounds = tree.bounds_at(block);
  std::vector<Id> loops = tree.loops_around(block);
  const std::vector<Id> around = loops_around(tree, place);
  std::erase_if(loops,
                [&](Id l) { return std::find(around.begin(), around.end(), l) != around.end(); });
  for (const Access& a : accesses(tree.block(block))) {
    if (a.buffer != buffer) continue;
    if (a.write)
      return refuse(1, fmt::format("block {} writes {}", tree.block(block).name, buffer.name()));
    const arith::Box part = box_of(a, vars_of(tree, loops), bounds);
    box = box ? arith::hull(*box, part, bounds) : part;
  }
  if (!box)
    return refuse(1,
                  fmt::format("block {} does not read {}", tree.block(block).name, buffer.name()));
  return *std::move(box);
}

/// The box clipped by ranges as the nest will be.
arith::Box clipped(const arith::Box& box, const std::vector<IterRange>& ranges) {
  arith::Box out = box;
  for (size_t d = 0; d < out.dims.size(); ++d) out.dims[d] = {ranges[d].begin, ranges[d].size};
  return out;
}

/// The box, but the whole axis where the last of its places goes over the end, which the copy's
/// guard cuts off: 13 tiles of 64 read no more than 784 elements.
arith::Box within(const arith::Box& box, const Buffer& buffer, const arith::Bounds& bounds) {
  arith::Box out = box;
  for (size_t d = 0; d < out.dims.size(); ++d) {
    auto& [begin, size] = out.dims[d];
    const Expr& extent = buffer.shape()[d];
    if (!arith::prove(begin + size <= extent, bounds)) begin = int_imm(0), size = extent;
  }
  return out;
}

}  // namespace

Result<Func> run(const CacheRead& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const Id id = TW_TRY(tree.find_block(step.block));
  const Buffer buffer = TW_TRY(tree.find_buffer(step.buffer));
  NamePool names(tree);
  TW_TRY_STATUS(check_new_name(names, step.copy));
  if (tree.block(id).body.as<Call>())
    return refuse(1, fmt::format("block {} is an intrinsic", step.block));
  const Place place = TW_TRY(copy_place(tree, uses, id, buffer, step.loop));
  const arith::Box box = TW_TRY(read_box(tree, id, buffer, place));
  const Buffer copy(step.copy, buffer.dtype(), buffer.shape());
  const Block block =
      copy_block(step.copy, axis_names(buffer.rank()), buffer.shape(), buffer, copy);
  std::vector<Axis> axes;
  for (size_t d = 0; d < buffer.rank(); ++d) axes.push_back({static_cast<int>(d), 0});
  const arith::Bounds bounds = tree.bounds_at(place.at);
  const std::vector<IterRange> ranges = ranges_of(block, axes, box, bounds, true);
  const Nest nest = make_new_nest(block, ranges, names, bounds);
  if (auto why = sources_not_final(tree, uses, place, nest, id)) return refuse(3, *why);
  const Param* param = tree.param_of(buffer);
  const bool defined = param != nullptr && param->mode != ParamMode::Out;
  const arith::Box read = clipped(box, ranges);
  if (!defined && !all_written(tree, uses, place, buffer, read, bounds) &&
      !all_written(tree, uses, place, buffer, within(read, buffer, bounds), bounds))
    return refuse(
        3, fmt::format("the copy would read elements of {} that no block has set", buffer.name()));
  Edit edit(tree);
  const std::vector<Stmt> made{make(Alloc{copy, {}}), nest.stmt()};
  if (place.after) {
    edit.after(place.at, made);
  } else {
    edit.before(place.at, made);
  }
  const Stmt reader = replace_buffers(tree.stmt(id), {{buffer, copy}});
  edit.replace(id, reader);
  Func out = edit.func();
  TW_TRY_STATUS(check_concurrency(out, {step.block}, 4));
  return out;
}

namespace {

/// What a write-back needs to know about the block whose result goes through a copy.
struct WriteBack {
  Producer producer;
  Buffer buffer;
  Place place;       ///< after the statement that holds the block
  Id first = kNone;  ///< the statement to allocate the copy before
  Id scope = kNone;  ///< the Seq of both; kNone if the body is one nest
};

Result<WriteBack> plan_write_back(const Tree& tree, const Uses& uses, const CacheWrite& step) {
  WriteBack plan;
  const Id id = TW_TRY(tree.find_block(step.block));
  const Store* store = single_store(tree.block(id));
  if (store == nullptr) return refuse(1, fmt::format("block {} is not a single store", step.block));
  plan.buffer = store->buffer;
  const auto producer = producer_of(tree, uses, plan.buffer);
  if (!producer || producer->main != id)
    return refuse(1, fmt::format("{} has other writers than {} and its init", plan.buffer.name(),
                                 step.block));
  plan.producer = *producer;
  const Id alloc = tree.alloc_of(plan.buffer);
  const Id home = alloc == kNone ? 0 : tree.parent(alloc);
  if (tree.as<Seq>(home)) plan.scope = home;
  const Id last = plan.scope == kNone ? 0 : tree.child_towards(home, id);
  plan.first = last;
  if (plan.scope != kNone && producer->init != kNone)
    plan.first = tree.child_towards(home, producer->init);
  plan.place = {last, true};
  for (Id reader : uses.readers(plan.buffer))
    if (reader < tree.end(last))
      return refuse(2, fmt::format("block {} already reads {} in the nest of {}",
                                   tree.block(reader).name, plan.buffer.name(), step.block));
  return plan;
}

/// The write-back block: iterations and extents of `block`'s store.
Block write_back_block(const Block& block, const std::vector<Axis>& axes, const std::string& name,
                       const Buffer& from, const Buffer& to) {
  const Store& store = *single_store(block);
  Block out;
  out.name = name;
  std::vector<Expr> indices;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].iter < 0) {
      indices.push_back(store.indices[d]);
      continue;
    }
    const Iter& iter = block.iters[axes[d].iter];
    const Var var(iter.var.name());
    out.iters.push_back({var, IterKind::Space, iter.extent, Expr()});
    indices.push_back(axes[d].shift == 0 ? ref(var) : ref(var) + axes[d].shift);
  }
  out.body = make(Store{to, indices, load(from, indices), Combine::Set});
  return out;
}

}  // namespace

Result<Func> run(const CacheWrite& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const WriteBack plan = TW_TRY(plan_write_back(tree, uses, step));
  const Block& main = tree.block(plan.producer.main);
  NamePool names(tree);
  TW_TRY_STATUS(check_new_name(names, step.copy));
  const auto axes = axes_of(single_store(main)->indices, main);
  const arith::Bounds inner = tree.bounds_at(plan.producer.main);
  if (!axes || leaves_elements_out(main, inner))
    return refuse(3, fmt::format("the elements of {} are not plain iterations of {}",
                                 plan.buffer.name(), step.block));
  const std::vector<Id> loops = loops_below(tree, plan.producer.main, plan.scope);
  arith::Box box;
  for (const Access& a : accesses(main))
    if (a.write) box = box_of(a, vars_of(tree, loops), inner);
  if (!box.exact)
    return refuse(3, fmt::format("what block {} writes is not a box without gaps", step.block));
  const Buffer copy(step.copy, plan.buffer.dtype(), plan.buffer.shape());
  const std::string name = names.block(step.block + ".wb");
  const Block block = write_back_block(main, *axes, name, copy, plan.buffer);
  const auto own_axes = axes_of(single_store(block)->indices, block);
  const arith::Bounds bounds = tree.bounds_at(plan.place.at);
  const std::vector<IterRange> ranges = ranges_of(block, *own_axes, box, bounds, false);
  arith::Box read = box;
  for (size_t d = 0; d < own_axes->size(); ++d)
    if (const Axis& axis = (*own_axes)[d]; axis.iter >= 0)
      read.dims[d] = {ranges[axis.iter].begin + axis.shift, ranges[axis.iter].size};
  if (!all_written(tree, uses, plan.place, plan.buffer, read, bounds))
    return refuse(3, fmt::format("block {} may leave elements of {} without a value", step.block,
                                 plan.buffer.name()));
  const Nest nest = make_new_nest(block, ranges, names, bounds);
  Edit edit(tree);
  edit.before(plan.first, {make(Alloc{copy, {}})});
  edit.after(plan.place.at, {nest.stmt()});
  for (Id id : {plan.producer.init, plan.producer.main})
    if (id != kNone) edit.replace(id, replace_buffers(tree.stmt(id), {{plan.buffer, copy}}));
  Func out = edit.func();
  TW_TRY_STATUS(check_concurrency(out, {step.block, name}, 5));
  if (step.loop.empty()) return out;
  Result<Func> moved = move_consumer(out, name, step.loop);
  if (moved) return moved;
  Error error = std::move(moved).error();
  error.what = "requirement 4 does not hold";
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace tilewright::schedule
