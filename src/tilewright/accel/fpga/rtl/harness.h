// What the host side and the C++ around the verilated model agree on. Internal.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/accel/fpga/rtl/rtl.h"

// One text for both sides: the compiler reads it here, and it is put in front of the harness.
#define FPGA_RTL_ABI                                                                          \
  struct fpga_argument {                                                                      \
    unsigned char* bytes;                                                                     \
    uint64_t size;                                                                            \
  };                                                                                          \
  struct fpga_memory {                                                                        \
    int32_t read_latency, write_latency, write_beat, write_gap, read_cost, write_cost,        \
        stall_percent;                                                                        \
    uint32_t seed;                                                                            \
  };                                                                                          \
  struct fpga_result {                                                                        \
    uint64_t cycles;                                                                          \
    uint32_t late;                                                                            \
    char problem[200];                                                                        \
  };                                                                                          \
  extern "C" {                                                                                \
  void* fpga_create();                                                                        \
  void fpga_destroy(void* handle);                                                            \
  void fpga_run(void* handle, const fpga_memory* memory, const fpga_argument* arguments,      \
                uint32_t count, const uint32_t* table, uint32_t numbers, uint64_t max_cycles, \
                fpga_result* result);                                                         \
  }

namespace tilewright::fpga::rtl {

namespace abi {
FPGA_RTL_ABI
}

#define FPGA_RTL_TEXT_(...) #__VA_ARGS__
#define FPGA_RTL_TEXT(...) FPGA_RTL_TEXT_(__VA_ARGS__)
/// Declarations of the C interface.
inline constexpr const char* kAbiText = FPGA_RTL_TEXT(FPGA_RTL_ABI);

/// A top module as the C++ around it sees it.
struct HarnessPort {
  std::string name;  ///< what the names of its wires begin with
  bool writes = false;
  int channel = 0;
};
struct HarnessTop {
  std::string module = kTop, clock = "clk";
  std::string control = "s_";  ///< what names of AXI4-Lite begin with
  std::vector<HarnessPort> ports;
  int beat_bytes = 8, burst_beats = 32;
};
/// The C++ around the verilated model of such a module: its class `Model`, then `functions`.
std::string harness_of(const HarnessTop& top, std::string_view functions);
/// The C++ around the verilated model of a design with these ports.
std::string harness_of(const Design& design);

/// make_rtl with `text` in place of the design's own Verilog: tests break it.
Result<std::unique_ptr<RtlModel>> model_of(const Design& design, Numbers numbers,
                                           const std::string& text, Runs runs = Runs::Long);

}  // namespace tilewright::fpga::rtl
