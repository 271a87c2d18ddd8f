#include "tilewright/driver/tuning/gpu_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "tilewright/compile/gpu/launch.h"
#include "tilewright/measure/task.h"

namespace tilewright::driver {
namespace {

class GpuKernel final : public measure::DeviceKernel {
 public:
  GpuKernel(const Func& func, std::unique_ptr<runtime::GpuInstance> instance)
      : instance_(std::move(instance)) {
    for (size_t i = 0; i < func.params.size(); ++i) {
      const Param& param = func.params[i];
      if (param.mode == ParamMode::Out)
        results_.push_back(i);
      else if (!param.values)
        inputs_.push_back(i);
    }
  }

  Status write(const std::vector<Array>& operands) override {
    for (size_t i = 0; i < inputs_.size(); ++i)
      TW_TRY_STATUS(instance_->write_input(i, operands[inputs_[i]].data()));
    for (size_t i = 0; i < results_.size(); ++i)
      TW_TRY_STATUS(instance_->write_output(i, operands[results_[i]].data()));
    return {};
  }

  Result<double> run(int64_t calls) override { return instance_->time_runs(calls); }

  Status read(std::vector<Array>& operands) override {
    for (size_t i = 0; i < results_.size(); ++i)
      TW_TRY_STATUS(instance_->read_output(i, operands[results_[i]].data()));
    return {};
  }

 private:
  std::unique_ptr<runtime::GpuInstance> instance_;
  std::vector<size_t> inputs_, results_;  ///< parameters
};

}  // namespace

Result<std::shared_ptr<runtime::GpuDevice>> gpu_for(const hw::GpuTarget& target,
                                                    const std::string& device) {
  static std::mutex lock;
  static std::map<std::string, std::shared_ptr<runtime::GpuDevice>> known;
  const std::string language(hw::name(target.language));
  const std::string id = device.empty() || device == "cpu" ? language : device;
  if (!id.starts_with(language))
    return fail(ErrorKind::Device, fmt::format("{} runs no code for {}", id, target.name), {},
                fmt::format("--device {}", language));
  const std::lock_guard<std::mutex> guard(lock);
  std::shared_ptr<runtime::GpuDevice>& found = known[id];
  if (found == nullptr) found = TW_TRY(runtime::open_gpu(id));
  return found;
}

std::string gpu_target_key(const hw::GpuTarget& target, const runtime::GpuDeviceInfo& device) {
  return measure::gpu_key(target, device.name);
}

Result<std::unique_ptr<measure::DeviceKernel>> load_gpu_kernel(const Func& scheduled,
                                                               const hw::Target& target, int,
                                                               const std::string& device) {
  const hw::GpuTarget& gpu = *target.gpu();
  for (const Param& param : scheduled.params)
    if (!param.strides.empty())
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is part of a larger buffer", param.buffer.name()),
                  "only whole buffers are measured on GPUs");
  const auto opened = TW_TRY(gpu_for(gpu, device));
  compile::GpuLaunchCode code = TW_TRY(compile::compile_scheduled_gpu_func(scheduled, gpu));
  runtime::GpuOptions options;
  options.record_times = true;
  auto instance = TW_TRY(
      opened->load(std::make_shared<const runtime::GpuProgram>(std::move(code.program)), options));
  return std::make_unique<GpuKernel>(scheduled, std::move(instance));
}

}  // namespace tilewright::driver
