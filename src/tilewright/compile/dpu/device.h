// Devices for DPU programs, and the tools around these programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/device.h"
#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

const DeviceRuntime& dpu_runtime();
const ProgramReader& dpu_programs();
const HardwareReader& dpu_hardware();

/// `dpu:fsim` or `dpu:tsim`; `dpu` alone is dpu:fsim. errors: Device (unknown, with the list).
Result<std::unique_ptr<dpu::Device>> open_dpu(const std::string& id, const dpu::Config& config,
                                              uint64_t ddr_bytes);

/// Whether a program made for `own` runs on the configuration `name`: only clock, timing and what
/// the compiler does may differ. errors: Package, with every other setting that differs; Usage.
Status check_dpu_hardware(const std::string& program, const dpu::Config& own,
                          const std::string& name);

/// What a launch did: the sum of its runs, by kernels that work side by side.
class DpuLaunchRecord final : public LaunchRecord {
 public:
  DpuLaunchRecord(std::string device, std::shared_ptr<const dpu::Program> program,
                  dpu::LaunchReport report);

  std::string device() const override { return device_; }
  std::vector<Count> counters() const override;
  uint64_t cycles() const override { return report_.cycles; }
  double clock_mhz() const override { return program_->config.clock_mhz; }
  std::vector<LaunchLayer> layers() const override;
  std::vector<std::string> headings() const override;
  std::vector<std::string> row(const std::string& name) const override;
  std::optional<accel::RunTrace> trace() const override;
  std::optional<std::string> timeline() const override;

 private:
  std::string device_;
  std::shared_ptr<const dpu::Program> program_;
  dpu::LaunchReport report_;
};

}  // namespace tilewright::compile
