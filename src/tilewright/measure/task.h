// A kernel whose schedules are measured: what it computes, on what, and its key in records.
#pragma once

#include <optional>
#include <string>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/records/record.h"

namespace tilewright::measure {

/// A kernel to tune.
struct Task {
  std::string name;      ///< for people: `conv_blocked_relu`
  Func func;             ///< stage Tensor
  hw::CpuTarget target;  ///< what the schedules are for
  int threads = 1;       ///< workers the kernel runs on
  int64_t uses = 1;      ///< steps of the model that run it
  std::string device;    ///< key of an accelerator's configuration; empty: a CPU's kernel
  std::optional<hw::GpuTarget> gpu;  ///< what the schedules are for, if that is a GPU
  std::string runs_on;               ///< the GPU that measures: `opencl:0`
  std::string device_name;  ///< of that GPU, as its driver calls it; empty: none, or a simulator
  std::string unit = "ns";  ///< of costs: `ns`, or `cycles` of a simulator

  /// Key of its records: equal programs, names apart, have equal keys.
  std::string key() const;
  /// `cpu:znver4@1a2b3c4d:2` (with the fingerprint of the machine), `cpu:x86-64-v3:2` for any such
  /// processor, or `device`, as in records.
  std::string target_key() const;
  /// A record about this task: all of it but `workload` and what was measured.
  records::Record record() const;
};

}  // namespace tilewright::measure
