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

  /// The times of one run, by call.
  void add(const std::vector<int64_t>& times);

  std::string device() const override { return device_; }
  std::vector<CallTime> calls() const override;
  int64_t total_ns() const override;
  void reset() override;

 private:
  std::string device_;
  std::shared_ptr<const runtime::GpuProgram> program_;
  int64_t runs_ = 0;
  std::vector<int64_t> total_ns_;  ///< by call
};

}  // namespace tilewright::compile
