// The step Pipeline: copies of a loop run some iterations ahead of their uses.
//
//   for t in 8 { alloc P: f32[4]  copy t into P  use P }         (depth = 2)
//   =>
//   alloc P: f32[2*4]
//   copy 0 into slot 0
//   for t in 8 { if t < 7 { copy t + 1 into slot (t + 1) % 2 }  use slot t % 2 }
//
// The body of the loop is divided into copies and other statements. For each buffer that a copy
// fills, the axis that moves with the loop is found; it becomes a ring buffer of `depth` windows,
// and indices along it are taken modulo its size. Then the first depth - 1 iterations of the copies
// are put in front of the loop, and those inside it copy for the iteration depth - 1 later.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/loops.h"

namespace tilewright::schedule {
namespace {

constexpr int64_t kMostCopies = 64;

/// A buffer that becomes a ring: the axis that moves with the loop, and by how much.
struct Ring {
  Buffer from, to;
  size_t axis = 0;
  int64_t size = 0;  ///< of the axis: `depth` steps
};
using Rings = std::map<Buffer, Ring>;

std::set<Buffer> used_in(const Stmt& s, bool written) {
  std::set<Buffer> out;
  walk(
      s,
      [&](const Stmt& x) {
        if (const auto* store = x.as<Store>()) {
          if (written || store->combine != Combine::Set) out.insert(store->buffer);
        }
        const auto* call = x.as<Call>();
        size_t param = 0;
        for (const auto& arg : call ? call->args : decltype(Call::args)())
          if (const auto* region = std::get_if<Region>(&arg)) {
            const ParamMode mode = call->callee->params[param++].mode;
            const bool writes = mode == ParamMode::Out || mode == ParamMode::InOut;
            if (written ? writes : mode != ParamMode::Out) out.insert(region->buffer);
          }
      },
      [&](const Expr& e) {
        if (const Load* l = e.as<Load>(); l && !written) out.insert(l->buffer);
      });
  return out;
}

std::vector<Expr> wrapped(const std::vector<Expr>& indices, const Ring& ring) {
  std::vector<Expr> out = indices;
  out[ring.axis] = out[ring.axis] % ring.size;
  return out;
}

/// `s` with the rings in place of their buffers.
Stmt with_rings(const Stmt& s, const Rings& rings) {
  const auto find = [&](const Buffer& b) {
    const auto it = rings.find(b);
    return it == rings.end() ? nullptr : &it->second;
  };
  return rewrite(
      s,
      [&](const Stmt& x) {
        if (const auto* store = x.as<Store>())
          if (const Ring* ring = find(store->buffer))
            return make(
                Store{ring->to, wrapped(store->indices, *ring), store->value, store->combine});
        const auto* call = x.as<Call>();
        if (call == nullptr) return x;
        Call out = *call;
        for (auto& arg : out.args)
          if (auto* region = std::get_if<Region>(&arg))
            if (const Ring* ring = find(region->buffer)) {
              region->buffer = ring->to;
              Expr& begin = region->dims[ring->axis].first;
              begin = begin % ring->size;
            }
        return make(std::move(out));
      },
      [&](const Expr& e) {
        return rewrite(e, [&](const Expr& x) {
          const Load* l = x.as<Load>();
          const Ring* ring = l ? find(l->buffer) : nullptr;
          return ring ? load(ring->to, wrapped(l->indices, *ring)) : x;
        });
      });
}

class Pipeliner {
 public:
  Pipeliner(const Pipeline& step, const Func& func) : step_(step), tree_(func) {}

  Result<Func> run() {
    loop_id_ = TW_TRY(tree_.find_loop(step_.loop));
    TW_TRY_STATUS(check_loop());
    TW_TRY_STATUS(divide_body());
    TW_TRY_STATUS(check_buffers());
    for (Id alloc : allocs_) TW_TRY_STATUS(make_ring(tree_.as<Alloc>(alloc)->buffer));
    Edit edit(tree_);
    edit.replace(loop_id_, build());
    return edit.func();
  }

 private:
  const For& loop() const { return tree_.loop(loop_id_); }

  Status check_loop() {
    if (loop().kind != ForKind::Serial)
      return refuse(1, fmt::format("loop {} is {}", step_.loop, name(loop().kind)));
    const auto extent = as_int(loop().extent);
    if (!extent || step_.depth < 2 || step_.depth > kMostCopies || *extent < step_.depth)
      return refuse(1, fmt::format("the depth is {}, loop {} has {} iterations", step_.depth,
                                   step_.loop, extent ? fmt::format("{}", *extent) : "n"));
    extent_ = *extent;
    return {};
  }

