// GPUs of a language: programs loaded on them, and the times of their calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/compile/device_backend.h"
#include "tilewright/hw/gpu_target.h"
#include "tilewright/runtime/gpu/program.h"

namespace tilewright::compile {

const DeviceRuntime& gpu_runtime(hw::GpuLanguage language);

/// A launch whose times are recorded: sums over all runs.
class GpuLaunchRecord final : public LaunchRecord {
 public:
  GpuLaunchRecord(std::string device, std::shared_ptr<const runtime::GpuProgram> program);

  /// The times of one run, by call, and of a run among others. units: ns.
  void add(const std::vector<int64_t>& times, double run);

  std::string device() const override { return device_; }
  std::vector<CallTime> calls() const override;
  double runs_ns() const override { return runs_ns_; }
  double run_ns() const override { return mean(runs_ns_); }
  void reset() override;

 private:
  double mean(double total) const { return total / static_cast<double>(runs_ > 0 ? runs_ : 1); }

  std::string device_;
  std::shared_ptr<const runtime::GpuProgram> program_;
  int64_t runs_ = 0;
  double runs_ns_ = 0;
  std::vector<int64_t> total_ns_;  ///< by call
};

}  // namespace tilewright::compile
