// Devices for programs of spatial accelerators, and the tools around them.
#pragma once

#include <memory>
#include <string>

#include "tilewright/accel/spatial/device.h"
#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

const DeviceRuntime& spatial_runtime();
const HardwareReader& spatial_hardware();

/// A design: `spatial`, or a file. errors: Usage (no such name), Io, those of read_design.
Result<spatial::Design> load_design(const std::string& name_or_path);

/// `spatial:fsim` (`spatial` alone is the same), `spatial:tsim`, `spatial:rtl`.
/// errors: Device (unknown, with the list), those of make_rtl.
Result<std::unique_ptr<spatial::Device>> open_spatial(const std::string& id,
                                                      const spatial::Design& design);

/// Whether a program made for `own` runs on the design `name`: only clock, timing and host may
/// differ. errors: Package, with every other key that differs; Usage.
Status check_spatial_hardware(const std::string& program, const spatial::Design& own,
                              const std::string& name);

/// What a launch did.
class SpatialLaunchRecord final : public LaunchRecord {
 public:
  SpatialLaunchRecord(std::string device, std::shared_ptr<const spatial::Program> program,
                      spatial::LaunchReport report)
      : device_(std::move(device)), program_(std::move(program)), report_(std::move(report)) {}

  std::string device() const override { return device_; }
  std::vector<Count> counters() const override;
  uint64_t cycles() const override { return report_.cycles; }
  double clock_mhz() const override { return program_->design.clock_mhz; }
  std::vector<LaunchLayer> layers() const override;
  std::vector<std::string> headings() const override;
  std::vector<std::string> row(const std::string& name) const override;

 private:
  std::string device_;
  std::shared_ptr<const spatial::Program> program_;
  spatial::LaunchReport report_;
};

}  // namespace tilewright::compile
