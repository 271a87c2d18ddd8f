// The pass `place_allocs`: each allocation moves into the innermost scope of its uses.
//
//   alloc T  for i { T[..] = ..  .. T[..] .. }  =>  for i { alloc T  T[..] = ..  .. T[..] .. }
//
// It may enter a loop if no iteration reads what an earlier one wrote: every read must be covered
// by a write earlier in the same iteration, which is shown with the boxes of both. It never enters
// a vector loop (that would be one array per lane), and a loop over blocks or threads of a GPU only
// with memory that these own.
#include <algorithm>

#include "tilewright/arith/region.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/accesses.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

bool touches(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  walk(
      s,
      [&](const Stmt& x) {
        if (const auto* store = x.as<Store>()) found |= store->buffer == buffer;
        if (const auto* call = x.as<Call>())
          for (const auto& arg : call->args)
            if (const auto* region = std::get_if<Region>(&arg)) found |= region->buffer == buffer;
      },
      [&](const Expr& e) {
        if (const auto* l = e.as<Load>()) found |= l->buffer == buffer;
      });
  return found;
}

/// A condition that only says "this index is inside the buffer" cannot hide a write that a later
/// read needs: it holds wherever the element exists, as `i < 4` does for `i*8 + j < 32`.
bool restates_extent(const Expr& condition, const BufferAccess& write) {
  arith::Bounds inside = write.unguarded;
  for (size_t axis = 0; axis < write.indices.size(); ++axis)
    inside.assume(binary(BinaryOp::Lt, write.indices[axis], write.buffer.shape()[axis]));
  return arith::prove(condition, inside);
}

bool covers(const BufferAccess& write, const BufferAccess& read, const Stmt&) {
  for (const Expr& condition : write.conditions)
    if (!restates_extent(condition, write) && !arith::prove(condition, read.bounds)) return false;
  const auto& shape = write.buffer.shape();
  const arith::Box wrote = arith::touched(write.indices, shape, write.vars, write.unguarded);
  const arith::Box needs = arith::touched(read.indices, shape, read.vars, read.bounds);
  return wrote.exact && arith::contains(wrote, needs, read.outer);
}

/// True if every element read in an iteration of `loop` is written earlier in that iteration.
bool self_contained(const For& loop, const Buffer& buffer, const arith::Bounds& outer) {
  arith::Bounds bounds = outer;
  bounds.bind(loop.var, loop.extent);
  const std::vector<BufferAccess> accesses = accesses_of(loop.body, buffer, bounds);
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].opaque) return false;
    if (!accesses[i].reads) continue;
    const bool covered = std::any_of(
        accesses.begin(), accesses.begin() + static_cast<ptrdiff_t>(i),
        [&](const BufferAccess& w) { return w.sets && covers(w, accesses[i], loop.body); });
    if (!covered) return false;
  }
  return true;
}

/// Inside a vector loop a buffer would be one array per lane. A block of a GPU has shared memory,
/// its threads have local memory; other memory is allocated before a kernel starts.
bool enters(const For& loop, const Buffer& buffer) {
  if (loop.kind != ForKind::Bind) return loop.kind != ForKind::Vector;
  return buffer.scope() == "local" ||
         (buffer.scope() == "shared" && loop.axis.starts_with("block."));
}

Stmt sink(const Stmt& s, const Stmt& alloc, const arith::Bounds& bounds) {
  const Buffer& buffer = alloc.as<Alloc>()->buffer;
  if (const auto* list = s.as<Seq>()) {
    std::vector<Stmt> stmts = list->stmts;
    std::vector<size_t> users;
    for (size_t i = 0; i < stmts.size(); ++i)
      if (touches(stmts[i], buffer)) users.push_back(i);
    if (users.empty()) return s;
    if (users.size() == 1) {
      stmts[users[0]] = sink(stmts[users[0]], alloc, bounds);
    } else {
      stmts.insert(stmts.begin() + static_cast<ptrdiff_t>(users[0]), alloc);
    }
    return seq(std::move(stmts));
  }
  if (!touches(s, buffer)) return s;
  const auto* loop = s.as<For>();
  if (loop == nullptr || !enters(*loop, buffer) || !self_contained(*loop, buffer, bounds))
    return seq({alloc, s});
  For inner = *loop;
  arith::Bounds inside = bounds;
  inside.bind(loop->var, loop->extent);
  inner.body = sink(loop->body, alloc, inside);
  return make(std::move(inner));
}

Stmt place(const Stmt& s, const arith::Bounds& bounds) {
  if (s.as<Alloc>()) return seq({});
  if (const auto* loop = s.as<For>()) {
    arith::Bounds inside = bounds;
    inside.bind(loop->var, loop->extent);
    For out = *loop;
    out.body = place(loop->body, inside);
    return out.body.get() == loop->body.get() ? s : make(std::move(out));
  }
  if (const auto* branch = s.as<If>()) {
    If out = *branch;
    out.then_body = place(branch->then_body, bounds);
    if (branch->else_body) out.else_body = place(branch->else_body, bounds);
    return make(std::move(out));
  }
  const auto* list = s.as<Seq>();
  if (list == nullptr) return s;
  std::vector<Stmt> allocs, rest;
  for (const Stmt& child : list->stmts) {
    if (child.as<Alloc>()) {
      allocs.push_back(child);
    } else {
      rest.push_back(place(child, bounds));
    }
  }
  Stmt out = seq(std::move(rest));
  // Last first, so that allocations that end up together keep their order.
  for (size_t i = allocs.size(); i-- > 0;) out = sink(out, allocs[i], bounds);
  return out;
}

}  // namespace

Result<Func> place_allocs(const Func& func) {
  Func out = func;
  out.body = place(func.body, arith::Bounds(func));
  return out;
}

}  // namespace tilewright::lower
