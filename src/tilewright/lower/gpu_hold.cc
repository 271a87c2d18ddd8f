// The pass `hold_copies`: in a pipelined loop, copies that hardware cannot make asynchronously are
// read early and stored late.
//
//   for t { P[slot t + 1] = f(A[..])  use P[slot t] }
//   =>
//   for t { h = f(A[..])  use P[slot t]  P[slot t + 1] = h }
//
// `h` is in registers of the thread that makes the copy. So the time that memory takes is hidden
// behind the rest of the body, as with asynchronous copies, but at the price of registers.
// Hardware copies at least 4 bytes at a time, as they are; anything else is held here (elements of
// 2 bytes that are not contiguous, values that are computed on the way).
#include <algorithm>
#include <optional>
#include <set>

#include "tilewright/arith/bounds.h"
#include "tilewright/arith/exhaust.h"
#include "tilewright/arith/tf32.h"
#include "tilewright/base/dtype.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// Bits of the narrowest copy that hardware makes on its own.
constexpr int64_t kOwnCopyBits = 32;

/// A nest around one store.
struct HeldNest {
  std::vector<const For*> loops;
  const Store* store = nullptr;
};

/// Loops of constant extents and conditions around one store.
std::optional<HeldNest> nest_of(const Stmt& s) {
  HeldNest nest;
  const Stmt* next = &s;
  for (;;) {
    if (const auto* loop = next->as<For>(); loop && as_int(loop->extent)) {
      nest.loops.push_back(loop);
      next = &loop->body;
    } else if (const auto* branch = next->as<If>(); branch && !branch->else_body) {
      next = &branch->then_body;
    } else {
      nest.store = next->as<Store>();
      return nest.store != nullptr ? std::optional(nest) : std::nullopt;
    }
  }
}

/// What is rounded to TF32, perhaps under a condition; absent where `e` is no such value.
Expr before_rounding(const Expr& e) {
  if (const Expr value = arith::rounded_to_tf32(e)) return value;
  const auto* choice = e.as<Select>();
  const Expr value =
      choice != nullptr && is_zero(choice->on_false) ? before_rounding(choice->on_true) : Expr();
  return value ? select(choice->condition, value, choice->on_false) : Expr();
}

/// Whether hardware can make the copy while threads go on: of 4 bytes and more, perhaps under a
/// condition.
bool is_own_copy(const HeldNest& nest, const arith::Bounds& bounds) {
  const Store& store = *nest.store;
  const auto* choice = store.value.as<Select>();
  const auto* from = (choice != nullptr ? choice->on_true : store.value).as<Load>();
  if (from == nullptr || (choice != nullptr && !is_zero(choice->on_false))) return false;
  if (bit_width(store.buffer.dtype()) >= kOwnCopyBits) return true;
  const For& inner = *nest.loops.back();
  if (inner.kind != ForKind::Vector) return false;
  Expr offset = int_imm(0);
  for (size_t axis = 0; axis < from->indices.size(); ++axis)
    offset = offset * from->buffer.shape()[axis] + from->indices[axis];
  return arith::counts_up(offset, inner.var, bounds);
}

bool is_pipelined(const For& loop) {
  return std::any_of(loop.marks.begin(), loop.marks.end(),
                     [](const Mark& mark) { return mark.kind == MarkKind::Pipeline; });
}

class Holder {
 public:
  explicit Holder(const Func& func) : namer_(func), bounds_(func) {
    walk(func.body, [&](const Stmt& s) {
      if (const auto* loop = s.as<For>()) bounds_.bind(loop->var, loop->extent);
      if (const auto* alloc = s.as<Alloc>(); alloc && is_async(*alloc))
        async_.insert(alloc->buffer);
    });
  }

