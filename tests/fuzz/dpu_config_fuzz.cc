// Configurations of the DPU: errors, or a configuration whose text means the same.
#include "fuzz_common.h"
#include "tilewright/accel/dpu/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  fuzz::round_trip(
      fuzz::as_text(data, size),
      [](std::string_view text) { return dpu::parse_config(text, "input"); },
      [](const dpu::Config& config) { return dpu::to_toml(config); });
  return 0;
}
