#include "tilewright/tune/row_rule.h"

#include "tilewright/tune/tile_rule.h"

namespace tilewright::tune {

bool reduce_rows(Draft& draft, const std::string& name) {
  const Draft::Mark before = draft.mark();  // keeps the facts below alive
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  const Buffer accumulator = block->store->buffer;
  std::vector<std::string> space;
  for (const Iter& iter : block->block->iters)
    if (iter.kind == IterKind::Space) space.push_back(block->loop_of(iter.var));
  if (space.empty() || space.back().empty()) return false;
  if (!draft.attempt(schedule::ComputeAt{name + ".init", space.back()})) return false;
  fuse_readers(draft, accumulator, space.back());
  return true;
}

}  // namespace tilewright::tune
