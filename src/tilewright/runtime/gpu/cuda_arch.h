// Architectures of NVIDIA GPUs, and which code runs on which.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilewright::runtime {

/// `sm_90a`: number 90, suffix `a`.
struct CudaArch {
  int number = 0;   ///< ten times the major version plus the minor one
  char suffix = 0;  ///< `a` (this number alone), `f` (its major version) or none
};
std::optional<CudaArch> parse_cuda_arch(std::string_view text);
std::string to_string(const CudaArch& arch);

/// Machine code runs on the same major version from its minor version on.
/// source: CUDA C++ Programming Guide, section 3.1.2.
bool cubin_runs_on(const CudaArch& code, int device);
/// PTX runs on its version and every newer one. source: the same, section 3.1.3.
bool ptx_runs_on(const CudaArch& code, int device);

}  // namespace tilewright::runtime
