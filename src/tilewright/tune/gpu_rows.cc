#include "tilewright/tune/gpu_rows.h"

#include <algorithm>
#include <set>

#include "tilewright/base/dtype.h"
#include "tilewright/tune/gpu_rule.h"
#include "tilewright/tune/row_rule.h"

namespace tilewright::tune {
namespace {

/// Threads of a block, and how many of them add up the sums of all others.
constexpr int64_t kMostThreads = 256, kLeastThreads = 32, kSecondThreads = 16;
/// Shared memory that a block takes at most, so that units hold several.
constexpr int64_t kMostShared = 32 << 10;

class RowScheduler {
 public:
  RowScheduler(Draft& draft, const hw::GpuTarget& target) : draft_(draft), target_(target) {}

  bool run(const std::string& name) {
    if (!plan(name)) return false;
    for (const std::string& producer : producers_)
      if (!attempt(schedule::ComputeAt{producer, row_})) return false;
    for (const std::string& producer : producers_)
      if (!finish(producer)) return false;
    return spread(last_) && bind_blocks(draft_, rows_);
  }

 private:
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }

  /// The loop over rows, from what `last` reads of them; an axis of one row counts.
  static std::string row_of(const BlockFacts& last, const std::vector<BlockFacts>& blocks) {
    for (const Load& load : last.loads)
      for (const BlockFacts& block : blocks) {
        if (block.store == nullptr || !(block.store->buffer == load.buffer) ||
            block.kind == BlockFacts::Kind::Init)
          continue;
        const std::string row = row_loop(last, load.buffer);
        if (!row.empty() && row != last.loops.back()) return row;
        const bool alone = std::all_of(load.indices.begin(), load.indices.end(),
                                       [](const Expr& index) { return as_int(index) == 0; });
        if (alone && last.loops.size() > 1 && last.extents[0] == 1) return last.loops[0];
      }
    return "";
  }

  /// What is computed row by row: `producers_`, the last one first, and `last_`.
  bool plan(const std::string& name) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* last = last_reader(draft_.func(), blocks, name);
    if (last == nullptr || last->kind != BlockFacts::Kind::Injective) return false;
    row_ = row_of(*last, blocks);
    if (row_.empty()) return false;
    last_ = last->name;
    const auto end = std::find(last->loops.begin(), last->loops.end(), row_) + 1;
    rows_.assign(last->loops.begin(), end);
    int64_t elements = 1;
    for (auto i = end - last->loops.begin(); i < std::ssize(last->loops); ++i)
      elements *= last->extents[static_cast<size_t>(i)];
    while (threads_ * 2 <= std::min({elements, kMostThreads, target_.max_threads})) threads_ *= 2;
    bool found = false;
    int64_t shared = 0;
    for (const BlockFacts& block : blocks) {
      if (block.name == last_) break;
      const bool reduces = block.kind == BlockFacts::Kind::Reduce;
      if ((!reduces && block.kind != BlockFacts::Kind::Injective) ||
          is_output(draft_.func(), block.store->buffer))
        continue;
      if (reduces && choose_gpu_tile(block, target_)) continue;
      producers_.insert(producers_.begin(), block.name);
      found |= block.name == name;
      shared += storage_bytes(block.store->buffer.dtype(), reduces ? 2 * threads_ : elements);
    }
    return found && threads_ >= kLeastThreads &&
           shared <= std::min(kMostShared, target_.shared_bytes);
  }

  /// Threads share out what `block` computes for a row.
  bool finish(const std::string& block) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    if (facts == nullptr) return false;
    const bool reduces = facts->kind == BlockFacts::Kind::Reduce;
    if (!attempt(schedule::SetScope{facts->store->buffer.name(), "shared"})) return false;
    if (!reduces) return spread(block);
    return partial_sums(block, threads_) && partial_sums(block, kSecondThreads);
  }

  /// Lets `threads` threads add up their shares of the terms first; fewer terms are left as they
  /// are.
  bool partial_sums(const std::string& block, int64_t threads) {
    const LoopNest nest = draft_.nest_inside(block, row_);
    if (nest.names.empty()) return false;
    const auto longest = std::max_element(nest.extents.begin(), nest.extents.end());
    if (*longest <= threads) return true;
    const std::string loop = nest.names[static_cast<size_t>(longest - nest.extents.begin())];
    std::set<std::string> known;
    for (const BlockFacts& b : draft_.blocks()) known.insert(b.name);
    schedule::Names order = {loop + ".i"};
    for (const std::string& name : nest.names) order.push_back(name == loop ? loop + ".o" : name);
    if (!attempt(schedule::Split{loop, threads}) || !attempt(schedule::Reorder{order}) ||
        !attempt(schedule::RFactor{loop + ".i"}))
      return false;
    schedule::Names fresh;
    std::string buffer;  // of the sums and their initial values
    for (const BlockFacts& b : draft_.blocks()) {
      if (known.contains(b.name)) continue;
      fresh.push_back(b.name);
      buffer = b.store->buffer.name();
    }
    for (const std::string& name : fresh) {
      const LoopNest own = draft_.nest_inside(name, row_);
      if (own.names.empty() || !attempt(schedule::Bind{own.names[0], "thread.x"})) return false;
    }
    return !fresh.empty() && attempt(schedule::SetScope{buffer, "shared"});
  }

  /// Neighbouring threads take neighbouring elements.
  bool spread(const std::string& block) {
    const std::vector<std::string> nest = draft_.nest_inside(block, row_).names;
    if (nest.empty()) return true;
    std::string all = nest[0];
    for (size_t i = 1; i < nest.size(); ++i) {
      if (!attempt(schedule::Fuse{all, nest[i]})) return false;
      all += "*" + nest[i];
    }
    return attempt(schedule::Spread{all, {"thread.x"}, {threads_}});
  }

  Draft& draft_;
  const hw::GpuTarget& target_;
  std::string last_, row_;
  schedule::Names rows_, producers_;
  int64_t threads_ = 1;
};

}  // namespace

bool apply_gpu_rows(Draft& draft, const std::string& name, const hw::GpuTarget& target) {
  return RowScheduler(draft, target).run(name);
}

}  // namespace tilewright::tune
