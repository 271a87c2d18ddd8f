// CUDA C++ to machine code through NVRTC, which is loaded when first asked for; no GPU is needed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::codegen {

/// What one kernel takes of its device.
struct CudaKernelUse {
  std::string symbol;
  int64_t registers = 0;     ///< 32-bit ones, of a thread
  int64_t shared_bytes = 0;  ///< of a block
  int64_t stack_bytes = 0;   ///< of a thread, in device memory: arrays that are no registers
  int64_t spill_bytes = 0;   ///< stores and loads of registers that did not fit, in the text
};

struct CudaCode {
  std::string cubin;                   ///< for the architecture asked for
  std::string ptx;                     ///< for that or newer ones
  std::vector<CudaKernelUse> kernels;  ///< as far as the assembler tells
};

/// Version of NVRTC, for instance `13.0`. errors: Tool (not found, with what to install).
Result<std::string> nvrtc_version();

/// errors: Tool (NVRTC is missing, the text does not compile, with the log, or the cubin is empty),
/// Unsupported (it does not know `arch`).
Result<CudaCode> compile_cuda(const std::string& source, const std::string& arch);

/// From what `ptxas -v` prints; lines of other kinds are ignored.
std::vector<CudaKernelUse> parse_ptxas_log(std::string_view log);

}  // namespace tilewright::codegen