  /// The statements of the body: copies, allocations of what they write, all others.
  Status divide_body() {
    std::set<Id> copies;
    for (const Name& copy : step_.copies) {
      const Id block = TW_TRY(tree_.find_block(copy));
      if (block == loop_id_ || !tree_.inside(block, loop_id_))
        return refuse(2, fmt::format("block {} is not in loop {}", copy, step_.loop));
      for (Id child : tree_.body_of(loop_id_))
        if (tree_.inside(block, child)) copies.insert(child);
    }
    for (Id child : tree_.body_of(loop_id_)) {
      if (copies.contains(child)) {
        copies_.push_back(child);
        for (const Buffer& b : used_in(tree_.stmt(child), true)) filled_.insert(b);
      } else {
        others_.push_back(child);
      }
    }
    std::erase_if(others_, [&](Id child) {
      const auto* alloc = tree_.as<Alloc>(child);
      if (alloc == nullptr || !filled_.contains(alloc->buffer)) return false;
      allocs_.push_back(child);
      return true;
    });
    if (copies_.empty() || std::all_of(others_.begin(), others_.end(),
                                       [&](Id child) { return tree_.as<Alloc>(child) != nullptr; }))
      return refuse(2, "the body has no copies, or nothing else");
    return {};
  }

  Status check_buffers() {
    std::set<Buffer> inner;  // allocated inside of a copy: its own affair
    for (Id copy : copies_)
      for (Id n = copy; n < tree_.end(copy); ++n)
        if (const auto* alloc = tree_.as<Alloc>(n)) inner.insert(alloc->buffer);
    std::erase_if(filled_, [&](const Buffer& b) { return inner.contains(b); });
    for (const Buffer& b : filled_)
      if (std::none_of(allocs_.begin(), allocs_.end(),
                       [&](Id id) { return tree_.as<Alloc>(id)->buffer == b; }))
        return refuse(
            3, fmt::format("{} is not allocated in the body of loop {}", b.name(), step_.loop));
    std::set<Buffer> elsewhere;
    for (Id other : others_)
      for (const Buffer& b : used_in(tree_.stmt(other), true)) {
        elsewhere.insert(b);
        if (filled_.contains(b))
          return refuse(3, fmt::format("{} is written by other statements too", b.name()));
      }
    for (Id copy : copies_)
      for (const Buffer& b : used_in(tree_.stmt(copy), false))
        if (elsewhere.contains(b))
          return refuse(
              4, fmt::format("the copies read {}, which loop {} writes", b.name(), step_.loop));
    return {};
  }

  /// Finds the window of `buffer` that an iteration uses, and gives it its ring.
  Status make_ring(const Buffer& buffer) {
    std::optional<arith::Box> window;  // of what is read: what is written is checked below
    const arith::Bounds outer = tree_.bounds_at(loop_id_);
    arith::Bounds bounds = outer;
    bounds.bind(loop().var, loop().extent);
    for (Id id : tree_.blocks_in(loop_id_)) {
      const std::vector<Var> vars = vars_of(tree_, loops_below(tree_, id, loop_id_));
      arith::Bounds inside = tree_.bounds_at(id);
      if (tree_.block(id).guard) inside.assume(tree_.block(id).guard);
      for (const Access& a : accesses(tree_.block(id))) {
        if (a.buffer != buffer || (a.write && !a.update)) continue;
        const arith::Box box = box_of(a, vars, inside);
        window = window ? arith::hull(*window, box, bounds) : box;
      }
    }
    if (!window) return refuse(5, fmt::format("{} is not read", buffer.name()));
    const Ring ring = TW_TRY(ring_of(buffer, *window, bounds));
    TW_TRY_STATUS(check_writes(ring, window->dims[ring.axis].begin));
    TW_TRY_STATUS(check_regions(ring));
    rings_.emplace(buffer, ring);
    return {};
  }

  Result<Ring> ring_of(const Buffer& buffer, const arith::Box& window,
                       const arith::Bounds& bounds) const {
    Ring ring{buffer, buffer, 0, 0};
    const Var& var = loop().var;
    for (size_t axis = 0; axis < window.dims.size(); ++axis) {
      const Expr begin = arith::simplify(window.dims[axis].begin, bounds);
      const Expr size = arith::simplify(window.dims[axis].size, bounds);
      if (!uses(begin, var) && !uses(size, var)) continue;
      const arith::Affine sum = arith::as_affine(begin);
      const int64_t step = sum.coefficient(var);
      const bool plain = std::none_of(sum.terms.begin(), sum.terms.end(), [&](const auto& term) {
        return !term.first.template as<VarRef>() && uses(term.first, var);
      });
      const auto width = as_int(size);
      if (!plain || !width || step < *width || ring.size != 0 ||
          step > kLargestExtent / step_.depth)
        return refuse(5, fmt::format("axis {} of {} does not move with loop {} window by window",
                                     axis, buffer.name(), step_.loop));
      ring.axis = axis;
      ring.size = step * step_.depth;
    }
    if (ring.size == 0)
      return refuse(5, fmt::format("{} does not move with loop {}", buffer.name(), step_.loop));
    std::vector<Expr> shape = buffer.shape();
    shape[ring.axis] = int_imm(ring.size);
    ring.to = Buffer(buffer.name(), buffer.dtype(), std::move(shape), buffer.scope());
    return ring;
  }

