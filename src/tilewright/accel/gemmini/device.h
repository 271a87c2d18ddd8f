// Gemmini as the host sees it; the simulator implements it (fsim.h).
#pragma once

#include <cstdint>
#include <tuple>

#include "tilewright/accel/common/device.h"
#include "tilewright/accel/gemmini/program.h"

namespace tilewright::gemmini {

/// What a launch did.
struct Counters {
  uint64_t commands = 0, loads = 0, stores = 0, preloads = 0, computes = 0;
  uint64_t load_bytes = 0, zero_bytes = 0, store_bytes = 0;  ///< zero_bytes: written without DRAM
  uint64_t macs = 0;                                         ///< of the given rows and columns

  static constexpr auto fields() {
    using C = Counters;
    return std::tuple{field("commands", &C::commands),
                      field("loads", &C::loads),
                      field("stores", &C::stores),
                      field("preloads", &C::preloads),
                      field("computes", &C::computes),
                      field("load_bytes", &C::load_bytes),
                      field("zero_bytes", &C::zero_bytes),
                      field("store_bytes", &C::store_bytes),
                      field("macs", &C::macs)};
  }
};

using accel::LaunchOptions;
using LaunchReport = accel::LaunchReport<Counters>;

/// Each launch begins with both memories full of zeros and nothing configured.
class Device : public accel::Device<Insn, Counters> {
 public:
  virtual const Config& config() const = 0;
};

/// Writes the image and runs everything. errors: Invalid (a program for another configuration; what
/// the device refuses).
Result<LaunchReport> execute(Device& device, const Program& program,
                             const LaunchOptions& options = {},
                             const accel::AfterRun& after_run = {});

}  // namespace tilewright::gemmini
