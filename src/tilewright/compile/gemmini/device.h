// Devices for Gemmini's programs, and the tools around these programs.
#pragma once

#include <memory>
#include <string>

#include "tilewright/accel/gemmini/device.h"
#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

const DeviceRuntime& gemmini_runtime();
const ProgramReader& gemmini_programs();
const HardwareReader& gemmini_hardware();

/// `gemmini:fsim`, or `gemmini` alone. errors: Device (unknown, with the list).
Result<std::unique_ptr<gemmini::Device>> open_gemmini(const std::string& id,
                                                      const gemmini::Config& config,
                                                      uint64_t dram_bytes);

/// Whether a program made for `own` runs on the configuration `name`. errors: Package, with every
/// setting that differs; Usage.
Status check_gemmini_hardware(const std::string& program, const gemmini::Config& own,
                              const std::string& name);

/// What a launch did: the sum of its runs.
class GemminiRecord final : public LaunchRecord {
 public:
  GemminiRecord(std::string device, gemmini::LaunchReport report)
      : device_(std::move(device)), report_(std::move(report)) {}
  std::string device() const override { return device_; }
  std::vector<Count> counters() const override;

 private:
  std::string device_;
  gemmini::LaunchReport report_;
};

}  // namespace tilewright::compile
