// The pass `compact`: allocations shrink to what is used of them.
//
//   for o in 4 { alloc T: f32[64]  for i in 16 { T[16*o + i] = .. }  .. T[16*o + j] .. }
//   =>
//   for o in 4 { alloc T: f32[16]  for i in 16 { T[i] = .. }  .. T[j] .. }
//
// The footprint is the hull of the boxes of all accesses in the scope of the allocation. An axis
// shrinks if the size of its box is a smaller constant and its begin depends on loops around the
// allocation only; that begin is subtracted from every index.
#include <algorithm>

#include "tilewright/arith/region.h"
#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/accesses.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// A buffer's replacement: its footprint, and where that starts in the old coordinates.
struct Shrunk {
  Buffer buffer;
  std::vector<Expr> origin;
};
using ShrunkMap = std::map<Buffer, Shrunk>;

std::vector<Expr> rebase(const std::vector<Expr>& indices, const std::vector<Expr>& origin) {
  std::vector<Expr> out;
  for (size_t axis = 0; axis < indices.size(); ++axis)
    out.push_back(is_const_int(origin[axis], 0) ? indices[axis] : indices[axis] - origin[axis]);
  return out;
}

Expr rebase_loads(const Expr& e, const ShrunkMap& map) {
  return rewrite(e, [&](const Expr& x) {
    const auto* l = x.as<Load>();
    if (l == nullptr || !map.contains(l->buffer)) return x;
    const Shrunk& to = map.at(l->buffer);
    return load(to.buffer, rebase(l->indices, to.origin));
  });
}

Stmt rebase_stmt(const Stmt& s, const ShrunkMap& map) {
  return rewrite(
      s,
      [&](const Stmt& x) {
        if (const auto* store = x.as<Store>(); store && map.contains(store->buffer)) {
          const Shrunk& to = map.at(store->buffer);
          return make(
              Store{to.buffer, rebase(store->indices, to.origin), store->value, store->combine});
        }
        if (const auto* alloc = x.as<Alloc>(); alloc && map.contains(alloc->buffer))
          return make(Alloc{map.at(alloc->buffer).buffer, alloc->marks});
        if (const auto* call = x.as<Call>()) {
          Call copy = *call;
          for (auto& arg : copy.args) {
            auto* region = std::get_if<Region>(&arg);
            if (region == nullptr || !map.contains(region->buffer)) continue;
            const Shrunk& to = map.at(region->buffer);
            region->buffer = to.buffer;
            for (size_t axis = 0; axis < region->dims.size(); ++axis)
              region->dims[axis].first = region->dims[axis].first - to.origin[axis];
          }
          return make(std::move(copy));
        }
        return x;
      },
      [&](const Expr& e) { return rebase_loads(e, map); });
}

/// Box of one access; a region adds its size on every axis.
arith::Box box_of(const BufferAccess& access) {
  arith::Box box =
      arith::touched(access.indices, access.buffer.shape(), access.vars, access.bounds);
  for (size_t axis = 0; axis < access.sizes.size(); ++axis)
    box.dims[axis].size =
        arith::simplify(box.dims[axis].size + access.sizes[axis] - 1, access.bounds);
  return box;
}

bool only_outer(const Expr& e, const std::set<Var>& outer) {
  const std::vector<Var> vars = free_vars(e);
  return std::all_of(vars.begin(), vars.end(), [&](const Var& v) { return outer.contains(v); });
}

/// The footprint of `buffer` in `rest`, if it is smaller than the buffer.
std::optional<Shrunk> shrink(const Buffer& buffer, const Stmt& rest, const arith::Bounds& bounds,
                             const std::set<Var>& outer) {
  const std::vector<BufferAccess> accesses = accesses_of(rest, buffer, bounds);
  if (accesses.empty() || buffer.rank() == 0) return std::nullopt;
  arith::Box box = box_of(accesses[0]);
  for (size_t i = 1; i < accesses.size(); ++i) box = arith::hull(box, box_of(accesses[i]), bounds);
  std::vector<Expr> shape, origin;
  bool smaller = false;
  for (size_t axis = 0; axis < buffer.rank(); ++axis) {
    const Expr& extent = buffer.shape()[axis];
    const Expr begin = arith::simplify(box.dims[axis].begin, bounds);
    const auto size = arith::const_range(box.dims[axis].size, bounds);
    const auto whole = arith::const_range(extent, bounds);
    const bool shrinks = size && size->second >= 1 && only_outer(begin, outer) &&
                         (!whole || size->second < whole->second || !as_int(extent));
    shape.push_back(shrinks ? int_imm(size->second) : extent);
    origin.push_back(shrinks ? begin : int_imm(0));
    smaller |= shrinks;
  }
  if (!smaller) return std::nullopt;
  return Shrunk{Buffer(buffer.name(), buffer.dtype(), shape, buffer.scope()), origin};
}

Stmt shrink_all(const Stmt& s, const arith::Bounds& bounds, const std::set<Var>& outer);

Stmt shrink_list(const Seq& list, const arith::Bounds& bounds, const std::set<Var>& outer) {
  std::vector<Stmt> stmts;
  for (const Stmt& child : list.stmts) stmts.push_back(shrink_all(child, bounds, outer));
  for (size_t i = 0; i < stmts.size(); ++i) {
    const auto* alloc = stmts[i].as<Alloc>();
    if (alloc == nullptr) continue;
    const std::vector<Stmt> after(stmts.begin() + static_cast<ptrdiff_t>(i), stmts.end());
    const auto shrunk = shrink(alloc->buffer, seq(after), bounds, outer);
    if (!shrunk) continue;
    const ShrunkMap map = {{alloc->buffer, *shrunk}};
    for (size_t j = i; j < stmts.size(); ++j) stmts[j] = rebase_stmt(stmts[j], map);
  }
  return seq(std::move(stmts));
}

Stmt shrink_all(const Stmt& s, const arith::Bounds& bounds, const std::set<Var>& outer) {
  if (const auto* list = s.as<Seq>()) return shrink_list(*list, bounds, outer);
  if (const auto* loop = s.as<For>()) {
    arith::Bounds inside = bounds;
    std::set<Var> vars = outer;
    inside.bind(loop->var, loop->extent);
    vars.insert(loop->var);
    For out = *loop;
    out.body = shrink_all(loop->body, inside, vars);
    return make(std::move(out));
  }
  if (const auto* branch = s.as<If>()) {
    If out = *branch;
    out.then_body = shrink_all(branch->then_body, bounds, outer);
    if (branch->else_body) out.else_body = shrink_all(branch->else_body, bounds, outer);
    return make(std::move(out));
  }
  return s;
}

}  // namespace

Result<Func> compact(const Func& func) {
  std::set<Var> scalars;
  for (const Scalar& s : func.scalars) scalars.insert(s.var);
  const arith::Bounds bounds(func);
  Func out = func;
  out.body = arith::simplify(shrink_all(func.body, bounds, scalars), bounds);
  return out;
}

}  // namespace tilewright::lower
