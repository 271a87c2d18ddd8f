// CUDA C++ to machine code through NVRTC, which is loaded when first asked for; no GPU is needed.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright::codegen {

struct CudaCode {
  std::string cubin;  ///< for the architecture asked for
  std::string ptx;    ///< for that or newer ones
};

/// Version of NVRTC, for instance `13.0`. errors: Tool (not found, with what to install).
Result<std::string> nvrtc_version();

/// errors: Tool (NVRTC is missing, the text does not compile, with the log, or the cubin is empty),
/// Unsupported (it does not know `arch`).
Result<CudaCode> compile_cuda(const std::string& source, const std::string& arch);

}  // namespace tilewright::codegen
