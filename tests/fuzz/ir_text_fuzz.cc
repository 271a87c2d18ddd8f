// libFuzzer harness of the IR's text form: no text crashes, and what parses round-trips.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tilewright/ir/testing/fuzz_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilewright::testing::fuzz_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