  Func run(const Func& func) {
    if (async_.empty()) return func;
    Func out = func;
    out.body = rewrite(func.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      return loop != nullptr && is_pipelined(*loop) ? pipelined(*loop) : s;
    });
    if (held_.empty()) return func;
    out.body = rewrite(out.body, [&](const Stmt& s) {
      const auto* alloc = s.as<Alloc>();
      if (alloc == nullptr || !held_.contains(alloc->buffer)) return s;
      Alloc plain = *alloc;
      std::erase_if(plain.marks, [](const Mark& mark) { return mark.kind == MarkKind::Async; });
      return make(std::move(plain));
    });
    return out;
  }

 private:
  Stmt pipelined(const For& loop) {
    const auto* list = loop.body.as<Seq>();
    if (list == nullptr) return make(loop);
    std::vector<Stmt> now, later;
    for (const Stmt& child : list->stmts) {
      const auto* branch = child.as<If>();
      const bool guarded = branch != nullptr && !branch->else_body;
      std::vector<Stmt> own, early, late;
      const Stmt& copies = guarded ? branch->then_body : child;
      const auto* several = copies.as<Seq>();
      for (const Stmt& copy : several != nullptr ? several->stmts : std::vector<Stmt>{copies})
        divide(copy, own, now, early, late);
      const auto under = [&](std::vector<Stmt> stmts) {
        const Stmt all = seq(std::move(stmts));
        return guarded ? make(If{branch->condition, all, {}}) : all;
      };
      if (late.empty()) {
        now.push_back(child);
        continue;
      }
      // Copies that hardware makes stay among themselves, as a group to wait for.
      if (!own.empty()) now.push_back(under(std::move(own)));
      now.push_back(under(std::move(early)));
      later.push_back(under(std::move(late)));
    }
    if (later.empty()) return make(loop);
    now.insert(now.end(), later.begin(), later.end());
    For out = loop;
    out.body = seq(std::move(now));
    return make(std::move(out));
  }

  /// `own`: what is left as it is. A copy that threads make themselves becomes `early`, into
  /// registers (`allocs`), and `late`, which stores these.
  void divide(const Stmt& s, std::vector<Stmt>& own, std::vector<Stmt>& allocs,
              std::vector<Stmt>& early, std::vector<Stmt>& late) {
    const auto nest = nest_of(s);
    const bool threads = nest && std::any_of(nest->loops.begin(), nest->loops.end(),
                                             [](const For* loop) { return is_thread_loop(*loop); });
    if (!threads || !async_.contains(nest->store->buffer) || nest->store->combine != Combine::Set ||
        is_own_copy(*nest, bounds_)) {
      own.push_back(s);
      return;
    }
    const Buffer& to = nest->store->buffer;
    std::vector<Expr> shape, at;
    for (const bool rest : {false, true})  // axes that tell threads apart go in front
      for (const For* loop : nest->loops)
        if (is_thread_loop(*loop) != rest)
          shape.push_back(loop->extent), at.push_back(ref(loop->var));
    const Buffer held(namer_.fresh(to.name(), ".held"), to.dtype(), shape, "local");
    allocs.push_back(make(Alloc{held, {}}));
    held_.insert(to);
    // What memory brings is held as it is: nothing waits for it before the late part.
    const Expr raw = before_rounding(nest->store->value);
    const Expr out = raw ? arith::round_to_tf32(load(held, at)) : load(held, at);
    early.push_back(with_store(
        s, [&](const Store& x) { return Store{held, at, raw ? raw : x.value, Combine::Set}; }));
    late.push_back(clone(
        with_store(s, [&](const Store& x) { return Store{to, x.indices, out, Combine::Set}; }),
        [&](const std::string& name) { return namer_.fresh(name, ".late"); }));
  }

  /// The nest with another store; turns of a thread are written out, so that they find registers.
  template <class F>
  static Stmt with_store(const Stmt& s, const F& change) {
    return rewrite(s, [&](const Stmt& x) {
      if (const auto* store = x.as<Store>()) return make(change(*store));
      const auto* loop = x.as<For>();
      if (loop == nullptr || loop->kind != ForKind::Serial) return x;
      For out = *loop;
      out.kind = ForKind::Unroll;
      return make(std::move(out));
    });
  }

  Namer namer_;
  arith::Bounds bounds_;  ///< of all loops
  std::set<Buffer> async_, held_;
};

}  // namespace

Result<Func> hold_copies(const Func& func) { return Holder(func).run(func); }

}  // namespace tilewright::lower
