// What harnesses of the DPU do with a program that was accepted.
#pragma once

#include "fuzz_common.h"
#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/sim/fsim.h"
#include "tilewright/accel/dpu/sim/tsim.h"

namespace tilewright::fuzz {

inline constexpr uint64_t kSmallImage = 1 << 20;  // larger ones only make the fuzzer slow

/// DRAM after all runs on `device`.
inline std::string image_after(dpu::Device& device, const dpu::Program& program) {
  const auto report = dpu::execute(device, program);
  if (!report) report_error("what the checker accepts does not run", report.error());
  std::string image(program.image.size(), '\0');
  if (!device.read(program.base, image.data(), image.size())) fuzz::report("DRAM cannot be read");
  return image;
}

/// The checker takes any program without harm. One in which it finds nothing runs, and leaves the
/// same behind on both simulators.
inline void try_program(const dpu::Program& program) {
  size_t insns = 0;
  for (const dpu::Run& run : program.runs) insns += run.insns.size();
  if (program.image.size() > kSmallImage || insns > 300 || program.runs.size() > 4) return;
  if (!dpu::check_program(program).empty()) return;
  dpu::LaunchOptions options;
  options.max_cycles = 1 << 13;  // what takes longer computes too much
  for (const dpu::Run& run : program.runs)
    if (!dpu::simulate_time(program.config, run.insns, options)) return;
  const auto fsim = dpu::make_fsim(program.config, program.end());
  const auto tsim = dpu::make_tsim(program.config, program.end());
  if (image_after(*fsim, program) != image_after(*tsim, program))
    report("the simulators differ:\n" + dpu::disassemble(program.runs[0].insns));
}

}  // namespace tilewright::fuzz
