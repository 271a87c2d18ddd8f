// What code is compiled for, whatever it is: processors, GPUs and accelerators as one value.
#pragma once

#include <any>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/hw/target.h"

namespace tilewright::hw {

enum class TargetKind { Cpu, Gpu, Accelerator };
/// `cpu`, `gpu`, `accelerator`.
std::string_view name(TargetKind kind);

/// A memory that code can count on, or fill and read by itself.
struct Memory {
  std::string name;   ///< `L2`, `shared`, `wgt`
  int level = 0;      ///< 0: nearest to the arithmetic
  std::string unit;   ///< what owns one: `core`, `block`, `device`
  int64_t bytes = 0;  ///< of one
  int64_t banks = 1;
  friend bool operator==(const Memory&, const Memory&) = default;
};

/// Instructions that run one after the other, beside those of other queues.
struct Queue {
  std::string name;
  std::vector<std::string> memories;  ///< that its instructions read or write
  friend bool operator==(const Queue&, const Queue&) = default;
};

/// One target. What all kinds have in common are fields; `special` is what its back-end needs
/// besides.
struct Target {
  TargetKind kind = TargetKind::Cpu;
  std::string name;     ///< as --target takes it: `cpu`, `cuda-sm_90a`, `vta`
  std::string backend;  ///< who compiles for it: `cpu`, `opencl`, `cuda`, `vta`
  /// What records call it, if that does not follow from its fields: `vta:` and a hash of sizes.
  std::string key;
  std::vector<Memory> memories;
  std::vector<Queue> queues;            ///< of accelerators
  std::vector<std::string> units;       ///< of arithmetic: `512-bit vectors`, `gemm 1x16x16`
  std::vector<std::string> intrinsics;  ///< names in hw/intrinsics
  /// The third is an accelerator's configuration, of a type that its back-end knows.
  std::variant<CpuTarget, GpuTarget, std::any> special;

  /// Null for other kinds.
  const CpuTarget* cpu() const { return std::get_if<CpuTarget>(&special); }
  const GpuTarget* gpu() const { return std::get_if<GpuTarget>(&special); }
};

Target as_target(const CpuTarget& cpu);
Target as_target(const GpuTarget& gpu);

}  // namespace tilewright::hw
