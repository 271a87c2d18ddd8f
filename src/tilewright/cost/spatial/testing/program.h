// The program of a mapping, as the compiler makes it, for the cycle simulator.
#pragma once

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/codegen/spatial/layer_code.h"

namespace tilewright::cost {

/// The tensors lie far from each other.
inline std::vector<spatial::Insn> program_of(const spatial::Design& design,
                                             const SpatialLayer& layer,
                                             const SpatialMapping& mapping) {
  spatial::LayerOperands operands;
  for (size_t tensor = 0; tensor < operands.address.size(); ++tensor)
    operands.address[tensor] = uint64_t{1 + tensor} << 34;
  operands.biased = layer.biased;
  auto program =
      spatial::with_tokens(design, spatial::layer_code(design, layer, mapping, operands));
  EXPECT_TRUE(program) << to_string(program.error());
  return program ? *std::move(program) : std::vector<spatial::Insn>{};
}

}  // namespace tilewright::cost
