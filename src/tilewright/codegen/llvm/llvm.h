// Native code through LLVM 19: JIT in this process, or an object file. No LLVM type appears here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/codegen/common/plan.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/runtime/kernel_abi.h"

namespace tilewright::codegen {

struct LlvmOptions {
  hw::CpuTarget target = hw::host();
  int opt_level = 2;
};

/// Compiled code living in this process.
class JitModule {
 public:
  virtual ~JitModule() = default;
  virtual const std::vector<KernelInfo>& kernels() const = 0;
  /// requires: `symbol` is one of kernels().
  virtual tw_kernel find(const std::string& symbol) const = 0;
};
Result<std::unique_ptr<JitModule>> jit(const std::vector<Func>& lowered,
                                       const LlvmOptions& options = {});

struct ObjectFile {
  std::string bytes;  ///< ELF relocatable, position independent
  std::vector<KernelInfo> kernels;
};
/// One object per Func, in order. Deterministic: equal input gives equal bytes, whatever
/// `parallel` (the number of threads that compile) is.
Result<std::vector<ObjectFile>> emit_objects(const std::vector<Func>& lowered,
                                             const LlvmOptions& options = {}, int parallel = 1);
/// Text for people and tests.
Result<std::string> emit_assembly(const Func& lowered, const LlvmOptions& options = {});
Result<std::string> emit_llvm_ir(const Func& lowered, const LlvmOptions& options = {});

}  // namespace tilewright::codegen
