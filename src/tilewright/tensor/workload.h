// The operators of published evaluations, by name and sizes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// The operator call a workload case stands for: `conv2d` with batch, in_channels, height,
/// kernel_h, ... becomes a Conv. Integer types give the integer operators (i32 sums).
/// errors: Invalid for an unknown operator, a missing or a nonsensical parameter, by name.
Result<OpCall> workload_call(const std::string& name, const std::map<std::string, int64_t>& params,
                             DType dtype = DType::F32);

/// Every name `workload_call` knows.
std::vector<std::string> workload_operators();

}  // namespace tilewright::tensor
