#include "tilewright/tune/vta/cycles.h"

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/codegen/vta/vta.h"

namespace tilewright::tune {

Result<uint64_t> vta_cycles(const Func& func, const schedule::Trace& trace,
                            const vta::Config& config, int copies) {
  const Func scheduled = TW_TRY(schedule::replay(func, trace));
  const vta::Program program = TW_TRY(codegen::vta_program(scheduled, config, copies));
  uint64_t cycles = 0;
  for (const vta::Run& run : program.runs)
    cycles += TW_TRY(vta::simulate_time(config, run.insns)).cycles;
  return cycles;
}

}  // namespace tilewright::tune
