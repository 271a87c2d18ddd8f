// Configurations of Gemmini: errors, or a configuration whose text means the same.
#include "fuzz_common.h"
#include "tilewright/accel/gemmini/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  fuzz::round_trip(
      fuzz::as_text(data, size),
      [](std::string_view text) { return gemmini::parse_config(text, "input"); },
      [](const gemmini::Config& config) { return gemmini::to_toml(config); });
  return 0;
}
