// A launch for a GPU: kernels scheduled, lowered and emitted into one program with its memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/compile/backend.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/runtime/gpu/program.h"

namespace tilewright::compile {

struct GpuLaunchCode : LaunchDetail {
  runtime::GpuProgram program;
  std::vector<KernelReport> kernels;
  int64_t stale_records = 0;                 ///< whose schedules do not fit the kernels any more
  std::vector<codegen::CudaKernelUse> uses;  ///< CUDA, where the text was compiled
};

struct GpuLaunchOptions {
  MathMode math = MathMode::Fast;
  FindRecord tuned;  ///< empty: all schedules by rule
  Observer observer;
};

/// Code of `launch`; inputs and outputs of the program are those of the group that are not
/// constant, in order. For CUDA the text is compiled too where NVRTC is there; otherwise it travels
/// as text. errors: Unsupported, Capacity, with the group's name; Tool (the text does not compile).
Result<GpuLaunchCode> compile_gpu_launch(const graph::Graph& graph, const graph::Group& launch,
                                         const hw::GpuTarget& target,
                                         const GpuLaunchOptions& options = {});

/// The same for a single Func: its parameters without known values are inputs and outputs, in
/// order.
Result<GpuLaunchCode> compile_gpu_func(const Func& func, const hw::GpuTarget& target,
                                       const GpuLaunchOptions& options = {});
/// The same for a Func that is scheduled already.
Result<GpuLaunchCode> compile_scheduled_gpu_func(const Func& scheduled,
                                                 const hw::GpuTarget& target);

}  // namespace tilewright::compile
