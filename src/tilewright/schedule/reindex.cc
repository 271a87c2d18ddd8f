// The step Reindex: what a block reads at one place is staged as an array over its iterations.
//
//   for i in 8, r in 3 { C[i] += A[i + r] }                              (iters = [r, i])
//   =>
//   for r in 3, i in 8 { T[r, i] = A[i + r] }  for i in 8, r in 3 { C[i] += T[r, i] }
//
// So a window becomes a matrix (im2col), and the order of `iters` transposes. Places of the copy
// that stand for elements outside of the buffer get zeros.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/regenerate.h"

namespace tilewright::schedule {
namespace {

/// The one index list with which `block` reads `buffer`.
Result<std::vector<Expr>> only_access(const Block& block, const Buffer& buffer) {
  std::vector<const Load*> loads;
  walk(block.body, {}, [&](const Expr& e) {
    if (const Load* l = e.as<Load>(); l && l->buffer == buffer) loads.push_back(l);
  });
  if (loads.empty())
    return refuse(1, fmt::format("block {} does not read {}", block.name, buffer.name()));
  for (const Load* l : loads)
    for (size_t d = 0; d < l->indices.size(); ++d)
      if (!equal(l->indices[d], loads[0]->indices[d]))
        return refuse(
            1, fmt::format("block {} reads {} at several places", block.name, buffer.name()));
  for (const Expr& e : loads[0]->indices) {
    bool indirect = false;
    walk(e, [&](const Expr& x) { indirect |= x.as<Load>() != nullptr; });
    if (indirect)
      return refuse(
          1, fmt::format("block {} reads {} through another buffer", block.name, buffer.name()));
  }
  return loads[0]->indices;
}

/// The staging block: copy[iters] = buffer[indices], zero outside the buffer.
Block staging_block(const Reindex& step, const std::vector<Iter>& iters,
                    const std::vector<Expr>& access, const Buffer& buffer, const Buffer& copy) {
  Block block;
  block.name = step.copy;
  VarMap fresh;
  arith::Bounds bounds;
  std::vector<Expr> target;
  for (const Iter& iter : iters) {
    const Var var(iter.var.name());
    fresh[iter.var] = ref(var);
    bounds.bind(var, iter.extent);
    block.iters.push_back({var, IterKind::Space, iter.extent, Expr()});
    target.push_back(ref(var));
  }
  std::vector<Expr> indices, inside;
  for (size_t d = 0; d < access.size(); ++d) {
    indices.push_back(arith::simplify(substitute(access[d], fresh), bounds));
    for (const Expr& e : {indices[d] >= 0, indices[d] < buffer.shape()[d]}) {
      const Expr simple = arith::simplify(e, bounds);
      if (!is_const_int(simple, 1) && !arith::prove(simple, bounds)) inside.push_back(simple);
    }
  }
  Expr value = load(buffer, indices);
  if (const Expr condition = conjunction(inside))
    value = select(condition, value, const_of(buffer.dtype(), 0));
  block.body = make(Store{copy, target, value, Combine::Set});
  return block;
}

/// The first statement of the source's sequence that is after all its writers and not after the
/// reader.
Result<Place> staging_place(const Tree& tree, const Uses& uses, Id reader, const Buffer& buffer) {
  const Id alloc = tree.alloc_of(buffer);
  const Id home = alloc == kNone ? 0 : tree.parent(alloc);
  if (home == kNone || tree.as<Seq>(home) == nullptr) return Place{0, false};
  Place place{tree.children(home).front(), false};
  const Id mine = tree.child_towards(home, reader);
  for (Id w : uses.writers(buffer)) {
    const Id child = tree.child_towards(home, w);
    if (child >= mine)
      return refuse(3, fmt::format("{} is written in the statement of block {} or later",
                                   buffer.name(), tree.block(reader).name));
    if (child >= place.at) place = {child, true};
  }
  return place;
}

/// The iterations that `step` lists; those that the access depends on must be among them.
Result<std::vector<Iter>> listed_iters(const Reindex& step, const Block& block,
                                       const std::vector<Expr>& access) {
  std::vector<Iter> iters;
  for (const Name& name : step.iters) {
    const auto it = std::find_if(block.iters.begin(), block.iters.end(),
                                 [&](const Iter& i) { return i.var.name() == name; });
    if (it == block.iters.end())
      return fail(ErrorKind::Invalid,
                  fmt::format("block {} has no iteration {}", step.block, name));
    for (const Iter& other : iters)
      if (other.var == it->var)
        return fail(ErrorKind::Invalid, fmt::format("iteration {} is listed twice", name));
    iters.push_back(*it);
  }
  for (const Iter& iter : block.iters) {
    const bool listed =
        std::any_of(iters.begin(), iters.end(), [&](const Iter& i) { return i.var == iter.var; });
    for (const Expr& e : access)
      if (!listed && uses(e, iter.var))
        return refuse(2, fmt::format("the access depends on iteration {}, which is not listed",
                                     iter.var.name()));
  }
  return iters;
}

/// That `name` can be that of a new buffer and a new block.
Status check_copy_name(const NamePool& names, const Name& name) {
  if (!valid_name(name))
    return fail(ErrorKind::Invalid, fmt::format("\"{}\" cannot be the name of a buffer", name));
  if (names.has_buffer(name) || names.has_block(name))
    return fail(ErrorKind::Invalid, fmt::format("the name {} is in use", name));
  return {};
}

/// What an access of the copying nest reads: elements outside the buffer are not read, the staged
/// value is zero there.
arith::Box read_box(const Access& access, const Nest& nest, const arith::Bounds& inner) {
  arith::Box box = box_of(access, nest.vars(), inner);
  for (size_t d = 0; d < box.dims.size(); ++d) {
    const auto begin = as_int(box.dims[d].begin), size = as_int(box.dims[d].size);
    const auto n = as_int(access.buffer.shape()[d]);
    if (!begin || !size || !n) continue;
    const int64_t lo = std::clamp<int64_t>(*begin, 0, *n);
    const int64_t hi = std::clamp<int64_t>(*begin + *size, lo, *n);
    box.dims[d] = {int_imm(lo), int_imm(hi - lo)};
  }
  return box;
}

/// That all elements which the copying nest reads at `place` are set and final by then.
Status check_staged(const Tree& tree, const Uses& uses, const Place& place, const Nest& nest,
                    Id reader, const Buffer& buffer) {
  const Param* param = tree.param_of(buffer);
  if (param != nullptr && param->mode != ParamMode::Out) return {};  // set by the caller
  const arith::Bounds bounds = tree.bounds_at(place.at);
  const arith::Bounds inner = nest.bounds(bounds);
  for (const Access& a : accesses(nest.block))
    if (!a.write && !all_written(tree, uses, place, buffer, read_box(a, nest, inner), bounds))
      return refuse(3, fmt::format("the copy would read elements of {} that no block has set",
                                   buffer.name()));
  if (auto why = sources_not_final(tree, uses, place, nest, reader)) return refuse(3, *why);
  return {};
}

/// `block`, reading the copy where it read the buffer.
Block reading_copy(const Block& block, const Buffer& buffer, const Buffer& copy,
                   const std::vector<Iter>& iters) {
  std::vector<Expr> plain;
  for (const Iter& iter : iters) plain.push_back(ref(iter.var));
  Block reader = block;
  reader.body = rewrite(block.body, {}, [&](const Expr& e) {
    return rewrite(e, [&](const Expr& x) {
      const Load* l = x.as<Load>();
      return l && l->buffer == buffer ? load(copy, plain) : x;
    });
  });
  return reader;
}

}  // namespace

Result<Func> run(const Reindex& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const Id id = TW_TRY(tree.find_block(step.block));
  const Buffer buffer = TW_TRY(tree.find_buffer(step.buffer));
  const Block& block = tree.block(id);
  NamePool names(tree);
  TW_TRY_STATUS(check_copy_name(names, step.copy));
  if (block.body.as<Call>()) return refuse(1, fmt::format("block {} is an intrinsic", step.block));
  const std::vector<Expr> access = TW_TRY(only_access(block, buffer));
  const std::vector<Iter> iters = TW_TRY(listed_iters(step, block, access));
  for (const Access& a : accesses(block))
    if (a.write && a.buffer == buffer)
      return refuse(1, fmt::format("block {} writes {}", step.block, step.buffer));
  std::vector<Expr> shape;
  for (const Iter& iter : iters) shape.push_back(iter.extent);
  const Buffer copy(step.copy, buffer.dtype(), shape);
  const Block staging = staging_block(step, iters, access, buffer, copy);
  const Place place = TW_TRY(staging_place(tree, uses, id, buffer));
  std::vector<IterRange> ranges;
  for (const Iter& iter : staging.iters) ranges.push_back({int_imm(0), iter.extent, true, false});
  const Nest nest = make_new_nest(staging, ranges, names, tree.bounds_at(place.at));
  TW_TRY_STATUS(check_staged(tree, uses, place, nest, id, buffer));
  Edit edit(tree);
  const std::vector<Stmt> made{make(Alloc{copy, {}}), nest.stmt()};
  if (place.after) {
    edit.after(place.at, made);
  } else {
    edit.before(place.at, made);
  }
  edit.replace(id, make(reading_copy(block, buffer, copy, iters)));
  return edit.func();
}

}  // namespace tilewright::schedule
