#include "tilewright/accel/vta/rtl/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/common/rtl/model.h"
#include "tilewright/accel/vta/rtl/harness.h"
#include "tilewright/accel/vta/rtl/rtl.h"

namespace tilewright::vta::rtl {
namespace {

/// In front of the harness: the interface, the width of the bus, bytes of one write transfer.
std::string harness(const Config& config) {
  return fmt::format(
      "#include <cstdint>\n{}\nconstexpr int kBus = {};\nconstexpr int kTransfer = {};\n{}",
      kAbiText, config.timing.bus_bytes,
      std::min<int64_t>(config.timing.bus_bytes, config.element_bytes(Mem::Out)), kHarness);
}

}  // namespace

Result<std::string> model_library(const Config& config) {
  return accel::compiled({"vta", verilog(config), harness(config)});
}

}  // namespace tilewright::vta::rtl
