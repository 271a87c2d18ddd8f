// Sums with many terms and few results: the threads of a block share one result's terms.
//
//   y[i] = sum over 4096 k of x[i, k]  =>  block i: 128 threads with 32 terms each, then the sum of
//                                          their 128 partial sums
//
// Where the threads are whole warps, lanes add up their sums together (warp_reduce.h). Where the
// results lie side by side in memory, up to 32 threads are side by side along them instead, and
// partial sums (step rfactor) meet in shared memory.
#include <algorithm>

#include "tilewright/rules/gpu/byte_dot.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/warp_reduce.h"

namespace tilewright::rules {
namespace {

/// Threads of a block, and how many of them lie side by side along the result where that is how
/// memory is read.
constexpr int64_t kThreads = 128, kSide = 32;
/// Fewer terms are not worth a barrier.
constexpr int64_t kFewTerms = 8;

/// The load of most iterations, which decides how memory is read best.
const Load* widest_load(const BlockFacts& block) {
  const Load* widest = nullptr;
  int64_t most = 0;
  for (const Load& load : block.loads) {
    int64_t count = 1;
    for (const Iter& iter : block.block->iters)
      if (mentions(load, iter.var)) count *= std::max<int64_t>(block.extent_of(iter.var), 1);
    if (count > most) most = count, widest = &load;
  }
  return widest;
}

class BlockReducer {
 public:
  BlockReducer(Draft& draft, std::string name, const GpuReduction& plan,
               const hw::GpuTarget& target)
      : draft_(draft), name_(std::move(name)), plan_(plan), target_(target) {}

  bool run() {
    if (plan_.side == 1 && plan_.threads % kRowLanes == 0) return warps_share_terms();
    return partial_sums() && split_results() && place() && share_out(name_ + ".rf.init", true) &&
           share_out(name_ + ".rf", true) && share_out(name_ + ".init", false) &&
           share_out_readers() && share_out(name_, false) && bind_blocks(draft_, blocks_);
  }

 private:
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }

  /// Lanes of warps have the terms of one result.
  bool warps_share_terms() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* sum = find_block(blocks, name_);
    schedule::Names order, reduces;
    for (const Iter& iter : sum->block->iters) {
      const std::string loop = sum->loop_of(iter.var);
      if (loop.empty()) return false;
      (iter.kind == IterKind::Space ? order : reduces).push_back(loop);
    }
    for (const BlockFacts* reader : readers(blocks, sum->store->buffer))
      readers_.push_back(reader->name);
    blocks_ = order;
    order.insert(order.end(), reduces.begin(), reduces.end());
    if (blocks_.empty() || !attempt(schedule::Reorder{order}) ||
        !attempt(schedule::ComputeAt{name_ + ".init", blocks_.back()}))
      return false;
    for (const std::string& reader : readers_)
      if (!attempt(schedule::ReverseComputeAt{reader, blocks_.back()})) return false;
    const WarpRows share{blocks_.back(), 1, plan_.threads / kRowLanes};
    return reduce_rows_of_block(draft_, name_, share, target_) && bind_blocks(draft_, blocks_);
  }

