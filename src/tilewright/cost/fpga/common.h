// One design for several layers: the same sizes side by side, ports, banks and buffers for all,
// while each layer has tiles of its own that fit into these buffers.
//
// Example: AlexNet's five convolutions on a VC707, each with the best design of its own, take 13.97
// ms by the model; the best design for all, with 12x3x14 products side by side, 14.46 ms.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/cost/fpga/search.h"

namespace tilewright::cost {

struct FpgaLayerUse {
  const FpgaModel* model = nullptr;
  double times = 1;  ///< how often the network has it
};

struct FpgaCommon {
  /// Sizes side by side, slots, ports, pipelines, block; `stays`: the order of the tiles, in which
  /// a layer keeps its image or weights, or nothing. Its tiles are none.
  FpgaDesign structure;
  FpgaRams buffers;              ///< as large as the largest tiles of a layer
  std::vector<FpgaBest> layers;  ///< each with its tiles, in the order of the layers
  double cycles = 0;             ///< of all layers, as often as there are
  int64_t looked_at = 0;         ///< sizes side by side whose tiles were searched
};

/// The design with the least time for all layers, of those that `search` says: found by looking at
/// all of them, where bounds leave out those that cannot be better. Absent where none fits.
/// requires: models of one device, type and path.
std::optional<FpgaCommon> best_common_fpga_design(const std::vector<FpgaLayerUse>& layers,
                                                  const FpgaSearch& search = {});

/// The least number of banks along a row of the image from which all of `layers` can read `us`
/// pixels in a cycle, each with its stride.
int64_t common_row_banks(const std::vector<FpgaLayerUse>& layers, int64_t us);

}  // namespace tilewright::cost
