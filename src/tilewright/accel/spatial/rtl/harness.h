// What the host side and the C++ around the verilated model agree on. Internal.
#pragma once

#include <cstdint>

// One text for both sides: the compiler reads it here, and it is put in front of the harness.
#define SPATIAL_RTL_ABI                                                                            \
  enum { SPATIAL_FINISHED, SPATIAL_MAX_CYCLES, SPATIAL_DEADLOCK, SPATIAL_OUTSIDE };                \
  struct spatial_event {                                                                           \
    uint64_t cycle;                                                                                \
    int32_t queue;                                                                                 \
    int32_t end;                                                                                   \
  };                                                                                               \
  struct spatial_dram {                                                                            \
    unsigned char* bytes;                                                                          \
    uint64_t base, size;                                                                           \
  };                                                                                               \
  struct spatial_result {                                                                          \
    uint64_t cycles, outside, events;                                                              \
    uint32_t tokens, waiting, outcome;                                                             \
  };                                                                                               \
  extern "C" {                                                                                     \
  void* spatial_create(int latency, int gap);                                                      \
  void spatial_destroy(void* handle);                                                              \
  void spatial_launch(void* handle, spatial_dram dram, const unsigned char* insns,                 \
                      uint64_t insn_bytes, uint64_t count, uint64_t max_cycles, uint64_t patience, \
                      spatial_event* events, spatial_result* result);                              \
  }

namespace tilewright::spatial::rtl {

namespace abi {
SPATIAL_RTL_ABI
}

#define SPATIAL_RTL_TEXT_(...) #__VA_ARGS__
#define SPATIAL_RTL_TEXT(...) SPATIAL_RTL_TEXT_(__VA_ARGS__)
/// Declarations of the C interface.
inline constexpr const char* kAbiText = SPATIAL_RTL_TEXT(SPATIAL_RTL_ABI);

extern const char* const kHarness;  ///< needs kAbiText and kBus in front

}  // namespace tilewright::spatial::rtl
