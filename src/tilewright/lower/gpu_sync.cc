// The pass `insert_syncs`: barriers for the threads of a block.
//
//   for x bind(thread.x) { S[x] = A[x] }  for x bind(thread.x) { B[x] = S[n - 1 - x] }
//   =>
//   for x .. { S[x] = A[x] }  call sync.block()  for x .. { B[x] = S[n - 1 - x] }
//
// Statements are visited in program order with the set of uses of shared memory since the last
// barrier (`pending`). A statement that conflicts with one of these (the same buffer, one of both
// writing) gets a barrier before it, which empties the set. A loop is visited until the uses that
// its end hands to its beginning no longer grow. Slots of a ring buffer are told apart by
// `(t + offset) % slots`, so a pipelined loop needs one barrier per iteration.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// A part of a buffer that a loop goes through: along `axis` an access stays within the steps of
/// `weight` elements that `(var + offset) % modulus` counts in a ring, and `var + offset` where the
/// modulus is 0. There, offset -1 stands for all iterations before.
struct Slot {
  Var var;
  size_t axis = 0;
  int64_t offset = 0, modulus = 0, weight = 1;
  friend bool operator<(const Slot& a, const Slot& b) {
    return std::tie(a.var, a.axis, a.offset, a.modulus, a.weight) <
           std::tie(b.var, b.axis, b.offset, b.modulus, b.weight);
  }
  /// Whether this is certainly another part.
  bool apart(const Slot& other) const {
    return var == other.var && axis == other.axis && modulus == other.modulus &&
           weight == other.weight && offset != other.offset;
  }
};

/// A use of memory that threads share, of all of a buffer or of a slot.
struct Touch {
  Buffer buffer;
  bool write = false;
  std::optional<Slot> slot;
  friend bool operator<(const Touch& a, const Touch& b) {
    if (a.buffer < b.buffer || b.buffer < a.buffer) return a.buffer < b.buffer;
    if (a.write != b.write) return b.write;
    if (a.slot && b.slot) return *a.slot < *b.slot;
    return !a.slot && b.slot;
  }
  bool conflicts(const Touch& other) const {
    return buffer == other.buffer && (write || other.write) &&
           !(slot && other.slot && slot->apart(*other.slot));
  }
};
using Touches = std::set<Touch>;

bool conflict(const Touches& a, const Touches& b) {
  return std::any_of(a.begin(), a.end(), [&](const Touch& x) {
    return std::any_of(b.begin(), b.end(), [&](const Touch& y) { return x.conflicts(y); });
  });
}

/// What counts the steps of a slot, if `term` does.
std::optional<Slot> counter(const Expr& term) {
  if (const auto* var = term.as<VarRef>()) return Slot{var->var};
  const auto* mod = term.as<Binary>();
  const auto modulus = mod && mod->op == BinaryOp::Mod ? as_int(mod->b) : std::nullopt;
  if (!modulus || *modulus < 2) return std::nullopt;
  const arith::Affine at = arith::as_affine(mod->a);
  const bool plain = at.terms.size() == 1 && at.terms[0].second == 1;
  const auto* var = plain ? at.terms[0].first.as<VarRef>() : nullptr;
  if (var == nullptr) return std::nullopt;
  return Slot{var->var, 0, (at.constant % *modulus + *modulus) % *modulus, *modulus};
}

/// The part of a ring, where `index` is `(step * var + rest) % (slots * step)` with the rest within
/// one step.
std::optional<Slot> whole_ring(const Expr& index, int64_t size, const std::set<Var>& loops,
                               const arith::Bounds& bounds) {
  const auto* mod = index.as<Binary>();
  const auto ring = mod && mod->op == BinaryOp::Mod ? as_int(mod->b) : std::nullopt;
  if (!ring) return std::nullopt;
  for (const auto& [term, step] : arith::as_affine(mod->a).terms) {
    const auto* var = term.as<VarRef>();
    if (var == nullptr || !loops.contains(var->var) || step < 1 || *ring % step != 0) continue;
    const Expr rest = arith::simplify(mod->a - term * step, bounds);
    const auto range = arith::const_range(rest, bounds);
    if (!range || range->first < 0) continue;
    const int64_t offset = range->first / step, slots = *ring / step;
    if (slots > 1 && arith::prove(rest + size <= (offset + 1) * step, bounds))
      return Slot{var->var, 0, offset % slots, slots, step};
  }
  return std::nullopt;
}

