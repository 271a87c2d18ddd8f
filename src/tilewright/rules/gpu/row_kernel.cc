// One kernel for all that is computed row by row: in y = exp(x - max(x)) / sum(exp(x - max(x))) the
// maximum, the exponentials and their sum. The output's loop over rows is looked for; everything it
// needs moves into that loop, with its results in shared memory. Each of up to eight warps of a
// block takes a row of its own if there are rows enough for all units, else several warps share
// one.
#include "tilewright/rules/gpu/row_kernel.h"

#include <algorithm>

#include "tilewright/base/dtype.h"
#include "tilewright/rules/cpu/rows.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/warp_reduce.h"

namespace tilewright::rules {
namespace {

/// Warps of a block, and elements of a row that are worth several of them.
constexpr int64_t kMostWarps = 8, kShortRow = 64;
/// Shared memory that a block takes at most, so that units hold several.
constexpr int64_t kMostShared = 32 << 10;

class RowScheduler {
 public:
  RowScheduler(Draft& draft, const hw::GpuTarget& target) : draft_(draft), target_(target) {}

  Answer<Done> run(const std::string& name) {
    if (Answer<Done> planned = plan(name); !planned) return planned;
    if (!schedule()) return decline("a step that gives a row to a block of threads does not apply");
    return Done{};
  }

 private:
  bool schedule() {
    if (share_.rows > 1) {
      if (!attempt(schedule::Split{share_.loop, share_.rows})) return false;
      rows_.back() = share_.loop += ".o";
    }
    for (const std::string& producer : producers_)
      if (!attempt(schedule::ComputeAt{producer, share_.loop})) return false;
    for (const std::string& producer : producers_)
      if (!finish(producer)) return false;
    return spread_rows(draft_, last_, share_) && bind_blocks(draft_, rows_);
  }

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
  Answer<Done> plan(const std::string& name) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* last = last_reader(draft_.func(), blocks, name);
    if (last == nullptr) return decline("`{}` does not serve one output alone", name);
    if (last->kind != BlockFacts::Kind::Injective)
      return decline("the output is not written by an element-wise block");
    share_.loop = row_of(*last, blocks);
    if (share_.loop.empty())
      return decline("block `{}` does not read sums of whole rows in a loop over these rows",
                     last->name);
    last_ = last->name;
    const auto end = std::find(last->loops.begin(), last->loops.end(), share_.loop) + 1;
    rows_.assign(last->loops.begin(), end);
    int64_t elements = 1, all = 1;
    for (auto i = std::ptrdiff_t{0}; i < std::ssize(last->loops); ++i)
      (i < end - last->loops.begin() ? all : elements) *= last->extents[static_cast<size_t>(i)];
    bool found = false;
    int64_t row_bytes = 0;
    for (const BlockFacts& block : blocks) {
      if (block.name == last_) break;
      const bool reduces = block.kind == BlockFacts::Kind::Reduce;
      if ((!reduces && block.kind != BlockFacts::Kind::Injective) ||
          is_output(draft_.func(), block.store->buffer))
        continue;
      if (reduces && choose_gpu_tile(block, target_)) continue;
      producers_.insert(producers_.begin(), block.name);
      found |= block.name == name;
      row_bytes += storage_bytes(block.store->buffer.dtype(), reduces ? kRowLanes + 1 : elements);
    }
    const int64_t room = std::min(kMostShared, target_.shared_bytes);
    if (!found) return decline("`{}` is not computed for the rows of `{}`", name, last_);
    if (elements < kRowLanes)
      return decline("rows of {} elements are shorter than a warp of {}", elements, kRowLanes);
    if (row_bytes > room)
      return decline("a row needs {} bytes of shared memory, more than {}", row_bytes, room);
    share_out(all, last->extents[rows_.size() - 1], elements, room / row_bytes);
    return Done{};
  }

  /// A warp for each of several rows, as far as all units have blocks; else several for one.
  void share_out(int64_t all, int64_t rows, int64_t elements, int64_t fit) {
    const int64_t warps = std::min(kMostWarps, target_.max_threads / kRowLanes);
    for (int64_t n = std::min({warps, fit, rows, all / target_.units}); n > 1; --n)
      if (rows % n == 0 && share_.rows == 1) share_.rows = share_.warps = n;
    while (share_.rows == 1 && 2 * share_.warps <= std::min(warps, elements / kShortRow))
      share_.warps *= 2;
  }

  /// Threads share out what `block` computes for a row.
  bool finish(const std::string& block) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    if (facts == nullptr) return false;
    if (facts->kind == BlockFacts::Kind::Reduce)
      return reduce_rows_of_block(draft_, block, share_, target_);
    return attempt(schedule::SetScope{facts->store->buffer.name(), "shared"}) &&
           spread_rows(draft_, block, share_);
  }

  Draft& draft_;
  const hw::GpuTarget& target_;
  std::string last_;
  schedule::Names rows_, producers_;
  WarpRows share_;
};

}  // namespace

Answer<Done> apply_gpu_rows(Draft& draft, const std::string& name, const hw::GpuTarget& target) {
  return RowScheduler(draft, target).run(name);
}

}  // namespace tilewright::rules