  /// One sum per thread of a result.
  bool partial_sums() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* sum = find_block(blocks, name_);
    schedule::Names order, reduces;
    for (const Iter& iter : sum->block->iters) {
      const std::string loop = sum->loop_of(iter.var);
      if (loop.empty()) return false;
      (iter.kind == IterKind::Space ? order : reduces).push_back(loop);
    }
    result_ = sum->store->buffer.name();
    for (const BlockFacts* reader : readers(blocks, sum->store->buffer))
      readers_.push_back(reader->name);
    order.insert(order.end(), reduces.begin(), reduces.end());
    if (order.size() > 1 && !attempt(schedule::Reorder{order})) return false;
    std::string part = plan_.loop;
    if (plan_.threads < plan_.extent) {
      if (!attempt(schedule::Split{plan_.loop, plan_.threads})) return false;
      part += ".i";
    }
    return attempt(schedule::RFactor{part});
  }

  /// Blocks, and threads side by side, share out the results.
  bool split_results() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* total = find_block(blocks, name_);
    std::string part, last;
    for (const Iter& iter : total->block->iters)
      (iter.kind == IterKind::Space ? last : part) = total->loop_of(iter.var);
    blocks_ = draft_.nest_of(name_).names;
    std::erase(blocks_, part);
    if (plan_.side > 1) {
      if (!attempt(schedule::Split{last, plan_.side})) return false;
      std::replace(blocks_.begin(), blocks_.end(), last, last + ".o");
    }
    return !blocks_.empty();
  }

  /// Everything about a result happens in its block.
  bool place() {
    const std::string& inside = blocks_.back();
    if (!attempt(schedule::ComputeAt{name_ + ".rf", inside}) ||
        !attempt(schedule::ComputeAt{name_ + ".init", inside}) ||
        !attempt(schedule::SetScope{name_ + ".rf", "shared"}))
      return false;
    for (const std::string& reader : readers_)
      if (attempt(schedule::ReverseComputeAt{reader, inside})) inside_.push_back(reader);
    return inside_.size() < readers_.size() || attempt(schedule::SetScope{result_, "local"});
  }

  bool share_out_readers() {
    for (const std::string& reader : inside_)
      if (!share_out(reader, false)) return false;
    return true;
  }

  /// Threads along the result (x), and along the terms of partial sums (y, or x if there are no
  /// others).
  bool share_out(const std::string& block, bool parts) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    std::vector<std::string> space;
    for (const Iter& iter : facts->block->iters)
      if (iter.kind == IterKind::Space) space.push_back(facts->loop_of(iter.var));
    if (parts && space.size() < 2) return false;
    schedule::Names threads;
    if (parts) threads.push_back(space.front());
    if (plan_.side > 1) threads.push_back(space.back());
    for (const std::string& loop : threads)
      if (loop.empty()) return false;
    if (threads.empty()) return true;
    const LoopNest nest = draft_.nest_inside(block, blocks_.back());
    schedule::Names order = threads;
    for (const std::string& loop : nest.names)
      if (std::find(threads.begin(), threads.end(), loop) == threads.end()) order.push_back(loop);
    if (order.size() > 1 && !attempt(schedule::Reorder{order})) return false;
    return bind_threads(draft_, threads);
  }

  Draft& draft_;
  std::string name_, result_;
  const GpuReduction& plan_;
  const hw::GpuTarget& target_;
  schedule::Names blocks_, readers_, inside_;
};

}  // namespace

std::optional<GpuReduction> choose_gpu_reduction(const BlockFacts& block,
                                                 const hw::GpuTarget& target) {
  const Answer<GpuReduction> plan = plan_gpu_reduction(block, target);
  return plan ? std::optional(*plan) : std::nullopt;
}

Answer<GpuReduction> plan_gpu_reduction(const BlockFacts& block, const hw::GpuTarget& target) {
  const Load* load = widest_load(block);
  const auto next_to_each_other = [&](const Iter& iter) {
    return load != nullptr && last_axis_stride(*load, iter.var, 1) == 1 &&
           block.extent_of(iter.var) > 1;
  };
  const auto words = word_terms(block, target);
  int64_t results = 1, terms = 1;
  const Iter *last = nullptr, *shared = nullptr;
  for (const Iter& iter : block.block->iters) {
    const int64_t extent = std::max<int64_t>(block.extent_of(iter.var), 1);
    (iter.kind == IterKind::Space ? results : terms) *= extent;
    if (iter.kind == IterKind::Space)
      last = &iter;
    else if (words && iter.var == words->iter)
      continue;
    else if (shared == nullptr || next_to_each_other(iter) ||
             (extent > block.extent_of(shared->var) && !next_to_each_other(*shared)))
      shared = &iter;
  }
  const int64_t room = target.units * target.unit_threads;  // threads that run at the same time
  const bool few = terms < 2 * kSide && (terms < kFewTerms || results >= kSide);
  if (last == nullptr || shared == nullptr)
    return decline("`{}` has no loop over its {}", block.name,
                   last == nullptr ? "results" : "terms");
  if (few) return decline("{} terms for {} results are too few to share", terms, results);
  if (results >= room)
    return decline("{} results keep all {} threads of the device busy", results, room);
  GpuReduction plan;
  plan.loop = block.loop_of(shared->var);
  plan.extent = block.extent_of(shared->var);
  if (next_to_each_other(*last)) plan.side = std::min(kSide, block.extent_of(last->var));
  plan.threads = std::min(std::min(kThreads, target.max_threads) / plan.side, plan.extent);
  if (plan.side == 1 && plan.threads > kRowLanes) plan.threads -= plan.threads % kRowLanes;
  if (plan.threads < 2 || plan.loop.empty())
    return decline("no loop over terms is long enough for several threads");
  return plan;
}

bool apply_gpu_reduction(Draft& draft, const std::string& name, const GpuReduction& plan,
                         const hw::GpuTarget& target) {
  return BlockReducer(draft, name, plan, target).run();
}

}  // namespace tilewright::rules