/// The part that `size` elements from `index` on are in, where an index tells.
std::optional<Slot> slot_of(const Expr& index, int64_t size, const std::set<Var>& loops,
                            const arith::Bounds& bounds) {
  if (const auto slot = whole_ring(index, size, loops, bounds)) return slot;
  for (const auto& [term, weight] : arith::as_affine(index).terms) {
    std::optional<Slot> slot = counter(term);
    if (!slot || weight < 1 || !loops.contains(slot->var)) continue;
    const Expr rest = arith::simplify(index - term * weight, bounds);
    const auto range = arith::const_range(rest, bounds);
    if (!range || range->first < 0 || !arith::prove(rest + size <= weight, bounds)) continue;
    slot->weight = weight;
    return slot;
  }
  return std::nullopt;
}

/// Registers are a thread's own, and those of a warp move inside instructions only.
bool is_registers(const Buffer& buffer) {
  return buffer.scope() == "local" || buffer.scope() == "warp";
}

/// Gathers what a statement uses of memory that threads share.
class Toucher {
 public:
  static Touches of(const Stmt& s, const arith::Bounds& bounds) {
    Toucher toucher;
    for (const auto& [var, range] : bounds.ranges()) toucher.loops_.insert(var);
    toucher.stmt(s, bounds);
    return std::move(toucher.found_);
  }

 private:
  void stmt(const Stmt& s, const arith::Bounds& bounds) {
    if (const auto* loop = s.as<For>()) {
      expr(loop->extent, bounds);
      arith::Bounds inside = bounds;
      inside.bind(loop->var, loop->extent);
      return stmt(loop->body, inside);
    }
    if (const auto* branch = s.as<If>()) {
      expr(branch->condition, bounds);
      arith::Bounds inside = bounds;
      inside.assume(branch->condition);
      stmt(branch->then_body, inside);
      if (branch->else_body) stmt(branch->else_body, bounds);
      return;
    }
    if (const auto* list = s.as<Seq>())
      for (const Stmt& child : list->stmts) stmt(child, bounds);
    if (const auto* store = s.as<Store>()) {
      for (const Expr& index : store->indices) expr(index, bounds);
      expr(store->value, bounds);
      add(store->buffer, true, store->indices, {}, bounds);
    }
    if (const auto* call = s.as<Call>()) regions(*call, bounds);
  }

  void expr(const Expr& e, const arith::Bounds& bounds) {
    walk(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>()) add(l->buffer, false, l->indices, {}, bounds);
    });
  }

  void regions(const Call& call, const arith::Bounds& bounds) {
    for (size_t i = 0; i < call.callee->params.size(); ++i) {
      const auto* region = std::get_if<Region>(&call.args[call.callee->scalars.size() + i]);
      if (region == nullptr) continue;
      std::vector<Expr> begins, sizes;
      for (const auto& [begin, size] : region->dims) begins.push_back(begin), sizes.push_back(size);
      const ParamMode mode = call.callee->params[i].mode;
      add(region->buffer, mode == ParamMode::Out || mode == ParamMode::InOut, begins, sizes,
          bounds);
    }
  }

  void add(const Buffer& buffer, bool write, const std::vector<Expr>& begins,
           const std::vector<Expr>& sizes, const arith::Bounds& bounds) {
    if (is_registers(buffer)) return;
    std::optional<Slot> slot;
    for (size_t axis = 0; axis < begins.size(); ++axis) {
      const auto size = sizes.empty() ? std::optional<int64_t>(1) : as_int(sizes[axis]);
      auto found = size ? slot_of(begins[axis], *size, loops_, bounds) : std::nullopt;
      if (!found || (slot && slot->modulus >= found->modulus)) continue;
      slot = found;
      slot->axis = axis;
    }
    found_.insert({buffer, write, slot});
  }

  std::set<Var> loops_;  ///< around the statement
  Touches found_;
};

bool has_thread_loop(const Stmt& s) {
  return contains(s, [](const Stmt& x) {
    const auto* loop = x.as<For>();
    return loop != nullptr && is_thread_loop(*loop);
  });
}

/// Whether threads meet inside `s`: it orders statements that threads share out.
bool has_parts(const Stmt& s) {
  return contains(s, [](const Stmt& x) {
    const auto* list = x.as<Seq>();
    return list != nullptr && std::any_of(list->stmts.begin(), list->stmts.end(),
                                          [](const Stmt& child) { return has_thread_loop(child); });
  });
}

/// The touches as the next iteration of the loop over `var` sees them.
Touches seen_next(const Touches& touches, const Var& var) {
  Touches out;
  for (Touch touch : touches) {
    if (touch.slot && touch.slot->var == var) {
      Slot& slot = *touch.slot;
      slot.offset = slot.modulus == 0 ? -1 : (slot.offset + slot.modulus - 1) % slot.modulus;
    }
    out.insert(touch);
  }
  return out;
}

