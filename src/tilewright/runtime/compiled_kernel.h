// A kernel that this process can call.
#pragma once

#include <memory>

#include "tilewright/runtime/kernel_abi.h"

namespace tilewright::runtime {

/// Native code of one Func, alive as long as `owner`.
struct CompiledKernel {
  std::shared_ptr<const void> owner;
  tw_kernel run = nullptr;
  KernelInfo info;
};

}  // namespace tilewright::runtime
