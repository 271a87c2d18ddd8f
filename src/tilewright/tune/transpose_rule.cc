#include "tilewright/tune/transpose_rule.h"

#include <algorithm>

namespace tilewright::tune {
namespace {

/// The loop that steps along the last axis of `load` by one; empty if there is none.
std::string unit_loop(const BlockFacts& block, const Load& load) {
  for (const Iter& iter : block.block->iters)
    if (last_axis_stride(load, iter.var, 1) == int64_t{1} && as_int(iter.extent) != int64_t{1})
      return block.loop_of(iter.var);
  return "";
}

}  // namespace

bool tile_transpose(Draft& draft, const std::string& name, const hw::CpuTarget& target) {
  const Draft::Mark before = draft.mark();  // keeps the facts below alive
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr || block->loads.size() != 1 || block->loops.size() < 2) return false;
  const std::string written = block->loops.back();
  const std::string read = unit_loop(*block, block->loads[0]);
  if (read.empty() || read == written) return false;
  // A tile is one vector of results for each element of a cache line of the source.
  const int64_t edge =
      std::max(8, target.lanes(std::min(32, bit_width(block->store->buffer.dtype()))));
  const LoopNest nest = draft.nest_of(name);
  std::vector<std::string> order;
  std::string rows = read, lanes = written;
  for (size_t i = 0; i < nest.names.size(); ++i) {
    const std::string& loop = nest.names[i];
    if (loop != read && loop != written) {
      order.push_back(loop);
      continue;
    }
    if (nest.extents[i] < edge / 2) {
      draft.revert(before);
      return false;
    }
    if (nest.extents[i] > edge && draft.attempt(schedule::Split{loop, edge})) {
      order.push_back(loop + ".o");
      (loop == read ? rows : lanes) += ".i";
    }
  }
  order.push_back(rows);
  order.push_back(lanes);
  if (!draft.attempt(schedule::Reorder{order}) || !draft.attempt(schedule::Vectorize{lanes})) {
    draft.revert(before);
    return false;
  }
  draft.attempt(schedule::Unroll{rows});
  return true;
}

}  // namespace tilewright::tune