/// The touches as seen after that loop.
Touches seen_after(const Touches& touches, const Var& var) {
  Touches out;
  for (Touch touch : touches) {
    if (touch.slot && touch.slot->var == var) touch.slot.reset();
    out.insert(touch);
  }
  return out;
}

class Inserter {
 public:
  /// `pending`: what was used before `s` and no barrier separates; afterwards what was used up to
  /// its end.
  Stmt run(const Stmt& s, Touches& pending, const arith::Bounds& bounds) {
    if (const auto* list = s.as<Seq>(); list && has_thread_loop(s)) {
      std::vector<Stmt> out;
      for (const Stmt& child : list->stmts) out.push_back(run(child, pending, bounds));
      return seq(std::move(out));
    }
    if (const auto* loop = s.as<For>(); loop && goes_inside(*loop))
      return run_loop(*loop, pending, bounds);
    if (const auto* branch = s.as<If>(); branch && has_thread_loop(s) && needs_inside(s, bounds)) {
      If out = *branch;
      Touches other = pending;
      arith::Bounds inside = bounds;
      inside.assume(branch->condition);
      out.then_body = run(branch->then_body, pending, inside);
      if (branch->else_body) out.else_body = run(branch->else_body, other, bounds);
      pending.insert(other.begin(), other.end());
      return make(std::move(out));
    }
    const Touches now = Toucher::of(s, bounds);
    const bool wait = conflict(pending, now);
    if (wait) pending.clear();
    pending.insert(now.begin(), now.end());
    return wait ? seq({make_sync(), s}) : s;
  }

 private:
  Stmt run_loop(const For& loop, Touches& pending, const arith::Bounds& bounds) {
    For out = loop;
    arith::Bounds inside = bounds;
    inside.bind(loop.var, loop.extent);
    const Touches before = pending;
    // What the first iteration meets, and each later one: once that no longer grows, the barriers
    // suffice for all.
    for (Touches entry = before;;) {
      pending = entry;
      out.body = run(loop.body, pending, inside);
      if (loop.kind == ForKind::Bind) break;
      const size_t size = entry.size();
      const Touches again = seen_next(pending, loop.var);
      entry.insert(again.begin(), again.end());
      if (entry.size() == size) break;
    }
    pending = seen_after(pending, loop.var);
    if (loop.kind != ForKind::Bind) pending.insert(before.begin(), before.end());
    return make(std::move(out));
  }

  /// Whether statements in the branches of `s` need barriers between them; otherwise one before `s`
  /// serves those threads too that take no branch.
  bool needs_inside(const Stmt& s, const arith::Bounds& bounds) {
    const auto& branch = *s.as<If>();
    for (const Stmt& part : {branch.then_body, branch.else_body}) {
      Touches none;
      if (part && contains(run(part, none, bounds), is_sync)) return true;
    }
    return false;
  }

  /// Whether all that iterations of `loop` use of what they write is the element that they write
  /// over, another one each.
  static bool updates_in_place(const For& loop) {
    bool always = true;
    int stores = 0;
    walk(loop.body, [&](const Stmt& s) {
      const auto* store = s.as<Store>();
      always &= s.as<Call>() == nullptr;
      if (store == nullptr) return;
      ++stores;
      const auto& place = store->indices;
      always &= std::any_of(place.begin(), place.end(),
                            [&](const Expr& index) { return uses(index, loop.var); });
      walk(store->value, [&](const Expr& e) {
        const auto* l = e.as<Load>();
        if (l == nullptr || !(l->buffer == store->buffer)) return;
        always &= std::equal(place.begin(), place.end(), l->indices.begin(), l->indices.end(),
                             [](const Expr& a, const Expr& b) { return equal(a, b); });
      });
    });
    return always && stores == 1;
  }

  /// Whether barriers may be needed between the statements or iterations of `loop`. Iterations of
  /// one statement that reads nothing it writes are free: each element is written once.
  static bool goes_inside(const For& loop) {
    if (has_parts(loop.body)) return true;
    if (is_thread_loop(loop) || !has_thread_loop(loop.body)) return false;
    if (loop.kind == ForKind::Bind || updates_in_place(loop)) return loop.kind == ForKind::Bind;
    const Touches used = Toucher::of(loop.body, {});
    return std::any_of(used.begin(), used.end(), [&](const Touch& x) {
      return x.write && std::any_of(used.begin(), used.end(), [&](const Touch& y) {
               return !y.write && x.buffer == y.buffer;
             });
    });
  }
};

}  // namespace

Result<Func> insert_syncs(const Func& kernel) {
  Func out = kernel;
  Touches pending;
  out.body = Inserter().run(kernel.body, pending, {});
  return out;
}

}  // namespace tilewright::lower
