// One layer by itself, with 32-bit results: products of tensors that a program is handed.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "tilewright/codegen/spatial/network.h"

namespace tilewright::spatial {

/// Elements of the factors that are known; those of the others are inputs of the program.
using KnownFactors = std::array<std::optional<std::span<const int8_t>>, 2>;

/// Inputs are in the order of the layer's tensors, the output is the third one: whole sums, 4 bytes
/// each. requires: factors have elements of one byte, the result of four; a packed factor is known.
/// errors: Unsupported (the unit cannot play its loops), Capacity.
Result<Compiled> compile_product(const cost::SpatialLayer& layer, const KnownFactors& known,
                                 Mappings& mappings);

/// Whether a factor can be packed: an axis is a loop, from its begin on.
bool can_pack(const cost::SpatialTensor& factor);

}  // namespace tilewright::spatial
