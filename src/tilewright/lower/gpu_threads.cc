// as_threads: a kernel as its threads run it, so that the interpreter can find races.
//
//   for x bind(thread.x) { S1 }  sync  for x bind(thread.x) { S2 }  for x bind(thread.x) { S3 }
//   =>
//   for x bind(thread.x) { S1 }  for x bind(thread.x) { S2  S3 }
//
// In the IR, siblings are ordered: S2 is done in all threads before S3 begins. On a device only
// barriers order threads. Here everything between two barriers becomes one phase, in which each
// thread does all of its work; the checking mode runs threads in random order and reports what
// depends on it. Loops around barriers are written out. Asynchronous copies happen where they stand
// or, with Copies::Late, as late as the waits allow; products that run on the other way round, so
// that both ends of either are tried against the other. Each thread waits for copies of the engine
// itself: behind such a wait a new phase begins.
#include <fmt/format.h>

#include <deque>
#include <functional>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_fragments.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/gpu_products.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// What a thread does between two barriers.
using Phase = std::vector<Stmt>;

bool has_sync(const Stmt& s) {
  return contains(s, [](const Stmt& x) {
    const auto* call = x.as<Call>();
    return call != nullptr && is_sync_call(*call);
  });
}

class Threads {
 public:
  Threads(const GpuKernel& kernel, Copies copies)
      : kernel_(kernel), copies_(copies), namer_(kernel.func) {
    size_t plain = 0;
    walk(kernel.func.body, [&](const Stmt& s) {
      if (const auto* alloc = s.as<Alloc>(); alloc && is_async(*alloc))
        ++(is_bulk(*alloc) ? bulk_ : plain);
    });
    if (plain > 0) bulk_ = 0;
  }

  Result<Func> run() {
    Func out = kernel_.func;
    out.body = block_level(kernel_.func.body);
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    out.body = arith::simplify(out.body, arith::Bounds(out));
    return out;
  }

 private:
  /// Loops over blocks stay; what is inside becomes phases.
  Stmt block_level(const Stmt& s) {
    if (const auto* loop = s.as<For>(); loop && is_block_loop(*loop)) {
      For out = *loop;
      out.body = block_level(loop->body);
      return make(std::move(out));
    }
    const std::vector<Phase> phases = phases_of(s);
    std::vector<Stmt> out = allocs_;
    for (const Phase& phase : phases) out.push_back(threads_of(phase));
    return seq(std::move(out));
  }

  std::vector<Phase> phases_of(const Stmt& s) {
    if (is_sync(s)) return {{}, {}};
    if (is_commit(s)) {
      groups_.push_back(std::exchange(started_, {}));
      return {{}};
    }
    if (const auto most = waits_for(s)) {
      std::vector<Phase> out = {arrived(static_cast<size_t>(*most))};
      if (bulk_ > 0) out.emplace_back();
      return out;
    }
    if (const auto most = waits_for_products(s)) return {finished(static_cast<size_t>(*most))};
    if (copies_ == Copies::Early && is_products(s)) {
      products_.push_back(s);
      return {{}};
    }
    if (const auto* alloc = s.as<Alloc>()) {
      if (allocated_.insert(alloc->buffer).second) allocs_.push_back(s);
      if (copies_ == Copies::Late && is_async(*alloc)) async_.insert(alloc->buffer);
      return {{}};
    }
    if (const auto* list = s.as<Seq>()) {
      std::vector<Phase> out = {{}};
      for (const Stmt& child : list->stmts) append(out, phases_of(child));
      return out;
    }
    if (!has_sync(s)) {
      if (!copies_only(s)) return {{s}};
      started_.push_back(s);
      return {{}};
    }
    if (const auto* branch = s.as<If>(); branch && !branch->else_body)
      return phases_around(branch->then_body,
                           [&](const Stmt& part) { return make(If{branch->condition, part, {}}); });
    const auto* loop = s.as<For>();
    if (loop && loop->kind == ForKind::Bind)  // every thread reaches the barrier at its own place
      return phases_around(loop->body, [&](const Stmt& part) {
        For around = *loop;
        around.body = part;
        return make(std::move(around));
      });
    const auto extent = loop ? as_int(loop->extent) : std::nullopt;
    if (!extent) {
      refuse("is in a branch with an else, or in a loop of no constant extent");
      return {{}};
    }
    std::vector<Phase> out = {{}};
    for (int64_t i = 0; i < *extent; ++i) {
      append(out, phases_of(substitute(loop->body, {{loop->var, int_imm(i)}})));
    }
    return out;
  }

