// From lowered Funcs to a shared object: code generation by LLVM (or C and the system compiler),
// then the system linker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/runtime/compiled_kernel.h"

namespace tilewright::compile {

struct BackendOptions {
  hw::CpuTarget target = hw::host();
  bool use_c = false;  ///< emit C and compile it with `cc`; always so in builds without LLVM
  int jobs = 1;        ///< threads that compile
};

struct SharedCode {
  std::string bytes;  ///< an ELF shared object exporting the kernels
  std::map<std::string, KernelInfo> kernels;
};

/// errors: Unsupported (a construct the back-end lacks), Tool (no linker or compiler; it failed).
Result<SharedCode> compile_shared(const std::vector<Func>& lowered, const BackendOptions& options);

/// Native code in this process. errors: what code generation reports; Unsupported without LLVM.
Result<runtime::CompiledKernel> compile_kernel(const Func& lowered, const hw::CpuTarget& target);

/// Whether this build can generate code through LLVM.
bool has_llvm();

}  // namespace tilewright::compile
