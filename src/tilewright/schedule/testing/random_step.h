// For tests: random steps with a fair chance to apply to a given program.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/step.h"
#include "tilewright/schedule/testing/random_intrinsic.h"

namespace tilewright::schedule::testing {

/// Draws steps for one program. requires: the Func outlives it.
class RandomStep {
 public:
  RandomStep(Rng& rng, const Func& func, int serial)
      : rng_(rng), tree_(func), uses_(tree_), serial_(serial) {}

  Step draw() {
    const int64_t kind = rng_.below(kKinds);
    if (tree_.loops().empty() || tree_.blocks().empty()) return Unroll{"none"};
    if (rng_.chance(0.02)) return nonsense();
    switch (kind) {
      case 0:
      case 1:
        return Split{any_loop(), factor()};
      case 2:
        return fuse();
      case 3:
      case 4:
        return reorder();
      case 5:
        return cut();
      case 6:
      case 7:
      case 8:
        return compute_at();
      case 9:
      case 10:
        return reverse_compute_at();
      case 11:
        return Inline{block_name(any_block())};
      case 12:
        return cache_read();
      case 13:
        return cache_write();
      case 14:
        return reindex();
      case 15:
      case 16:
        return slide();
      case 17:
      case 18:
        return rfactor();
      case 19:
        return SetScope{any_buffer(),
                        word({"local", "shared", "vta.acc", "fpga.lutram", "global"})};
      case 20:
        return layout();
      case 21:
      case 22:
        return pad();
      case 23:
      case 24:
        return inplace();
      case 25:
        return order();
      case 26:
      case 29:
        return Parallel{any_loop()};
      case 27:
        return Vectorize{innermost_loop()};
      case 28:
        return Unroll{any_loop()};
      case 30:
      case 31:
        return tensorize();
      case 32:
        return Bind{any_loop(), word({"block.x", "block.y", "thread.x", "thread.y", "warp"})};
      case 33:
        return Spread{any_loop(), {"thread.y", "thread.x"}, {factor(), factor()}};
      case 34:
      case 35:
        return pipeline();
      case 36:
        return merge();
      case 37:
        return divide();
      case 38:
      case 39:
        return fpga_buffer();
      case 40:
        return dataflow();
      case 41:
      case 42:
        return partition();
      default:
        return mark();
    }
  }

 private:
  static constexpr int64_t kKinds = 44;

  template <class T>
  const T& one_of(const std::vector<T>& v) {
    return v[static_cast<size_t>(rng_.below(static_cast<int64_t>(v.size())))];
  }
  std::string word(std::vector<std::string> words) { return one_of(words); }
  int64_t factor() { return rng_.chance(0.05) ? rng_.below(100) : rng_.between(1, 4); }
  std::string fresh() { return fmt::format("N{}", serial_); }

  Id any_block() { return one_of(tree_.blocks()); }
  Id any_loop_id() { return one_of(tree_.loops()); }
  std::string any_loop() { return loop_name(any_loop_id()); }
  std::string loop_name(Id id) const { return tree_.loop(id).var.name(); }
  std::string block_name(Id id) const { return tree_.block(id).name; }
  std::string any_buffer() {
    std::vector<std::string> names;
    for (Id id = 0; id < tree_.size(); ++id)
      if (const Alloc* a = tree_.as<Alloc>(id)) names.push_back(a->buffer.name());
    if (names.empty() || rng_.chance(0.1))
      for (const Param& p : tree_.func().params) names.push_back(p.buffer.name());
    return one_of(names);
  }
  /// A loop around the block, or any.
  std::string loop_around(Id block) {
    const std::vector<Id> loops = tree_.loops_around(block);
    return loops.empty() || rng_.chance(0.05) ? any_loop() : loop_name(one_of(loops));
  }
  std::string innermost_loop() {
    const std::vector<Id> loops = tree_.loops_around(any_block());
    return loops.empty() ? any_loop() : loop_name(loops.back());
  }
  std::optional<Buffer> result_of(Id block) const {
    const Store* s = single_store(tree_.block(block));
    if (s == nullptr) return std::nullopt;
    return s->buffer;
  }

