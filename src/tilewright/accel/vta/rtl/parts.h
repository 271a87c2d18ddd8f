// The Verilog text of the modules (verilog/*.v.in), with ${NAME} where numbers of a configuration
// go.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/accel/vta/config.h"

namespace tilewright::vta::rtl {

extern const char* const kMemoryModules;   ///< vta_fifo, vta_tokens, vta_sram
extern const char* const kTwoWriters;      ///< vta_sram_two_writers, for four modules
extern const char* const kControlModules;  ///< vta_control, vta_decode, vta_registers
extern const char* const kReadModules;     ///< vta_dma, vta_beat, vta_read_port, vta_fetch
extern const char* const kMathModules;     ///< vta_index, vta_dot, vta_gemm
extern const char* const kAluModules;      ///< vta_alu_lane, vta_alu
extern const char* const kLoadModule;      ///< vta_load
extern const char* const kComputeModule;   ///< vta_compute
extern const char* const kStoreModule;     ///< vta_store
extern const char* const kTopModule;       ///< vta, up to ${COMPUTE}
extern const char* const kAxiTopModule;    ///< vta_axi
extern const char* const kOneCompute;      ///< compute and its memories: three modules
extern const char* const kTwoComputes;     ///< compute, alu and their memories: four modules
extern const char* const kSecondAccOfTwo;  ///< second read port of ACC for four modules
extern const char* const kBeats;           ///< beats that come for UOP and ACC
extern const char* const kAccBeat32;       ///< beats of ACC
extern const char* const kAccBeat8;        ///< beats of ACC and ACC_8BIT
extern const char* const kSecondAcc;       ///< second read port of ACC

/// The text with the numbers of a configuration.
std::string fill(const Config& config, std::string_view text);

}  // namespace tilewright::vta::rtl
