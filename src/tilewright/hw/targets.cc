#include "tilewright/hw/targets.h"

#include <fmt/format.h>

#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/hw/gpu_intrinsics.h"

namespace tilewright::hw {
namespace {

/// Names of the instructions among `known` that `has` says a target has.
template <class Has>
std::vector<std::string> names_of(const std::vector<Intrinsic>& known, Has has) {
  std::vector<std::string> names;
  for (const Intrinsic& intrinsic : known)
    if (has(intrinsic)) names.push_back(intrinsic.name());
  return names;
}

}  // namespace

std::string_view name(TargetKind kind) {
  switch (kind) {
    case TargetKind::Cpu:
      return "cpu";
    case TargetKind::Gpu:
      return "gpu";
    case TargetKind::Accelerator:
      break;
  }
  return "accelerator";
}

Target as_target(const CpuTarget& cpu) {
  Target target;
  target.name = cpu.name;
  target.backend = "cpu";
  target.memories = {{"L1", 0, "core", cpu.l1_bytes},
                     {"L2", 1, "core", cpu.l2_bytes},
                     {"L3", 2, "device", cpu.l3_bytes}};
  target.units = {fmt::format("{}-bit vectors", 8 * cpu.vector_bytes)};
  target.intrinsics = names_of(
      cpu_intrinsics(), [&](const Intrinsic& intrinsic) { return has_intrinsic(cpu, intrinsic); });
  target.special = cpu;
  return target;
}

Target as_target(const GpuTarget& gpu) {
  constexpr int64_t kRegisterBytes = 4;
  Target target;
  target.kind = TargetKind::Gpu;
  target.name = gpu.name;
  target.backend = std::string(name(gpu.language));
  target.memories = {{"registers", 0, "unit", gpu.unit_registers * kRegisterBytes},
                     {"shared", 1, "unit", gpu.unit_shared_bytes, 32},
                     {"L2", 2, "device", gpu.l2_bytes}};
  target.units = {fmt::format("{} units of {} threads", gpu.units, gpu.unit_threads)};
  target.intrinsics = names_of(
      gpu_intrinsics(), [&](const Intrinsic& intrinsic) { return has_intrinsic(gpu, intrinsic); });
  target.special = gpu;
  return target;
}

}  // namespace tilewright::hw
