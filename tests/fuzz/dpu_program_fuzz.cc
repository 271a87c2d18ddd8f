// DPU programs as packages hold them: an error, or a program that the checker takes without harm,
// and the timed simulator too where the checker finds nothing.
#include "fuzz_common.h"
#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/sim/tsim.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  constexpr uint64_t kSmall = 1 << 20;  // larger ones only make the fuzzer slow
  const auto program = dpu::parse_program(fuzz::as_text(data, size));
  if (!program) return 0;
  const std::string bytes = dpu::serialise(*program);
  const auto again = dpu::parse_program(bytes);
  if (!again || dpu::serialise(*again) != bytes) fuzz::report("the program does not read back");
  size_t insns = 0;
  for (const dpu::Run& run : program->runs) insns += run.insns.size();
  if (program->end() > kSmall || insns > 200 || !dpu::check_program(*program).empty()) return 0;
  dpu::LaunchOptions options;
  options.max_cycles = 1 << 20;
  for (const dpu::Run& run : program->runs)
    (void)dpu::simulate_time(program->config, run.insns, options);
  return 0;
}
