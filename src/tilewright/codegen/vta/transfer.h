// Copies between DRAM and an on-chip memory as 2D transfers.
#pragma once

#include "tilewright/accel/vta/builder.h"
#include "tilewright/codegen/vta/nest.h"

namespace tilewright::codegen::stream {

/// Appends the transfers of a nest whose first form is the on-chip address, the
/// second the DRAM address (both in elements of `mem`), the others conditions
/// outside of which zeros are loaded instead. requires: each condition depends
/// on one loop at most. errors: Unsupported (zeros where the memory takes
/// none), Capacity.
Status emit_transfers(Nest nest, vta::Mem mem, bool store, vta::Builder& builder);

}  // namespace tilewright::codegen::stream
