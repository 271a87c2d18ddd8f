// Layers on VTA: the same Func that the compiler makes of a quantised convolution, its best mapping
// and what that costs.
#pragma once

#include <optional>

#include "tilewright/accel/vta/config.h"
#include "tilewright/codesign/area.h"
#include "tilewright/cost/spatial/layer.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/rules/vta/mapping.h"

namespace tilewright::codesign {

/// The layer on tiles of VTA: the sum of products, then bias, shift and clip. A factor that varies
/// with rows of a product is a batch of images of one pixel. errors: Unsupported (loops that no
/// convolution over two axes has).
Result<rules::VtaLayer> vta_layer(const cost::SpatialLayer& layer, const vta::Config& config);
/// Its definition, as the compiler has it. errors: as vta_layer.
Result<Func> vta_func(const cost::SpatialLayer& layer, const vta::Config& config);

struct VtaRun {
  rules::VtaLayer layer;
  rules::VtaMapping mapping;
  rules::VtaCost cost;
};
/// The best mapping. errors: Unsupported (as vta_layer), Capacity (nothing fits; the smallest
/// need).
Result<VtaRun> vta_run(const cost::SpatialLayer& layer, const vta::Config& config);

/// Bytes that a run reads from DRAM and writes there.
struct VtaBytes {
  double read = 0, written = 0;
};
VtaBytes vta_bytes(const VtaRun& run, const vta::Config& config);
/// Every access of every memory times what it costs: each step of the GEMM reads one element of
/// weights and inputs and a micro-op, reads and writes the accumulators and writes results; each of
/// the ALU does so with accumulators.
EnergyLevels vta_energy(const VtaRun& run, const vta::Config& config, const Energies& energies);

}  // namespace tilewright::codesign
