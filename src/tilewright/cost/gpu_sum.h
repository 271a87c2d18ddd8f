// How long a sum without reuse takes on a GPU: a thread for each result, or several that share its
// terms.
#pragma once

#include <optional>

#include "tilewright/base/dtype.h"
#include "tilewright/hw/gpu_target.h"

namespace tilewright::cost {

struct GpuSum {
  int64_t results = 1, terms = 1;
  double bytes = 0;   ///< of all operands, each once
  int64_t loads = 0;  ///< per term
  DType dtype = DType::F32;
};

/// `threads` share the terms of a result, `side` results lie in one block beside each other; 0: a
/// thread adds up a result alone, 128 of them in a block. Absent where a block has too many
/// threads. units: ns.
std::optional<double> predict_gpu_sum(const GpuSum& sum, int64_t threads, int64_t side,
                                      const hw::GpuTarget& target);

}  // namespace tilewright::cost
