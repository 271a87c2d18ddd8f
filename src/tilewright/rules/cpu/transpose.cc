#include "tilewright/rules/cpu/transpose.h"

#include <algorithm>
#include <functional>

#include "tilewright/cost/prediction.h"
#include "tilewright/ir/walk.h"

namespace tilewright::rules {
namespace {

/// The iteration that steps along the last axis of `load` by one; null if there is none.
const Iter* unit_iter(const BlockFacts& block, const Load& load) {
  for (const Iter& iter : block.block->iters)
    if (last_axis_stride(load, iter.var, 1) == int64_t{1} && as_int(iter.extent) != int64_t{1})
      return &iter;
  return nullptr;
}

/// How much of a loop of `extent` a tile takes: all of it, or a whole part that `fits`; without
/// one, `edge`, so that the last tile is cut short.
int64_t edge_of(int64_t extent, int64_t edge, const std::function<bool(int64_t)>& fits) {
  if (extent <= edge) return extent;
  for (int64_t part = edge; part >= edge / 2; --part)
    if (extent % part == 0 && fits(part)) return part;
  return edge;
}

/// Rows of a tile that are worth turning in registers.
constexpr int64_t kShortestLoop = 4;

/// Whether the block copies: what it reads, or zeros beyond the last channel.
bool copies(const BlockFacts& block, const Var& lane) {
  if (block.store->value.as<Load>() != nullptr) return true;
  const Select* filled = block.store->value.as<Select>();
  return filled != nullptr && filled->on_true.as<Load>() != nullptr &&
         uses(filled->condition, lane);
}

}  // namespace

bool turns(const BlockFacts& block) {
  if (block.kind != BlockFacts::Kind::Injective || block.loads.size() != 1 ||
      block.store->indices.empty())
    return false;
  // The innermost axis that has several elements, on either side.
  size_t last = block.store->indices.size() - 1;
  while (last > 0 && as_int(block.store->buffer.shape()[last]) == int64_t{1}) --last;
  const VarRef* written = block.store->indices[last].as<VarRef>();
  const Iter* read = unit_iter(block, block.loads[0]);
  return written != nullptr && read != nullptr && !(read->var == written->var) &&
         copies(block, written->var);
}

bool leaves_channels_out(const BlockFacts& copy) {
  const Load& read = copy.loads[0];
  const int64_t channels = as_int(unit_iter(copy, read)->extent).value_or(0);
  const std::optional<int64_t> block = as_int(read.buffer.shape().back());
  return block && channels % *block != 0;
}

bool ends_within_line(const Buffer& buffer, size_t axis) {
  int64_t elements = 1;
  for (size_t i = axis + 1; i < buffer.rank(); ++i)
    elements *= as_int(buffer.shape()[i]).value_or(1);
  return storage_bytes(buffer.dtype(), elements) % static_cast<int64_t>(cost::kLineBytes) != 0;
}

bool tile_transpose(Draft& draft, const std::string& name, const hw::CpuTarget& target,
                    const std::string& around) {
  const Draft::Mark before = draft.mark();  // keeps the facts below alive
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr || block->loads.size() != 1 || block->loops.size() < 2) return false;
  const std::string written = block->loops.back();
  const Load& load = block->loads[0];
  const Iter* along = unit_iter(*block, load);
  const std::string read = along == nullptr ? "" : block->loop_of(along->var);
  if (read.empty() || read == written) return false;
  const auto in_one_row = [&](int64_t part) {
    return last_axis_stride(load, along->var, part) == int64_t{1};
  };
  const auto any = [](int64_t) { return true; };
  // A tile is one vector of results for each element of a cache line of the source.
  const int64_t edge =
      std::max(8, target.lanes(std::min(32, bit_width(block->store->buffer.dtype()))));
  const LoopNest nest = around.empty() ? draft.nest_of(name) : draft.nest_inside(name, around);
  std::vector<std::string> order;
  std::string rows = read, lanes = written;
  for (size_t i = 0; i < nest.names.size(); ++i) {
    const std::string& loop = nest.names[i];
    if (loop != read && loop != written) {
      order.push_back(loop);
      continue;
    }
    if (nest.extents[i] < kShortestLoop) {
      draft.revert(before);
      return false;
    }
    const int64_t part = loop == read ? edge_of(nest.extents[i], edge, in_one_row)
                                      : edge_of(nest.extents[i], edge, any);
    if (nest.extents[i] > part && draft.attempt(schedule::Split{loop, part})) {
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

}  // namespace tilewright::rules