  /// The phases of `body` with `around` every part.
  std::vector<Phase> phases_around(const Stmt& body,
                                   const std::function<Stmt(const Stmt&)>& around) {
    const size_t started = started_.size(), groups = groups_.size(), products = products_.size();
    std::vector<Phase> out = phases_of(body);
    if (groups_.size() != groups || products_.size() != products)
      refuse("is in a branch, where copies or products are waited for");
    for (Phase& phase : out)
      for (Stmt& part : phase) part = around(part);
    for (size_t i = started; i < started_.size(); ++i) started_[i] = around(started_[i]);
    return out;
  }

  /// The copies of all groups but the last `most`.
  Phase arrived(size_t most) {
    Phase out;
    for (; groups_.size() > most; groups_.pop_front())
      out.insert(out.end(), groups_.front().begin(), groups_.front().end());
    return out;
  }

  /// Of all runs of products but the last `most`.
  Phase finished(size_t most) {
    Phase out;
    for (; products_.size() > most; products_.pop_front()) out.push_back(products_.front());
    return out;
  }

  /// Whether `s` only fills buffers whose copies may come late.
  bool copies_only(const Stmt& s) const {
    bool any = false, other = false;
    walk(s, [&](const Stmt& x) {
      if (const auto* store = x.as<Store>()) (async_.contains(store->buffer) ? any : other) = true;
      other |= x.as<Call>() != nullptr;
    });
    return any && !other;
  }

  void refuse(const std::string& why) {
    if (!error_)
      error_ = Error{ErrorKind::Unsupported,
                     fmt::format("a barrier of '{}' {}", kernel_.func.name, why),
                     {},
                     {},
                     {},
                     {}};
  }

  static void append(std::vector<Phase>& to, const std::vector<Phase>& more) {
    to.back().insert(to.back().end(), more[0].begin(), more[0].end());
    to.insert(to.end(), more.begin() + 1, more.end());
  }

  /// One loop over all threads, in which each does its part of every statement. Where lanes of a
  /// warp do something together it is a loop over warps, in which they do one thing after the
  /// other.
  Stmt threads_of(const Phase& phase) {
    std::map<std::string, Var> vars;
    for (const char* axis : {"thread.z", "thread.y"})
      vars.emplace(axis, Var(namer_.fresh(axis, "")));
    const Stmt whole = seq(phase);
    Stmt out = warp_of(whole, vars, {});
    for (int i = 1; i >= 0; --i) {
      const std::string axis = i == 0 ? "thread.z" : "thread.y";
      out = make(For{vars.at(axis), int_imm(kernel_.block[2 - i]), ForKind::Bind, axis, {}, out});
    }
    return out;
  }

