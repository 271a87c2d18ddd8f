#include "tilewright/codegen/gpu/kernel_code.h"

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/codegen/common/plan.h"
#include "tilewright/hw/gpu_intrinsics.h"

namespace tilewright::codegen {

runtime::GpuKernelCode kernel_code(const lower::GpuKernel& kernel) {
  runtime::GpuKernelCode code{
      symbol_of(kernel.func), kernel.grid, kernel.block, kernel.shared_bytes, {}};
  for (const lower::TensorMap& map : kernel.bulk.maps) {
    const auto& params = kernel.func.params;
    const auto param = std::find_if(params.begin(), params.end(),
                                    [&](const Param& p) { return p.buffer == map.buffer; });
    TW_CHECK(param != params.end(), "a map of '{}'", map.buffer.name());
    code.maps.push_back({static_cast<int>(param - params.begin()), map.buffer.dtype(), map.dims,
                         map.strides, map.box, hw::kPanelBytes});
  }
  return code;
}

}  // namespace tilewright::codegen
