#include <fmt/format.h>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// What a thread does between two barriers.
using Phase = std::vector<Stmt>;

bool has_sync(const Stmt& s) { return contains(s, is_sync); }

class Threads {
 public:
  explicit Threads(const GpuKernel& kernel) : kernel_(kernel), namer_(kernel.func) {}

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
    if (s.as<Alloc>()) {
      if (allocated_.insert(s.as<Alloc>()->buffer).second) allocs_.push_back(s);
      return {{}};
    }
    if (const auto* list = s.as<Seq>()) {
      std::vector<Phase> out = {{}};
      for (const Stmt& child : list->stmts) append(out, phases_of(child));
      return out;
    }
    if (!has_sync(s)) return {{s}};
    if (const auto* branch = s.as<If>(); branch && !branch->else_body) {
      std::vector<Phase> out = phases_of(branch->then_body);
      for (Phase& phase : out)
        for (Stmt& part : phase) part = make(If{branch->condition, part, {}});
      return out;
    }
    const auto* loop = s.as<For>();
    if (loop && loop->kind == ForKind::Bind) {  // every thread reaches the barrier at its own place
      std::vector<Phase> out = phases_of(loop->body);
      for (Phase& phase : out)
        for (Stmt& part : phase) {
          For around = *loop;
          around.body = part;
          part = make(std::move(around));
        }
      return out;
    }
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

  /// One loop over all threads, in which each does its part of every statement.
  Stmt threads_of(const Phase& phase) {
    static const std::string kAxes[] = {"thread.z", "thread.y", "thread.x"};
    std::map<std::string, Var> vars;
    for (const std::string& axis : kAxes) vars.emplace(axis, Var(namer_.fresh(axis, "")));
    std::vector<Stmt> parts;
    for (const Stmt& s : phase) parts.push_back(part_of(s, vars, {}));
    Stmt out = seq(std::move(parts));
    for (int i = 2; i >= 0; --i)
      out = make(
          For{vars.at(kAxes[i]), int_imm(kernel_.block[2 - i]), ForKind::Bind, kAxes[i], {}, out});
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
    if (!s.as<Store>()) return s;
    Stmt out = s;
    for (const auto& [axis, var] : vars)
      if (!bound.contains(axis)) out = make(If{ref(var) < 1, out, {}});
    return out;
  }

  const GpuKernel& kernel_;
  Namer namer_;
  std::vector<Stmt> allocs_;  // iterations of a loop use the same memory
  std::set<Buffer> allocated_;
  std::optional<Error> error_;
};

}  // namespace

Result<Func> as_threads(const GpuKernel& kernel) { return Threads(kernel).run(); }

}  // namespace tilewright::lower
