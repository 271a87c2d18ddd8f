// Files of FPGAs: errors, or a device whose text means the same.
#include "fuzz_common.h"
#include "tilewright/hw/fpga_device_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  fuzz::round_trip(
      fuzz::as_text(data, size),
      [](std::string_view text) { return hw::parse_fpga_device(text, "input"); },
      [](const hw::FpgaDevice& device) { return hw::to_toml(device); });
  return 0;
}
