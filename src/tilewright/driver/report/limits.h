// What the machine allows each step of a program at best: the yardstick of `bench --profile`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/hw/target.h"

namespace tilewright::driver {

/// Where bytes can come from, nearest first.
inline constexpr const char* kMemoryLevels[] = {"l1", "l2", "l3", "dram"};

/// The least time of a step, from the arithmetic and the bytes it cannot do without.
struct StepLimit {
  double operations = 0;  ///< of the plain definition
  std::string algorithm;
  DType dtype = DType::F32;
  /// Inputs, weights and outputs, each once. `from[i]`: those whose last use lies so far back that
  /// only kMemoryLevels[i] still holds them.
  int64_t bytes = 0;
  int64_t from[4] = {0, 0, 0, 0};
  double compute_ns = 0, memory_ns = 0;
  std::string bound;  ///< `f32`, `bf16`, `i8`, or a memory level

  double ns() const { return compute_ns > memory_ns ? compute_ns : memory_ns; }
};

/// One per step of `program`, in order, as the program runs again and again: what the run before
/// left in the caches counts. Steps whose kernel has no entry in `works` have a memory limit only.
std::vector<StepLimit> step_limits(const runtime::Program& program, const hw::CpuTarget& machine,
                                   int threads);

}  // namespace tilewright::driver
