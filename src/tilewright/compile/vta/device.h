// Devices for VTA programs, and the tools around these programs.
#pragma once

#include <memory>
#include <string>

#include "tilewright/accel/vta/device.h"
#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

const DeviceRuntime& vta_runtime();

/// `vta:fsim`, `vta:tsim`, `vta:rtl` or `vta:uio`; `vta` alone is vta:fsim.
/// errors: Device (unknown, with the list), Tool (rtl without Verilator).
Result<std::unique_ptr<vta::Device>> open_vta(const std::string& id, const vta::Config& config,
                                              uint64_t dram_bytes);

/// What a launch did: the sum of its runs.
class VtaLaunchRecord final : public LaunchRecord {
 public:
  VtaLaunchRecord(std::string device, std::shared_ptr<const vta::Program> program,
                  vta::LaunchReport report);

  const vta::LaunchReport& report() const { return report_; }

  std::string device() const override { return device_; }
  std::vector<Count> counters() const override;
  uint64_t cycles() const override { return report_.cycles; }
  double clock_mhz() const override { return program_->config.clock_mhz; }
  std::vector<LaunchLayer> layers() const override;
  std::vector<std::string> headings() const override;
  std::vector<std::string> row(const std::string& name) const override;
  std::optional<accel::RunTrace> trace() const override;

 private:
  std::string device_;
  std::shared_ptr<const vta::Program> program_;
  vta::LaunchReport report_;
};

/// A VTA program on a device, whose memory then has the program's image. Each run of the launch is
/// all runs of the program; the log has their sum.
/// errors: Invalid (the program is for another design), those of the device.
Result<std::unique_ptr<runtime::Launch>> make_vta_launch(
    const std::string& name, std::shared_ptr<const vta::Program> program,
    std::unique_ptr<vta::Device> device, const LaunchSettings& settings,
    std::shared_ptr<LaunchLog> log);

}  // namespace tilewright::compile
