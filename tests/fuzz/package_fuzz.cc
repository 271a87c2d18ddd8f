// libFuzzer harness of packages: no bytes crash the reader, and what it accepts can be run.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tilewright/runtime/testing/fuzz_package.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilewright::runtime::fuzz_package({reinterpret_cast<const char*>(data), size});
  return 0;
}
