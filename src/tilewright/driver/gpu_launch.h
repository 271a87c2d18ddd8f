// A launch for a GPU: kernels scheduled, lowered and emitted into one program with its memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/graph/fuse.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/runtime/gpu/program.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tune/records.h"

namespace tilewright::driver {

/// How one distinct group of a launch is computed.
struct GpuKernelReport {
  std::vector<std::string> steps;  ///< names of the groups that it computes
  Func func;                       ///< stage Tensor
  schedule::Trace trace;
  Func scheduled;
  std::optional<tune::Record> record;  ///< where tuning chose the schedule
};

struct GpuLaunchCode {
  runtime::GpuProgram program;
  std::vector<GpuKernelReport> kernels;
  int64_t stale_records = 0;                 ///< whose schedules do not fit the kernels any more
  std::vector<codegen::CudaKernelUse> uses;  ///< CUDA, where the text was compiled
};

/// The record whose schedule a kernel shall have, given its Func (stage Tensor); absent: by rule.
using FindGpuRecord = std::function<std::optional<tune::Record>(const Func& func)>;

/// Code of `launch`; inputs and outputs of the program are those of the group that are not
/// constant, in order. For CUDA the text is compiled too where NVRTC is there; otherwise it travels
/// as text. errors: Unsupported, Capacity, with the group's name; Tool (the text does not compile).
Result<GpuLaunchCode> compile_gpu_launch(const graph::Graph& graph, const graph::Group& launch,
                                         const hw::GpuTarget& target, MathMode math,
                                         const FindGpuRecord& tuned = {});

/// The same for a single Func: its parameters without known values are inputs and outputs, in
/// order.
Result<GpuLaunchCode> compile_gpu_func(const Func& func, const hw::GpuTarget& target,
                                       const FindGpuRecord& tuned = {});
/// The same for a Func that is scheduled already.
Result<GpuLaunchCode> compile_scheduled_gpu_func(const Func& scheduled,
                                                 const hw::GpuTarget& target);

}  // namespace tilewright::driver
