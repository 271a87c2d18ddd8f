// A kernel whose schedules are measured: what it computes, on what, and its key in records.
#pragma once

#include <string>

#include "tilewright/hw/targets.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/records/record.h"

namespace tilewright::measure {

/// What measures a kernel, if not this machine's processor or a simulator.
struct MeasuringDevice {
  std::string id;    ///< as --device takes it: `opencl:0`, or what a worker offers: `runner:CMD`
  std::string name;  ///< as its driver calls it
};

/// A kernel to tune.
struct Task {
  std::string name;         ///< for people: `conv_blocked_relu`
  Func func;                ///< stage Tensor
  hw::Target target;        ///< what the schedules are for
  int threads = 1;          ///< workers the kernel runs on
  int64_t uses = 1;         ///< steps of the model that run it
  hw::CpuTarget host;       ///< the processor beside a GPU or an accelerator
  MeasuringDevice device;   ///< a GPU, another machine; without `id`: there is none
  std::string unit = "ns";  ///< of costs: `ns`, or `cycles` of a simulator

  /// What code for the processor is made for.
  const hw::CpuTarget& cpu() const { return target.cpu() != nullptr ? *target.cpu() : host; }
  /// Key of its records: equal programs, names apart, have equal keys.
  std::string key() const;
  /// `cpu:znver4@1a2b3c4d:2` (with the fingerprint of the machine), `cpu:x86-64-v3:2` for any such
  /// processor, as `gpu_key`, or the key of the target, as in records.
  std::string target_key() const;
  /// A record about this task: all of it but `workload` and what was measured.
  records::Record record() const;
};

/// `cuda-sm_90a:NVIDIA H200`: kernels for `target` on a device of that name, in records.
std::string gpu_key(const hw::GpuTarget& target, const std::string& device_name);

}  // namespace tilewright::measure
