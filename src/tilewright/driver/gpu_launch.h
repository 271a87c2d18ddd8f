// A launch for a GPU: kernels scheduled, lowered and emitted into one program with its memory.
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/fuse.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/runtime/gpu/program.h"
#include "tilewright/schedule/step.h"

namespace tilewright::driver {

/// How one distinct group of a launch is computed.
struct GpuKernelReport {
  std::vector<std::string> steps;  ///< names of the groups that it computes
  Func func;                       ///< stage Tensor
  schedule::Trace trace;
  Func scheduled;
};

struct GpuLaunchCode {
  runtime::GpuProgram program;
  std::vector<GpuKernelReport> kernels;
};

/// Code of `launch`; inputs and outputs of the program are those of the group that are not
/// constant, in order. For CUDA the text is compiled too where NVRTC is there; otherwise it travels
/// as text. errors: Unsupported, Capacity, with the group's name; Tool (the text does not compile).
Result<GpuLaunchCode> compile_gpu_launch(const graph::Graph& graph, const graph::Group& launch,
                                         const hw::GpuTarget& target, MathMode math);

/// The same for a single Func: its parameters without known values are inputs and outputs, in
/// order.
Result<GpuLaunchCode> compile_gpu_func(const Func& func, const hw::GpuTarget& target);

}  // namespace tilewright::driver
