// How a layer runs on a design: which loops the unit's own loops become, the tile that a COMPUTE
// covers, the order of the loops around it, and copies of each buffer.
//
// Example: `first=input i=x j=k k=c tile=k64,y14,x56,c64,r3,s3 order=k,y,x,c,r,s copies=2,2,2`:
// rows of the input meet weights k x c that stay in the array (gemm, weight stationary).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/spatial/design.h"
#include "tilewright/base/result.h"
#include "tilewright/cost/spatial/layer.h"

namespace tilewright::cost {

/// Loops of a layer in the roles of the unit's; -1: the unit has no such role.
///   i: of the first factor and the result; j: of the second and the result; k: summed over.
/// Dot has k; Gemv i and k (the first factor is the matrix); Gemm all; Conv2d j (its outputs) and k
/// (its inputs; the first factor is the image).
struct SpatialChoice {
  int first = 0;  ///< the factor in the first role: 0 or 1; the other one stays in a weight
                  ///< stationary array
  int i = -1, j = -1, k = -1;
  int second() const { return 1 - first; }
  friend bool operator==(const SpatialChoice&, const SpatialChoice&) = default;
};

/// Every sound choice (loops of one role pair do not share an index), in a fixed order.
std::vector<SpatialChoice> choices(const spatial::Design& design, const SpatialLayer& layer);

struct SpatialMapping {
  SpatialChoice choice;
  std::array<int64_t, kSpatialLoops> tile{};  ///< of each loop of the layer
  /// Loops around the tiles, outermost first; those summed over are behind the others, so that
  /// sums never leave the array unfinished.
  std::array<int, kSpatialLoops> order{};
  std::array<int, kSpatialTensors> copies{2, 2, 2};  ///< 1 or 2 of each buffer
  friend bool operator==(const SpatialMapping&, const SpatialMapping&) = default;
};

/// One line, as above.
std::string to_string(const SpatialLayer& layer, const SpatialMapping& mapping);
/// errors: Parse (unknown words and loops; the place is a column), Invalid (tiles out of range,
/// order not a permutation with the loops summed over behind the others, copies).
Result<SpatialMapping> parse_mapping(const SpatialLayer& layer, std::string_view text);

}  // namespace tilewright::cost
