// What a layer probably costs on a design, without mapping it: closed forms over a few tile sizes.
//
// It is no bound: searches take it as what to expect of designs that are not evaluated yet, and
// learn how far it is off.
#pragma once

#include <optional>

#include "tilewright/accel/spatial/design.h"
#include "tilewright/cost/spatial/layer.h"

namespace tilewright::codesign {

struct LayerOpinion {
  double cycles = 0;
  double steps = 0;
  double load_bytes = 0, store_bytes = 0;  ///< of DRAM
  double spad_reads = 0;                   ///< bytes
};

/// Of the choice of loops that seems best (cost/spatial/score.h); none: the unit has no choice for
/// the layer.
std::optional<LayerOpinion> opinion(const spatial::Design& design, const cost::SpatialLayer& layer);

}  // namespace tilewright::codesign
