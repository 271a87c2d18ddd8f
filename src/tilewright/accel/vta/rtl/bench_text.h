// Verilog text of the unit benches; {steps} is where the stimuli go.
#pragma once

namespace tilewright::vta::rtl {

extern const char* const kQueueBench;
extern const char* const kTokenBench;
extern const char* const kGemmBench;  ///< with ${NAME} as the modules
extern const char* const kAluBench;
extern const char* const kDmaBench;

}  // namespace tilewright::vta::rtl