  /// What is written lies within a step of the ring, which begins where reads do.
  Status check_writes(const Ring& ring, const Expr& begin) const {
    const int64_t step = ring.size / step_.depth;
    for (Id copy : copies_)
      for (Id id : tree_.blocks_in(copy)) {
        arith::Bounds inside = tree_.bounds_at(id);
        if (tree_.block(id).guard) inside.assume(tree_.block(id).guard);
        for (const Access& a : accesses(tree_.block(id))) {
          if (a.buffer != ring.from || !a.write) continue;
          for (const auto& [var, extent] : a.inner) inside.bind(var, extent);
          const Expr at = arith::simplify(a.indices[ring.axis] - begin, inside);
          if (!arith::prove(at >= 0, inside) || !arith::prove(at < step, inside))
            return refuse(5, fmt::format("block {} may write more of {} than a window of {}",
                                         tree_.block(id).name, ring.from.name(), step));
        }
      }
    return {};
  }

  /// Regions of intrinsics lie within a step of the ring, and conditions read none.
  Status check_regions(const Ring& ring) const {
    const int64_t step = ring.size / step_.depth;
    for (Id id = loop_id_; id < tree_.end(loop_id_); ++id) {
      if (const If* branch = tree_.as<If>(id)) {
        bool read = false;
        walk(branch->condition, [&](const Expr& e) {
          const Load* l = e.as<Load>();
          read |= l != nullptr && l->buffer == ring.from;
        });
        if (read) return refuse(5, fmt::format("a condition reads {}", ring.from.name()));
      }
      if (tree_.as<Call>(id) && used_in(tree_.stmt(id), false).contains(ring.from))
        return refuse(5, fmt::format("a call outside of a block uses {}", ring.from.name()));
      const Block* block = tree_.as<Block>(id);
      const Call* call = block ? block->body.as<Call>() : nullptr;
      if (call == nullptr) continue;
      arith::Bounds bounds = tree_.bounds_at(id);
      if (block->guard) bounds.assume(block->guard);
      VarMap bindings;
      for (const Iter& iter : block->iters) bindings[iter.var] = iter.binding;
      for (const auto& arg : call->args) {
        const auto* region = std::get_if<Region>(&arg);
        if (region == nullptr || region->buffer != ring.from) continue;
        const auto& [begin, size] = region->dims[ring.axis];
        const Expr last = arith::simplify(substitute(begin, bindings), bounds) % step +
                          substitute(size, bindings);
        if (!arith::prove(last <= step, bounds))
          return refuse(5, fmt::format("a region of {} in block {} may cross the end of a window",
                                       ring.from.name(), block->name));
      }
    }
    return {};
  }

  /// `@pre`, or with the first number with which all names in `s` are new.
  std::string free_suffix(const Stmt& s) const {
    const NamePool names(tree_);
    for (int i = 0;; ++i) {
      const std::string suffix = i == 0 ? "@pre" : fmt::format("@pre{}", i);
      bool taken = false;
      walk(s, [&](const Stmt& x) {
        if (const auto* f = x.as<For>()) taken |= names.has_loop(f->var.name() + suffix);
        if (const auto* b = x.as<Block>()) taken |= names.has_block(b->name + suffix);
        if (const auto* a = x.as<Alloc>()) taken |= names.has_buffer(a->buffer.name() + suffix);
      });
      if (!taken) return suffix;
    }
  }

  Stmt build() const {
    const int64_t ahead = step_.depth - 1;
    std::vector<Stmt> out, copies, body;
    for (Id alloc : allocs_) {
      const Alloc& a = *tree_.as<Alloc>(alloc);
      out.push_back(make(Alloc{rings_.at(a.buffer).to, a.marks}));
    }
    for (Id copy : copies_) copies.push_back(with_rings(tree_.stmt(copy), rings_));
    const Marks marks = {{MarkKind::Pipeline, step_.depth}};
    const Stmt prologue =
        make(For{loop().var, int_imm(ahead), ForKind::Serial, "", marks, seq(copies)});
    const std::string suffix = free_suffix(prologue);
    out.push_back(clone(prologue, [&](const std::string& text) { return text + suffix; }));
    arith::Bounds bounds = tree_.bounds_at(loop_id_);
    bounds.bind(loop().var, loop().extent);
    const Expr more = ref(loop().var) < extent_ - ahead;
    arith::Bounds there = bounds;
    there.assume(more);
    body.push_back(
        make(If{more,
                replace_loop_var(seq(copies), loop().var, ref(loop().var) + ahead, Expr(), there),
                {}}));
    for (Id other : others_) body.push_back(with_rings(tree_.stmt(other), rings_));
    For main = loop();
    std::erase_if(main.marks, [](const Mark& m) { return m.kind == MarkKind::Pipeline; });
    main.marks.push_back({MarkKind::Pipeline, step_.depth});
    main.body = seq(std::move(body));
    out.push_back(make(std::move(main)));
    return seq(std::move(out));
  }

  const Pipeline& step_;
  const Tree tree_;
  Id loop_id_ = kNone;
  int64_t extent_ = 0;
  std::vector<Id> copies_, others_, allocs_;
  std::set<Buffer> filled_;
  Rings rings_;
};

}  // namespace

Result<Func> run(const Pipeline& step, const Func& func) { return Pipeliner(step, func).run(); }

}  // namespace tilewright::schedule
