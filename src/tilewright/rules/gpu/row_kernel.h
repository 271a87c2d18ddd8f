// Kernels that work on rows (softmax, norms): one block of threads for each row.
#pragma once

#include <string>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Computes everything between the reduction `name` and the output it ends in by one block of
/// threads for each row, with the values in between in shared memory. Declines, with some steps
/// taken, where the blocks do not share rows, a row does not fit, or is too short.
Answer<Done> apply_gpu_rows(Draft& draft, const std::string& name, const hw::GpuTarget& target);

}  // namespace tilewright::rules
