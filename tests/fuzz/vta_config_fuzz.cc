// Configurations of VTA, TOML or JSON: errors, or a configuration whose text means the same.
#include "fuzz_common.h"
#include "tilewright/accel/vta/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  fuzz::round_trip(
      fuzz::as_text(data, size),
      [](std::string_view text) { return vta::parse_config(text, "input"); },
      [](const vta::Config& config) { return vta::to_toml(config); });
  return 0;
}
