// VTA code from a scheduled Func: loops outside of tiles run here, at compile time; what is left
// becomes 2D transfers, GEMM and ALU instructions with concrete addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/accel/vta/builder.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

struct VtaOptions {
  /// Copies of each on-chip allocation that consecutive iterations use in turn; 1 = no latency
  /// hiding. The mark `copies` of an allocation, or of a block that stores to it, comes first.
  int copies = 2;
};

/// Appends the instructions of `func` to `builder`. `addresses`: of each parameter in DRAM; units:
/// bytes, one per parameter.
///   func:  stage Scheduled; buffers in scopes vta.inp, vta.wgt, vta.acc or parameters; blocks are
///          calls of vta.gemm, constant fills and element-wise updates of vta.acc, and copies.
/// errors: Unsupported (block and reason), Capacity (memory, elements needed and there).
Status emit_vta(const Func& func, const std::vector<uint64_t>& addresses, const VtaOptions& options,
                vta::Builder& builder);

/// Appends a copy of `bytes` in DRAM, as 8-bit values through the accumulator. requires: `bytes` is
/// a multiple of an element of the output, whose size is that of the input's. errors: Unsupported
/// (inputs and outputs of different element sizes).
Status emit_vta_copy(uint64_t from, uint64_t to, uint64_t bytes, vta::Builder& builder);

/// `scheduled` as a VTA program over DRAM that holds zeros: enough to measure its time. `copies`:
/// of buffers on chip, as in VtaOptions. errors: those of the code generator (Unsupported,
/// Capacity).
Result<vta::Program> vta_program(const Func& scheduled, const vta::Config& config, int copies = 2);

}  // namespace tilewright::codegen
