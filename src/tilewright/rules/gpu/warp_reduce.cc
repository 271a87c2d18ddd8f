#include "tilewright/rules/gpu/warp_reduce.h"

#include <algorithm>
#include <set>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/text.h"

namespace tilewright::rules {
namespace {

constexpr const char *kLane = "thread.x", *kWarp = "thread.y";
/// The iteration that tells shares of the terms apart (schedule::RFactor).
constexpr const char* kPart = "part";

/// Loops around a block inside rows.loop, those of one iteration aside.
struct RowLoops {
  std::string row;  ///< over the rows of a block, if there are several
  schedule::Names inner;
};

RowLoops loops_of(const Draft& draft, const std::string& block, const WarpRows& rows) {
  RowLoops found;
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* facts = find_block(blocks, block);
  const LoopNest nest = draft.nest_inside(block, rows.loop);
  const auto inside = [&](const std::string& loop) {
    return std::find(nest.names.begin(), nest.names.end(), loop) != nest.names.end();
  };
  for (const Iter& iter : facts->block->iters)
    if (rows.rows > 1 && found.row.empty() && iter.kind == IterKind::Space &&
        !iter.var.name().starts_with(kPart) && facts->extent_of(iter.var) == rows.rows &&
        inside(facts->loop_of(iter.var)))
      found.row = facts->loop_of(iter.var);
  for (size_t i = 0; i < nest.names.size(); ++i)
    if (nest.extents[i] != 1 && nest.names[i] != found.row) found.inner.push_back(nest.names[i]);
  return found;
}

/// Shares the loop over rows around `block` out to warps; `inner` are the loops inside it.
bool warps_take_rows(Draft& draft, const std::string& block, const WarpRows& rows,
                     schedule::Names* inner = nullptr) {
  RowLoops loops = loops_of(draft, block, rows);
  if (inner != nullptr) *inner = loops.inner;
  if (rows.rows == 1) return true;
  schedule::Names order = {loops.row};
  order.insert(order.end(), loops.inner.begin(), loops.inner.end());
  if (loops.row.empty() || (order.size() > 1 && !draft.attempt(schedule::Reorder{order})))
    return false;
  if (rows.warps > 1 && rows.rows > rows.warps) {
    if (!draft.attempt(schedule::Split{loops.row, rows.warps})) return false;
    loops.row += ".i";
  }
  return rows.warps == 1 || draft.attempt(schedule::Bind{loops.row, kWarp});
}

class RowReducer {
 public:
  RowReducer(Draft& draft, const WarpRows& rows, const hw::GpuTarget& target)
      : draft_(draft), rows_(rows), target_(target) {}

  bool run(const std::string& block) {
    const std::string result = find_block(draft_.blocks(), block)->store->buffer.name();
    return partial_sums(block) && warps_take_rows(draft_, block + ".init", rows_) &&
           attempt(schedule::SetScope{result, "shared"});
  }

 private:
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }

  /// Warps that share a row.
  int64_t shares() const { return rows_.rows > 1 ? 1 : rows_.warps; }

  /// Sums per lane, then per warp; what is left of `block` adds up those of warps.
  bool partial_sums(const std::string& block) {
    const std::string loop = longest_loop(block);
    if (loop.empty()) return false;
    const schedule::Names lanes = factor(block, loop, kRowLanes * shares());
    if (lanes.empty() || !share_out_lanes(lanes)) return false;
    std::string all = block;
    if (shares() > 1) {
      const std::string part = longest_loop(block);
      if (!attempt(schedule::Split{part, kRowLanes})) return false;
      const schedule::Names warps = factored(part + ".o");
      if (warps.empty()) return false;
      for (const std::string& name : warps) {
        const schedule::Names inner = loops_of(draft_, name, rows_).inner;
        if (inner.empty() || !attempt(schedule::Bind{inner[0], kWarp})) return false;
        if (!name.ends_with(".init")) all = name;
      }
      const std::string sums = find_block(draft_.blocks(), all)->store->buffer.name();
      if (!attempt(schedule::SetScope{sums, "shared"})) return false;
    } else if (!warps_take_rows(draft_, block, rows_)) {
      return false;
    }
    const std::string terms = find_block(draft_.blocks(), lanes[0])->store->buffer.name();
    return attempt(schedule::SetScope{terms, add_up(all) ? "warp" : "shared"});
  }

