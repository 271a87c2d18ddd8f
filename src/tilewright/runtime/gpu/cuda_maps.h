// Maps for copy engines, made by the driver from a program's description of them.
#pragma once

#include "tilewright/runtime/gpu/cuda_api.h"
#include "tilewright/runtime/gpu/program.h"

namespace tilewright::runtime {

/// The map of a buffer that is at `address`. requires: `map` as `validate` wants it. errors: Device
/// (a driver too old to make any, a type no map has, what the driver says).
Result<CuTensorMap> make_tensor_map(const CudaApi& api, const GpuTensorMap& map, CuMemory address,
                                    const std::string& kernel);

}  // namespace tilewright::runtime
