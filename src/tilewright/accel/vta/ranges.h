// Range checks on what a caller hands in, shared by Builder and CommandQueue.
#pragma once

#include <span>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// errors: Invalid (a memory that cannot be loaded or stored, padded store), Capacity (beyond
/// the end of the on-chip memory).
Status check_transfer(const Config& config, const Transfer& transfer);

/// errors: Invalid (rows outside of DRAM [begin, end)).
Status check_dram(const Config& config, const Transfer& transfer, uint64_t begin, uint64_t end);

/// Every index that `loops` reach from `uops`, the unused source of immediate ALU forms included.
/// errors: Capacity (beyond the end of a memory; names it).
Status check_indices(const Config& config, std::span<const Uop> uops, const Loops& loops,
                     bool gemm);

}  // namespace tilewright::vta
