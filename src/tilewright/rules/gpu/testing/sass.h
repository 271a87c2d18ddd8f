// For tests: what the rule's kernels for a CUDA target are made of.
#pragma once

#include <string>
#include <vector>

#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/codegen/gpu/sass.h"
#include "tilewright/codegen/gpu/testing/runner.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {

/// Why machine code cannot be read back here; empty if it can.
inline std::string missing_sass_tools() {
  if (const auto version = codegen::nvrtc_version(); !version) return to_string(version.error());
  if (const auto tool = codegen::find_nvdisasm(); !tool) return to_string(tool.error());
  return {};
}

struct MachineCode {
  std::vector<codegen::CudaKernelUse> uses;
  std::vector<codegen::SassKernel> kernels;  ///< by symbol
  std::string source;

  /// The kernel with the most instructions of `opcode` in an innermost loop; null if none has any.
  const codegen::SassKernel* with(std::string_view opcode, std::string_view modifiers = {}) const {
    const codegen::SassKernel* best = nullptr;
    int64_t most = 0;
    for (const codegen::SassKernel& kernel : kernels)
      if (const codegen::SassLoop* loop = kernel.loop_with(opcode, modifiers))
        if (const int64_t found = codegen::count(loop->counts, opcode, modifiers); found > most)
          most = found, best = &kernel;
    return best;
  }
};

/// `func` with the schedule `trace`, or the rule's. errors: what scheduling and the tools report.
inline Result<MachineCode> machine_code(const Func& func, const hw::GpuTarget& target,
                                        const schedule::Trace* trace = nullptr) {
  const Func scheduled =
      TW_TRY(schedule::replay(func, trace != nullptr ? *trace : gpu_trace(func, target)));
  codegen::testing::GpuBatch batch(target);
  interp::Arguments arguments;
  for (const Param& param : func.params) {
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    arguments.arrays[param.buffer.name()] = Array(param.buffer.dtype(), shape);
  }
  TW_TRY_STATUS(batch.add(func, scheduled, arguments));
  MachineCode out;
  out.source = TW_TRY(batch.source());
  codegen::CudaCode code = TW_TRY(codegen::compile_cuda(out.source, target.arch));
  out.uses = std::move(code.kernels);
  out.kernels = TW_TRY(codegen::disassemble(code.cubin));
  return out;
}

}  // namespace tilewright::rules
