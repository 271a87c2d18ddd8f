// The pass `join_parallel`: parallel loops that follow each other and touch nothing in common
// become one, so that threads are joined once, and a loop of few iterations leaves none of them
// without work.
//
//   for a in 1 parallel { S }  for b in 3 parallel { T }
//   =>
//   for a in 4 parallel { if a < 1 { S } else { T } }      (b = a - 1 in T)
//
// Loops of one iteration that are not parallel are dissolved on the way: parts of a loop that was
// cut stand side by side then, whichever loops are around them.
#include <algorithm>
#include <set>

#include "tilewright/arith/region.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/accesses.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// Of two loops one has fewer iterations. Larger ones feed all threads by themselves, and each
/// thread then takes the same rows of both. source: a product of 13 tiles of rows by a whole and a
/// partial column, 0.76 of the speed as one loop (bench/results/cpu.md).
constexpr int64_t kFew = 8;
/// Loops that may become one.
constexpr size_t kMostJoined = 8;

/// Buffers from outside `s` that it reads or writes; `written`: only those that it writes.
std::set<Buffer> buffers_of(const Stmt& s, bool written) {
  std::set<Buffer> buffers, own;
  walk(
      s,
      [&](const Stmt& x) {
        if (const auto* store = x.as<Store>()) buffers.insert(store->buffer);
        if (const auto* alloc = x.as<Alloc>()) own.insert(alloc->buffer);
      },
      [&](const Expr& e) {
        if (written) return;
        walk(e, [&](const Expr& x) {
          if (const auto* l = x.as<Load>()) buffers.insert(l->buffer);
        });
      });
  for (const Buffer& buffer : own) buffers.erase(buffer);
  return buffers;
}

bool calls(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) { found |= x.as<Call>() != nullptr; });
  return found;
}

std::vector<arith::Box> boxes_of(const Stmt& s, const Buffer& buffer, const arith::Bounds& bounds) {
  std::vector<arith::Box> boxes;
  for (const BufferAccess& access : accesses_of(s, buffer, bounds))
    boxes.push_back(arith::touched(access.indices, buffer.shape(), access.vars, access.bounds));
  return boxes;
}

/// Whether both write parts of the same buffers, and neither touches what the other writes. Where
/// the memory of an input becomes that of the result, each element is read where it is written.
bool independent(const Stmt& a, const Stmt& b, const arith::Bounds& bounds) {
  const std::set<Buffer> written = buffers_of(a, true);
  if (written.empty() || written != buffers_of(b, true) || calls(a) || calls(b)) return false;
  for (const Buffer& buffer : written) {
    const std::vector<arith::Box> there = boxes_of(b, buffer, bounds);
    for (const arith::Box& box : boxes_of(a, buffer, bounds))
      for (const arith::Box& other : there)
        if (!arith::disjoint(box, other, bounds)) return false;
  }
  return true;
}

class Joiner {
 public:
  Stmt run(const Stmt& s, const arith::Bounds& bounds) {
    if (const auto* list = s.as<Seq>()) {
      std::vector<Stmt> stmts;
      for (const Stmt& child : list->stmts) {
        const Stmt next = run(child, bounds);
        const auto* inner = next.as<Seq>();
        if (inner == nullptr) stmts.push_back(next);
        if (inner != nullptr) stmts.insert(stmts.end(), inner->stmts.begin(), inner->stmts.end());
      }
      return seq(join(stmts, bounds));
    }
    const auto* loop = s.as<For>();
    if (loop == nullptr || loop->kind != ForKind::Serial) return s;
    if (as_int(loop->extent) == int64_t{1})
      return run(substitute(loop->body, {{loop->var, int_imm(0)}}), bounds);
    arith::Bounds inside = bounds;
    inside.bind(loop->var, loop->extent);
    const Stmt body = run(loop->body, inside);
    if (body.get() == loop->body.get()) return s;
    For out = *loop;
    out.body = body;
    return make(std::move(out));
  }

 private:
  /// Of a parallel loop; 0 if it is none, or their number is not known.
  static int64_t iterations(const Stmt& s) {
    const auto* loop = s.as<For>();
    if (loop == nullptr || loop->kind != ForKind::Parallel) return 0;
    return as_int(loop->extent).value_or(0);
  }

  static std::vector<Stmt> join(const std::vector<Stmt>& stmts, const arith::Bounds& bounds) {
    std::vector<Stmt> out;
    for (size_t i = 0; i < stmts.size();) {
      std::vector<Stmt> group = {stmts[i++]};
      int64_t count = iterations(group[0]);
      const auto fits = [&](const Stmt& next) {
        return count > 0 && iterations(next) > 0 && group.size() < kMostJoined &&
               std::min(count, iterations(next)) < kFew &&
               std::all_of(
                   group.begin(), group.end(),
                   [&](const Stmt& other) { return independent(other, next, bounds); });
      };
      for (; i < stmts.size() && fits(stmts[i]); ++i) {
        count += iterations(stmts[i]);
        group.push_back(stmts[i]);
      }
      out.push_back(group.size() == 1 ? group[0] : as_one(group));
    }
    return out;
  }

  /// The loops one after the other in one loop; its variable is that of the first.
  static Stmt as_one(const std::vector<Stmt>& loops) {
    For out = *loops[0].as<For>();
    std::vector<int64_t> begins;
    int64_t count = 0;
    for (const Stmt& s : loops) {
      begins.push_back(count);
      count += *as_int(s.as<For>()->extent);
    }
    Stmt choice;
    for (size_t i = loops.size(); i-- > 0;) {
      const For& loop = *loops[i].as<For>();
      const bool once = as_int(loop.extent) == int64_t{1};
      const Expr at = once ? int_imm(0) : ref(out.var) - begins[i];
      const Stmt body = i == 0 && !once ? loop.body : substitute(loop.body, {{loop.var, at}});
      choice =
          choice ? make(If{ref(out.var) < begins[i] + *as_int(loop.extent), body, choice}) : body;
    }
    out.extent = int_imm(count);
    out.body = choice;
    return make(std::move(out));
  }
};

}  // namespace

Result<Func> join_parallel(const Func& func) {
  Func out = func;
  out.body = Joiner().run(func.body, arith::Bounds(func));
  return out;
}

}  // namespace tilewright::lower
