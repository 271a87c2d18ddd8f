// VTA programs as packages hold them: an error, or a program that the checker and the simulator
// take without harm.
#include "fuzz_common.h"
#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/sim/tsim.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  constexpr uint64_t kSmall = 1 << 20;  // larger ones only make the fuzzer slow
  const auto program = vta::parse_program(fuzz::as_text(data, size));
  if (!program) return 0;
  const std::string bytes = vta::serialise(*program);
  const auto again = vta::parse_program(bytes);
  if (!again || vta::serialise(*again) != bytes) fuzz::report("the program does not read back");
  size_t insns = 0;
  for (const vta::Run& run : program->runs) insns += run.insns.size();
  if (program->end() > kSmall || insns > 200) return 0;
  const auto findings = vta::check_program(*program);
  vta::LaunchOptions options;
  options.max_cycles = 1 << 20;
  for (const vta::Run& run : program->runs)
    (void)vta::simulate_time(program->config, run.insns, options);
  return 0;
}
