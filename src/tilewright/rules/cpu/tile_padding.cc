#include "tilewright/rules/cpu/tile_padding.h"

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/borders.h"

namespace tilewright::rules {

bool has_select(const BlockFacts& block) {
  bool found = false;
  walk(block.store->value, [&](const Expr& e) { found |= e.as<Select>() != nullptr; });
  return found;
}

bool reads_through_padding(const BlockFacts& reader, const BlockFacts& padding) {
  if (reader.kind != BlockFacts::Kind::Reduce || padding.store->value.as<Select>() == nullptr)
    return false;
  int64_t taps = 1;
  for (const Iter& iter : reader.block->iters)
    if (iter.kind == IterKind::Reduce) taps *= as_int(iter.extent).value_or(kWindowTaps + 1);
  if (taps > kWindowTaps || reader.store->indices.empty()) return false;
  // Instructions for products of bytes read pixels as they lie in memory.
  if (bit_width(padding.store->buffer.dtype()) == 8 && product_of(reader)) return false;
  const VarRef* lane = reader.store->indices.back().as<VarRef>();
  for (const Load& load : reader.loads) {
    if (!(load.buffer == padding.store->buffer)) continue;
    const VarRef* last = load.indices.back().as<VarRef>();
    if (lane == nullptr || last == nullptr || !(last->var == lane->var)) return false;
  }
  const VarRef* stored = padding.store->indices.back().as<VarRef>();
  return stored != nullptr && !uses(padding.store->value.as<Select>()->condition, stored->var);
}

void cut_padding(Draft& draft, const std::string& name) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr || !has_select(*block)) return;
  // The lanes stay whole; of the loops around them the two innermost run often enough to matter.
  const LoopNest nest = draft.nest_of(name);
  const size_t depth = nest.names.size();
  for (size_t i = depth - std::min<size_t>(depth, 3); i + 1 < depth; ++i)
    cut_borders(draft, name, nest.names[i], false);
}

}  // namespace tilewright::rules
