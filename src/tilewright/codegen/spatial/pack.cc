// Weights in the order in which programs read them.
#include <algorithm>
#include <vector>

#include "tilewright/base/check.h"
#include "tilewright/codegen/spatial/layer_code.h"
#include "tilewright/codegen/spatial/tiles.h"

namespace tilewright::spatial {
namespace {

using cost::SpatialBox;
using cost::SpatialPlaces;
using cost::SpatialTensor;
using cost::SpatialUnit;

class Packer {
 public:
  Packer(const SpatialUnit& unit, std::span<const int8_t> weights)
      : unit_(unit),
        number_(unit.layer.packed_tensor()),
        factor_(number_ == unit.choice.first ? 0 : 1),
        tensor_(unit.layer.tensors[number_]),
        weights_(weights) {}

  std::string tile(const SpatialBox& box) {
    places_ = unit_.places(factor_, box.size);
    const int lane = unit_.lane_loop[factor_];
    lanes_ = std::min(unit_.lanes[lane], box.size[lane]);
    std::string bytes(static_cast<size_t>(unit_.packed_bytes(box.size)), '\0');
    fill(box, 0, 0, 0, bytes);
    return bytes;
  }

 private:
  int64_t place(size_t dim, int64_t p) const {
    if (static_cast<int>(dim) != unit_.lane_dim[factor_]) return p * places_.pitch[dim];
    if (places_.block) return p / lanes_ * places_.block + p % lanes_;
    return p % places_.phases * places_.phase + p / places_.phases;
  }

  void fill(const SpatialBox& box, size_t dim, int64_t from, int64_t to, std::string& bytes) {
    if (dim == tensor_.dims.size()) {
      TW_CHECK(to < static_cast<int64_t>(bytes.size()), "packed tiles have no holes");
      bytes[static_cast<size_t>(to)] = static_cast<char>(weights_[static_cast<size_t>(from)]);
      return;
    }
    const cost::SpatialDim& d = tensor_.dims[dim];
    const int64_t start = (d.terms.empty() ? 0 : box.start[d.terms[0].loop]) - d.begin;
    const int64_t count = d.terms.empty() ? 1 : box.size[d.terms[0].loop];
    for (int64_t p = 0; p < count; ++p)
      fill(box, dim + 1, from * d.extent + start + p, to + place(dim, p), bytes);
  }

  const SpatialUnit& unit_;
  int number_, factor_;
  const SpatialTensor& tensor_;
  std::span<const int8_t> weights_;
  SpatialPlaces places_;
  int64_t lanes_ = 1;
};

void put_words(std::string& out, std::span<const int32_t> words) {
  for (const int32_t word : words)
    for (int byte = 0; byte < 4; ++byte)
      out += static_cast<char>(static_cast<uint32_t>(word) >> (8 * byte));
}

}  // namespace

std::string pack(const Design& design, const cost::SpatialLayer& layer,
                 const cost::SpatialMapping& mapping, std::span<const int8_t> weights,
                 std::span<const int32_t> bias) {
  const SpatialUnit unit(design, layer, mapping.choice);
  const int loop = layer.bias_loop();
  std::vector<PackedTile> tiles;
  for (const auto& [key, tile] : packed_tiles(unit, mapping, !bias.empty())) tiles.push_back(tile);
  std::sort(tiles.begin(), tiles.end(),
            [](const PackedTile& a, const PackedTile& b) { return a.offset < b.offset; });
  Packer packer(unit, weights);
  std::string out;
  for (const PackedTile& tile : tiles) {
    const int64_t first = loop < 0 ? 0 : tile.box.start[loop];
    if (tile.biases)
      put_words(out, bias.subspan(static_cast<size_t>(first), static_cast<size_t>(tile.biases)));
    out += packer.tile(tile.box);
  }
  return out;
}

}  // namespace tilewright::spatial
