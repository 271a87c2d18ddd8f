// What the runtime and the part of it that calls XRT agree on. That part is a library of its own
// (plugin/xrt_plugin.cc), so that nothing else needs XRT.
#pragma once

#include <cstdint>

extern "C" {

struct tw_xrt_argument {
  void* data;  ///< null: memory of the kernel's own
  uint64_t bytes;
  int32_t reads, writes;  ///< of the kernel
  int32_t same_as;        ///< an argument before it whose buffer it uses, or -1
};

/// How a call ended.
enum tw_xrt_outcome { TW_XRT_DONE, TW_XRT_NO_DEVICE, TW_XRT_BAD_XCLBIN, TW_XRT_RUN_FAILED };

/// Opens the first card. `text`: its name, or what went wrong; at most `size` bytes with the 0 at
/// the end.
int tw_xrt_card(char* text, uint64_t size);
/// Opens the first card, loads the file, finds the kernel. `text`: likewise.
int tw_xrt_open(const char* xclbin, const char* kernel, char* text, uint64_t size);
/// Runs a kernel of a file, which is loaded first if the card has another one. `scalars`: arguments
/// behind those with memory.
int tw_xrt_run(const char* xclbin, const char* kernel, const tw_xrt_argument* arguments,
               uint64_t count, const int64_t* scalars, uint64_t scalar_count, char* text,
               uint64_t size);

}  // extern "C"
