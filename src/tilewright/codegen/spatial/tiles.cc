#include "tilewright/codegen/spatial/tiles.h"

#include <algorithm>

namespace tilewright::spatial {

using cost::SpatialBox;
using cost::SpatialLayer;
using cost::SpatialMapping;
using cost::SpatialSizes;
using cost::SpatialUnit;

void for_each_tile(const SpatialLayer& layer, const SpatialMapping& mapping,
                   const std::function<void(const Tile&)>& visit) {
  const int loops = static_cast<int>(layer.loops.size());
  Tile tile;
  const auto descend = [&](const auto& self, int place) -> void {
    if (place == loops) {
      tile.begins = tile.ends = true;
      for (int loop = 0; loop < loops; ++loop) {
        if (!layer.loops[loop].reduces) continue;
        const int64_t start = tile.box.start[loop];
        tile.begins = tile.begins && start == 0;
        tile.ends = tile.ends && start + tile.box.size[loop] == layer.loops[loop].extent;
      }
      return visit(tile);
    }
    const int loop = mapping.order[place];
    const int64_t extent = layer.loops[loop].extent;
    for (int64_t start = 0; start < extent; start += mapping.tile[loop]) {
      tile.box.start[loop] = start;
      tile.box.size[loop] = std::min(mapping.tile[loop], extent - start);
      self(self, place + 1);
    }
  };
  descend(descend, 0);
}

SpatialSizes tile_key(const SpatialUnit& unit, int tensor, const SpatialBox& box) {
  SpatialSizes key{};
  for (int loop = 0; loop < unit.loops; ++loop)
    if (unit.in(unit.moves[tensor], loop)) key[loop] = box.start[loop];
  return key;
}

PackedTiles packed_tiles(const SpatialUnit& unit, const SpatialMapping& mapping, bool biased) {
  const int tensor = unit.layer.packed_tensor(), loop = unit.layer.bias_loop();
  PackedTiles tiles;
  uint64_t end = 0;
  for_each_tile(unit.layer, mapping, [&](const Tile& tile) {
    const auto [at, is_new] = tiles.try_emplace(tile_key(unit, tensor, tile.box));
    if (!is_new) return;
    PackedTile& packed = at->second;
    packed.box = tile.box;
    packed.offset = end;
    if (biased && tile.begins) packed.biases = loop < 0 ? 1 : tile.box.size[loop];
    end += static_cast<uint64_t>(4 * packed.biases + unit.packed_bytes(tile.box.size));
  });
  return tiles;
}

}  // namespace tilewright::spatial