  Step merge() {
    const Id id = any_block();
    Merge step{block_name(id), {}};
    for (const Iter& iter : tree_.block(id).iters)
      if (rng_.chance(0.6)) step.iters.push_back(iter.var.name());
    return step;
  }
  Step divide() {
    const Id id = any_block();
    const std::vector<Iter>& iters = tree_.block(id).iters;
    return Divide{block_name(id), iters.empty() ? "none" : one_of(iters).var.name(), factor()};
  }
  Step fuse() {
    const Id outer = any_loop_id();
    if (tree_.as<For>(outer + 1)) return Fuse{loop_name(outer), loop_name(outer + 1)};
    return Fuse{loop_name(outer), any_loop()};
  }
  Step reorder() {
    std::vector<Id> nest{any_loop_id()};
    while (tree_.as<For>(nest.back() + 1)) nest.push_back(nest.back() + 1);
    for (size_t i = nest.size(); i > 1; --i)
      std::swap(nest[i - 1], nest[static_cast<size_t>(rng_.below(static_cast<int64_t>(i)))]);
    nest.resize(static_cast<size_t>(rng_.between(1, static_cast<int64_t>(nest.size()))));
    Reorder step;
    for (Id id : nest) step.loops.push_back(loop_name(id));
    if (rng_.chance(0.03)) step.loops.push_back(any_loop());
    return step;
  }
  Step cut() {
    const Id id = any_loop_id();
    const int64_t n = as_int(tree_.loop(id).extent).value_or(5);
    const int64_t a = rng_.between(1, std::max<int64_t>(n - 1, 1));
    if (rng_.chance(0.3)) return Cut{loop_name(id), {a, 0}};
    if (rng_.chance(0.2) && n - a > 1) return Cut{loop_name(id), {a, 1, n - a - 1}};
    return Cut{loop_name(id), {a, n - a}};
  }
  Step compute_at() {
    const Id block = any_block();
    const auto result = result_of(block);
    if (result) {
      const std::vector<Id> users = uses_.users(*result);
      return ComputeAt{block_name(block), loop_around(one_of(users))};
    }
    return ComputeAt{block_name(block), any_loop()};
  }
  Step reverse_compute_at() {
    const Id block = any_block();
    std::vector<Id> producers;
    for (const Buffer& b : sources(tree_.block(block)))
      for (Id w : uses_.writers(b)) producers.push_back(w);
    if (producers.empty()) return ReverseComputeAt{block_name(block), any_loop()};
    return ReverseComputeAt{block_name(block), loop_around(one_of(producers))};
  }
  std::string source_of(Id block) {
    const std::vector<Buffer> all = sources(tree_.block(block));
    return all.empty() || rng_.chance(0.02) ? any_buffer() : one_of(all).name();
  }
  Step cache_read() {
    const Id block = any_block();
    return CacheRead{block_name(block), source_of(block), fresh(),
                     rng_.chance(0.4) ? "" : loop_around(block)};
  }
  Step cache_write() {
    const Id block = any_block();
    return CacheWrite{block_name(block), fresh(), rng_.chance(0.4) ? "" : loop_around(block)};
  }
  Step fpga_buffer() {
    const Id block = any_block();
    const auto result = result_of(block);
    return FpgaBuffer{block_name(block),
                      result && rng_.chance(0.4) ? result->name() : source_of(block),
                      fresh(),
                      rng_.chance(0.2) ? "" : loop_around(block),
                      word({"bram", "uram", "lutram", "reg", rng_.chance(0.1) ? "dram" : "reg"}),
                      rng_.chance(0.05) ? 9 : rng_.between(1, 3)};
  }
  /// Mostly an outermost loop with a channel inside.
  Step dataflow() {
    std::vector<Id> outer;
    for (Id id = 0; id < tree_.size(); ++id) {
      const Alloc* a = tree_.as<Alloc>(id);
      if (a == nullptr || find_mark(a->marks, MarkKind::Slots) == nullptr) continue;
      const std::vector<Id> around = tree_.loops_around(id);
      if (!around.empty()) outer.push_back(around.front());
    }
    if (outer.empty() || rng_.chance(0.2)) return Dataflow{any_loop()};
    return Dataflow{loop_name(one_of(outer))};
  }
  Step partition() {
    std::vector<Buffer> on_chip;
    for (Id id = 0; id < tree_.size(); ++id)
      if (const Alloc* a = tree_.as<Alloc>(id); a && !fpga_memory(a->buffer.scope()).empty())
        on_chip.push_back(a->buffer);
    if (on_chip.empty()) return Partition{any_buffer(), "c2"};
    const Buffer& buffer = one_of(on_chip);
    std::vector<std::string> parts(buffer.rank());
    for (std::string& part : parts)
      part = rng_.chance(0.3) ? "f" : word({"b", "c"}) + fmt::to_string(rng_.between(1, 3));
    return Partition{buffer.name(),
                     rng_.chance(0.05) ? "f_f_f_d" : fmt::to_string(fmt::join(parts, "_"))};
  }
  Step reindex() {
    const Id id = any_block();
    const Block& block = tree_.block(id);
    const std::string buffer = source_of(id);
    Reindex step{block.name, buffer, fresh(), {}};
    for (const Iter& iter : block.iters) {
      bool used = rng_.chance(0.1);
      walk(block.body, {}, [&](const Expr& e) {
        const Load* l = e.as<Load>();
        if (l == nullptr || l->buffer.name() != buffer) return;
        for (const Expr& index : l->indices) used |= uses(index, iter.var);
      });
      if (used && !rng_.chance(0.02)) step.iters.push_back(iter.var.name());
    }
    if (rng_.chance(0.5)) std::reverse(step.iters.begin(), step.iters.end());
    return step;
  }
  std::string any_iter(Id block) {
    const Block& b = tree_.block(block);
    return b.iters.empty() ? "x" : one_of(b.iters).var.name();
  }
  /// Blocks whose buffer is allocated in the body of a loop, and the loop.
  std::vector<std::pair<Id, Id>> private_to_a_loop() {
    std::vector<std::pair<Id, Id>> candidates;
    for (Id block : tree_.blocks()) {
      const auto result = result_of(block);
      const Id alloc = result ? tree_.alloc_of(*result) : kNone;
      if (alloc == kNone || tree_.parent(alloc) == kNone) continue;
      const Id loop = tree_.parent(tree_.parent(alloc));
      if (loop != kNone && tree_.as<For>(loop)) candidates.emplace_back(block, loop);
    }
    return candidates;
  }
  Step slide() {
    const auto candidates = private_to_a_loop();
    if (candidates.empty()) {
      const Id block = any_block();
      return Slide{block_name(block), any_loop(), any_iter(block)};
    }
    const auto [block, loop] = one_of(candidates);
    return Slide{block_name(block), loop_name(loop), any_iter(block)};
  }
  /// Mostly all blocks that fill one buffer.
  Step pipeline() {
    const auto candidates = private_to_a_loop();
    if (candidates.empty()) return Pipeline{any_loop(), {block_name(any_block())}, factor()};
    const auto [block, loop] = one_of(candidates);
    Pipeline step{loop_name(loop), {}, rng_.between(2, 4)};
    for (Id writer : uses_.writers(*result_of(block)))
      if (!rng_.chance(0.05)) step.copies.push_back(block_name(writer));
    if (rng_.chance(0.2)) step.copies.push_back(block_name(one_of(candidates).first));
    return step;
  }
  Step rfactor() {
    std::vector<std::string> loops;
    for (Id block : tree_.blocks())
      for (const Iter& iter : tree_.block(block).iters)
        if (iter.kind == IterKind::Reduce)
          for (const Var& v : free_vars(iter.binding)) loops.push_back(v.name());
    return RFactor{loops.empty() ? any_loop() : one_of(loops)};
  }
  Step layout() {
    const std::string name = any_buffer();
    const auto buffer = tree_.find_buffer(name);
    std::vector<std::string> from, to;
    for (size_t d = 0; d < (*buffer).rank(); ++d) {
      const std::string axis = fmt::format("d{}", d);
      from.push_back(axis);
      const int64_t c = rng_.between(2, 4);
      if (rng_.chance(0.4)) {
        to.push_back(fmt::format("{} / {}", axis, c));
        to.push_back(fmt::format("{} % {}", axis, rng_.chance(0.05) ? c + 1 : c));
      } else {
        to.push_back(axis);
      }
    }
    if (to.size() > 1 && rng_.chance(0.6)) std::swap(to.front(), to.back());
    return Layout{name, fmt::format("[{}] -> [{}]", fmt::join(from, ", "), fmt::join(to, ", "))};
  }
  Step pad() {
    const Id block = any_block();
    return Pad{block_name(block), any_iter(block), rng_.between(2, 4)};
  }
  Step inplace() {
    const Id block = any_block();
    return Inplace{block_name(block), source_of(block)};
  }
  Step order() {
    Order step;
    for (int i = 0; i < (rng_.chance(0.3) ? 3 : 2); ++i)
      step.blocks.push_back(block_name(any_block()));
    return step;
  }
  /// Mostly an inner loop: what is around it stays.
  Step tensorize() {
    std::vector<Id> loops = tree_.loops_around(any_block());
    if (loops.empty()) return Tensorize{any_loop(), "func nothing() {"};
    const size_t inner =
        static_cast<size_t>(rng_.below(std::min<int64_t>(2, static_cast<int64_t>(loops.size()))));
    const Id id = rng_.chance(0.8) ? loops[loops.size() - 1 - inner] : one_of(loops);
    return Tensorize{loop_name(id), RandomIntrinsic(rng_, tree_, fresh()).text(id)};
  }
  Step mark() {
    switch (rng_.below(4)) {
      case 0:
        return SetMark{block_name(any_block()), "atomic", "1"};
      case 1:
        return SetMark{any_loop(), word({"pipeline", "ii", "prefetch"}), "2"};
      case 2:
        return SetMark{any_buffer(), word({"partition", "align", "pad"}), word({"4", "cyclic"})};
      default:
        return SetMark{block_name(any_block()), word({"async", "atomic", "nothing"}), "1"};
    }
  }
  /// Steps that name nothing or give absurd numbers: refused with a text, never a crash.
  Step nonsense() {
    switch (rng_.below(6)) {
      case 0:
        return Split{any_loop(), rng_.chance(0.5) ? 0 : -3};
      case 1:
        return Cut{any_loop(), {1, 2, 3, -4}};
      case 2:
        return ComputeAt{"nobody", any_loop()};
      case 3:
        return Layout{any_buffer(), word({"", "[a", "[a] -> [b]", "[a,b] -> [a / 0, b]"})};
      case 4:
        return Split{any_loop(), int64_t{1} << 62};
      default:
        return Pad{block_name(any_block()), "zz", 0};
    }
  }

  Rng& rng_;
  const Tree tree_;
  const Uses uses_;
  int serial_;
};

}  // namespace tilewright::schedule::testing