  std::string longest_loop(const std::string& block) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    std::string longest;
    int64_t most = 0;
    for (const Iter& iter : facts->block->iters)
      if (iter.kind == IterKind::Reduce && facts->extent_of(iter.var) > most)
        most = facts->extent_of(iter.var), longest = facts->loop_of(iter.var);
    return longest;
  }

  /// The sums of `parts` shares of the terms, as new blocks.
  schedule::Names factor(const std::string& block, const std::string& loop, int64_t parts) {
    const RowLoops loops = loops_of(draft_, block, rows_);
    schedule::Names order = {loop + ".i"};
    if (!loops.row.empty()) order.insert(order.begin(), loops.row);
    for (const std::string& name : loops.inner) order.push_back(name == loop ? loop + ".o" : name);
    if (!attempt(schedule::Split{loop, parts}) || !attempt(schedule::Reorder{order})) return {};
    return factored(loop + ".i");
  }

  schedule::Names factored(const std::string& loop) {
    std::set<std::string> known;
    for (const BlockFacts& b : draft_.blocks()) known.insert(b.name);
    schedule::Names fresh;
    if (!attempt(schedule::RFactor{loop})) return fresh;
    for (const BlockFacts& b : draft_.blocks())
      if (!known.contains(b.name)) fresh.push_back(b.name);
    return fresh;
  }

  /// The loops over shares become lanes, those of several warps for one row.
  bool share_out_lanes(const schedule::Names& blocks) {
    for (const std::string& name : blocks) {
      schedule::Names inner;
      if (!warps_take_rows(draft_, name, rows_, &inner) || inner.empty()) return false;
      std::string lane = inner[0];
      if (shares() > 1) {
        if (!attempt(schedule::Split{lane, kRowLanes}) ||
            !attempt(schedule::Bind{lane + ".o", kWarp}))
          return false;
        lane += ".i";
      }
      if (!attempt(schedule::Bind{lane, kLane})) return false;
    }
    return true;
  }

  /// Makes an instruction of the loop over lanes of `block`.
  bool add_up(const std::string& block) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    const bool sum = facts->store->combine == Combine::Add;
    const std::string type(name(facts->store->buffer.dtype()));
    const hw::Intrinsic* in = hw::find_gpu_intrinsic((sum ? "cuda.sum_" : "cuda.max_") + type);
    const std::string loop = longest_loop(block);
    return in != nullptr && hw::has_intrinsic(target_, *in) &&
           attempt(schedule::Tensorize{loop, print(in->meaning)});
  }

  Draft& draft_;
  const WarpRows& rows_;
  const hw::GpuTarget& target_;
};

}  // namespace

bool spread_rows(Draft& draft, const std::string& block, const WarpRows& rows) {
  schedule::Names inner;
  if (!warps_take_rows(draft, block, rows, &inner)) return false;
  if (inner.empty()) return true;
  std::string all = inner[0];
  for (size_t i = 1; i < inner.size(); ++i) {
    if (!draft.attempt(schedule::Fuse{all, inner[i]})) return false;
    all += "*" + inner[i];
  }
  schedule::Spread spread{all, {kLane}, {kRowLanes}};
  if (rows.rows == 1 && rows.warps > 1)
    spread.axes = {kWarp, kLane}, spread.extents = {rows.warps, kRowLanes};
  return draft.attempt(std::move(spread));
}

bool reduce_rows_of_block(Draft& draft, const std::string& block, const WarpRows& rows,
                          const hw::GpuTarget& target) {
  return RowReducer(draft, rows, target).run(block);
}

}  // namespace tilewright::rules
