// Emits C11 for a lowered Func: the second, independent path beside LLVM.
#pragma once

#include <string>
#include <vector>

#include "tilewright/codegen/common/plan.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/runtime/kernel_abi.h"

namespace tilewright::codegen {

struct CModule {
  std::string source;  ///< one translation unit, needs only libm
  std::vector<KernelInfo> kernels;
};

/// Flags a C compiler needs so that the module keeps its meaning (no contraction of a*b+c under
/// `exact`).
inline constexpr const char* kCFlags = "-std=gnu11 -ffp-contract=off -fno-strict-aliasing";

/// One exported `tw_kernel` per Func, named `symbol_of(func)`. errors: Unsupported, with the
/// construct.
Result<CModule> emit_c(const std::vector<Func>& lowered);

}  // namespace tilewright::codegen
