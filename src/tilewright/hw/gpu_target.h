// GPUs as data: what lowering, code generation and schedule rules need to know of a device.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/hw/gpu_rates.h"

namespace tilewright::hw {

enum class GpuLanguage { OpenCl, Cuda };
/// `opencl`, `cuda`.
std::string_view name(GpuLanguage language);

/// A kind of GPU, or of any device that OpenCL reaches. Limits are per block of threads (OpenCL: a
/// work-group) unless said otherwise.
struct GpuTarget {
  std::string name;  ///< `opencl`, `opencl-mali`, `cuda`, `cuda-sm_80`, ...
  GpuLanguage language = GpuLanguage::OpenCl;
  std::string arch;           ///< CUDA: `sm_80`, `sm_90a`, ...; OpenCL: empty
  int64_t max_threads = 256;  ///< of a block
  int64_t shared_bytes = 32 << 10;
  int64_t registers = 64;  ///< 32-bit ones a thread can have before it spills
  int warp = 1;            ///< threads that run in lockstep
  int units = 4;           ///< multiprocessors: blocks that run at the same time, at least
  /// What one unit holds at a time, of all its blocks together.
  int64_t unit_threads = 256, unit_blocks = 1, unit_shared_bytes = 32 << 10,
          unit_registers = 64 * 256;
  int64_t l2_bytes = 1 << 20;  ///< of the cache that all units share
  int vector_bytes = 16;       ///< widest load or store of a thread
  bool has_f16 = false, has_f64 = true;
  bool tf32 = false;  ///< wanted: factors of f32 products with 10 bits of mantissa
  GpuRates rates;
};

/// Whether threads of `target` can copy into shared memory without waiting (CUDA: from sm_80 on).
bool copies_asynchronously(const GpuTarget& target);

/// `opencl` (any device, PoCL included), `opencl-mali` (a small one with f16), `cuda` (=
/// cuda-sm_90a), `cuda-sm_80`, ... errors: Device, with the closed list of names.
Result<GpuTarget> find_gpu_target(const std::string& name);
std::vector<GpuTarget> all_gpu_targets();

}  // namespace tilewright::hw
