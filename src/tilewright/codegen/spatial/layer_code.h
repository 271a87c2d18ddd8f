// From a layer, a design and a mapping to instructions: the loops around the tiles run here, every
// transfer gets its addresses. docs/spatial-timing.md says how tiles lie in the scratchpad.
//
// Example: a 1x1 convolution of 32 to 16 channels, 4 pixels, one tile (gemm, weight stationary):
//   LOAD weights, LOAD input, COMPUTE 2 blocks x 4 rows, STORE
// Instructions are right one after the other; tokens are added later (accel/spatial/footprint.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tilewright/accel/spatial/isa.h"
#include "tilewright/cost/spatial/model.h"

namespace tilewright::spatial {

/// What a layer's instructions need besides its shapes.
struct LayerOperands {
  /// DRAM addresses of the tensors' first elements; of a packed one, of what `pack` made.
  std::array<uint64_t, cost::kSpatialTensors> address{};
  /// `pack` got biases.
  bool biased = false;
  /// What STORE does with sums.
  bool wide = false;
  int shift = 0;
  int low = -128, high = 127;
};

/// requires: `misfits` has no objection; a packed tensor and the result have a loop of stride 1 in
/// each dimension (the result's may begin anywhere, as those of a group do).
std::vector<Insn> layer_code(const Design& design, const cost::SpatialLayer& layer,
                             const cost::SpatialMapping& mapping, const LayerOperands& operands);

/// The tiles of the layer's packed tensor in the order in which `layer_code` reads them, each as
/// the array reads it.
///   weights: as the tensor's dimensions say, the last one contiguous.
///   bias: by position in the loop that moves weights and result; may be empty. It stands before
///   the tiles that begin sums.
std::string pack(const Design& design, const cost::SpatialLayer& layer,
                 const cost::SpatialMapping& mapping, std::span<const int8_t> weights,
                 std::span<const int32_t> bias);

}  // namespace tilewright::spatial
