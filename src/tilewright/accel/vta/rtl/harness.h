// What the generator's host side and the C++ around the verilated model agree on.
#pragma once

#include <cstdint>

// One text for both sides: the compiler reads it here, and it is put in front of the harness.
#define VTA_RTL_ABI                                                                               \
  enum { VTA_FINISHED, VTA_MAX_CYCLES, VTA_DEADLOCK, VTA_ERROR_BIT, VTA_OUTSIDE };                \
  struct vta_event {                                                                              \
    uint64_t cycle;                                                                               \
    int32_t module; /* load, compute, alu, store */                                               \
    int32_t end;                                                                                  \
  };                                                                                              \
  struct vta_result {                                                                             \
    uint64_t cycles, simulated, outside, events;                                                  \
    uint32_t status, dispatched, acc_writes, outcome;                                             \
  };                                                                                              \
  extern "C" {                                                                                    \
  void* vta_create(unsigned char* dram, uint64_t limit, int latency, int gap);                    \
  void vta_destroy(void* handle);                                                                 \
  void vta_launch(void* handle, uint32_t address, uint32_t count, uint64_t max_cycles,            \
                  uint64_t patience, vta_event* events, uint64_t max_events, vta_result* result); \
  }

namespace tilewright::vta::rtl {

namespace abi {
VTA_RTL_ABI
}

#define VTA_RTL_TEXT_(...) #__VA_ARGS__
#define VTA_RTL_TEXT(...) VTA_RTL_TEXT_(__VA_ARGS__)
/// Declarations of the C interface.
inline constexpr const char* kAbiText = VTA_RTL_TEXT(VTA_RTL_ABI);

extern const char* const kHarness;  ///< needs kAbiText, kBus and kTransfer in front

}  // namespace tilewright::vta::rtl
