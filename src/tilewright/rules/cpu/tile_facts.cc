#include "tilewright/rules/cpu/tile_facts.h"

#include <algorithm>
#include <optional>

#include "tilewright/base/integers.h"
#include "tilewright/ir/walk.h"

namespace tilewright::rules {

int64_t extent_of_loop(const BlockFacts& block, const std::string& loop) {
  const auto at = std::find(block.loops.begin(), block.loops.end(), loop);
  return at == block.loops.end() ? 1 : block.extents[static_cast<size_t>(at - block.loops.begin())];
}

bool slides(const BlockFacts& block, const RegisterTile& tile, const Var& tap) {
  const std::optional<Product> product = product_of(block);
  Var lanes, row;
  for (const Iter& iter : block.block->iters) {
    if (block.loop_of(iter.var) == tile.vec.loop) lanes = iter.var;
    if (block.loop_of(iter.var) == tile.row.loop) row = iter.var;
  }
  if (!product || !lanes || !row) return false;
  for (const Load& load : {product->a, product->b})
    for (const Expr& index : load.indices)
      if (!mentions(load, lanes) && uses(index, tap) && uses(index, row)) return true;
  return false;
}

int64_t bytes_of_weights(const Func& func, const BlockFacts& block, const RegisterTile& tile,
                         const std::vector<int64_t>& reduced) {
  const std::optional<Product> product = product_of(block);
  if (!product || !tile.reuse) return 0;
  const int64_t steps = tile.vec.tile * tile.column.tile * tilewright::product(reduced);
  for (const Load& load : {product->a, product->b})
    for (const Param& p : func.params)
      if (p.buffer == load.buffer && p.mode == ParamMode::Const)
        return storage_bytes(load.buffer.dtype(), steps);
  return 0;
}

}  // namespace tilewright::rules