  /// `s` as one warp runs it.
  Stmt warp_of(const Stmt& s, const std::map<std::string, Var>& vars, std::set<std::string> bound) {
    if (!contains(s, is_warp_call)) return lanes_of(s, vars, bound);
    if (const auto* list = s.as<Seq>()) {
      std::vector<Stmt> parts, apart;  // what no call stands between, lanes do in any order
      const auto flush = [&] {
        if (!apart.empty()) parts.push_back(lanes_of(seq(std::exchange(apart, {})), vars, bound));
      };
      for (const Stmt& child : list->stmts) {
        if (child.as<Alloc>()) {
          parts.push_back(child);
        } else if (contains(child, is_warp_call)) {
          flush();
          parts.push_back(warp_of(child, vars, bound));
        } else {
          apart.push_back(child);
        }
      }
      flush();
      return seq(std::move(parts));
    }
    if (const auto* branch = s.as<If>()) {
      If out = *branch;
      out.then_body = warp_of(branch->then_body, vars, bound);
      if (branch->else_body) out.else_body = warp_of(branch->else_body, vars, bound);
      return make(std::move(out));
    }
    const auto* loop = s.as<For>();
    if (loop == nullptr) return at_first(s, vars, bound);
    if (!is_thread_loop(*loop)) {
      For out = *loop;
      out.body = warp_of(loop->body, vars, bound);
      return make(std::move(out));
    }
    if (!vars.contains(loop->axis)) {
      refuse(fmt::format("that all lanes pass together is inside loop '{}' over them",
                         loop->var.name()));
      return s;
    }
    const Expr here = ref(vars.at(loop->axis));
    bound.insert(loop->axis);
    const Stmt body = warp_of(substitute(loop->body, {{loop->var, here}}), vars, bound);
    return make(If{here < loop->extent, body, {}});
  }

  Stmt lanes_of(const Stmt& s, std::map<std::string, Var> vars,
                const std::set<std::string>& bound) {
    static const std::string kLanes = "thread.x";
    const Var lane(namer_.fresh(kLanes, ""));
    vars.emplace(kLanes, lane);
    return make(
        For{lane, int_imm(kernel_.block[0]), ForKind::Bind, kLanes, {}, part_of(s, vars, bound)});
  }

  /// `s` where only position 0 of the axes outside of whose loops it is does anything.
  static Stmt at_first(const Stmt& s, const std::map<std::string, Var>& vars,
                       const std::set<std::string>& bound) {
    Stmt out = s;
    for (const auto& [axis, var] : vars)
      if (!bound.contains(axis)) out = make(If{ref(var) < 1, out, {}});
    return out;
  }

  /// `s` as one thread runs it: loops over threads become its own position, outside of such a loop
  /// only position 0 of the axis does anything.
  Stmt part_of(const Stmt& s, const std::map<std::string, Var>& vars, std::set<std::string> bound) {
    if (const auto* loop = s.as<For>()) {
      if (is_thread_loop(*loop)) {
        const Expr here = ref(vars.at(loop->axis));
        bound.insert(loop->axis);
        const Stmt body = part_of(substitute(loop->body, {{loop->var, here}}), vars, bound);
        return make(If{here < loop->extent, body, {}});
      }
      For out = *loop;
      out.body = part_of(loop->body, vars, bound);
      return make(std::move(out));
    }
    if (const auto* branch = s.as<If>()) {
      If out = *branch;
      out.then_body = part_of(branch->then_body, vars, bound);
      if (branch->else_body) out.else_body = part_of(branch->else_body, vars, bound);
      return make(std::move(out));
    }
    if (const auto* list = s.as<Seq>()) {
      std::vector<Stmt> parts;
      for (const Stmt& child : list->stmts) parts.push_back(part_of(child, vars, bound));
      return seq(std::move(parts));
    }
    return s.as<Store>() || is_thread_call(s) ? at_first(s, vars, bound) : s;
  }

  const GpuKernel& kernel_;
  Copies copies_;
  Namer namer_;
  std::vector<Stmt> allocs_;  // iterations of a loop use the same memory
  std::set<Buffer> allocated_;
  std::set<Buffer> async_;                ///< whose copies come late
  std::vector<Stmt> started_;             ///< copies since the last commit
  std::deque<std::vector<Stmt>> groups_;  ///< of copies under way, the oldest first
  std::deque<Stmt> products_;             ///< runs of them under way, the oldest first
  size_t bulk_ = 0;                       ///< buffers of the engine; 0 where threads copy too
  std::optional<Error> error_;
};

}  // namespace

Result<Func> as_threads(const GpuKernel& kernel, Copies copies) {
  return Threads(kernel, copies).run();
}

}  // namespace tilewright::lower
