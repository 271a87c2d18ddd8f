// A program of an accelerator as a launch of the runtime, whatever its instructions are: constants
// are written once, inputs before every run.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/accel/common/device.h"
#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

/// `Device` is derived from accel::Device, `Program` from accel::Program.
template <class Device, class Program>
class AcceleratorLaunch final : public runtime::Launch {
 public:
  using Report = typename decltype(accel::launch_runs(std::declval<Device&>(),
                                                      std::declval<const Program&>()))::value_type;

  /// What is the accelerator's own.
  struct Own {
    /// For the log, after each run of the launch.
    std::function<std::shared_ptr<LaunchRecord>(Report)> record;
    /// Writes a program, with the inputs of a run in its image, and that image after the run.
    /// Empty: it has no form for dumps.
    std::function<Status(const std::string& folder, const Program&, const std::string& final_image)>
        dump;
  };

  /// Writes the program's image. errors: those of the device.
  static Result<std::unique_ptr<runtime::Launch>> create(std::string name,
                                                         std::shared_ptr<const Program> program,
                                                         std::shared_ptr<Device> device,
                                                         LaunchSettings settings,
                                                         std::shared_ptr<LaunchLog> log, Own own) {
    TW_TRY_STATUS(accel::write_image(*device, *program));
    return std::unique_ptr<runtime::Launch>(
        new AcceleratorLaunch(std::move(name), std::move(program), std::move(device),
                              std::move(settings), std::move(log), std::move(own)));
  }

  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    TW_TRY_STATUS(check_sizes("input", program_->inputs, inputs));
    TW_TRY_STATUS(check_sizes("output", program_->outputs, outputs));
    for (size_t i = 0; i < inputs.size(); ++i)
      TW_TRY_STATUS(
          accel::write_through(*device_, program_->inputs[i].address, bytes_of(inputs[i])));
    const bool dumps = !settings_.dump_folder.empty() && own_.dump;
    Program dumped;
    if (dumps) dumped = with_inputs(inputs);
    TW_TRY_STATUS(launch());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const accel::Region& region = program_->outputs[i];
      TW_TRY_STATUS(
          device_->read(region.address, static_cast<char*>(outputs[i].data()), region.bytes));
    }
    return dumps ? dump(dumped) : Status{};
  }

 private:
  AcceleratorLaunch(std::string name, std::shared_ptr<const Program> program,
                    std::shared_ptr<Device> device, LaunchSettings settings,
                    std::shared_ptr<LaunchLog> log, Own own)
      : name_(std::move(name)),
        program_(std::move(program)),
        device_(std::move(device)),
        settings_(std::move(settings)),
        log_(std::move(log)),
        own_(std::move(own)) {}

  static std::string_view bytes_of(const Array& array) {
    return {static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes())};
  }

  Status check_sizes(const char* what, const std::vector<accel::Region>& regions,
                     const std::vector<Array>& arrays) const {
    if (regions.size() != arrays.size())
      return fail(ErrorKind::Package, fmt::format("'{}' has {} {}s, the program passes {}", name_,
                                                  regions.size(), what, arrays.size()));
    for (size_t i = 0; i < arrays.size(); ++i)
      if (static_cast<uint64_t>(arrays[i].bytes()) != regions[i].bytes)
        return fail(ErrorKind::Package,
                    fmt::format("{} '{}' of '{}' has {} bytes, not {}", what, regions[i].name,
                                name_, regions[i].bytes, arrays[i].bytes()));
    return {};
  }

  Status launch() {
    accel::LaunchOptions options;
    options.record_times = settings_.record_times;
    Result<Report> report = accel::launch_runs(*device_, *program_, options);
    if (!report) return tl::unexpected<Error>(std::move(report.error()).at(name_));
    log_->set(name_, own_.record(*std::move(report)));
    return {};
  }

  Program with_inputs(const std::vector<Array>& inputs) const {
    Program program = *program_;
    for (size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(program.image.data() + (program.inputs[i].address - program.base),
                  inputs[i].data(), static_cast<size_t>(inputs[i].bytes()));
    return program;
  }

  Status dump(const Program& dumped) const {
    std::string final_image(program_->image.size(), '\0');
    TW_TRY_STATUS(device_->read(program_->base, final_image.data(), final_image.size()));
    return own_.dump(settings_.dump_folder + "/" + name_, dumped, final_image);
  }

  std::string name_;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<Device> device_;
  LaunchSettings settings_;
  std::shared_ptr<LaunchLog> log_;
  Own own_;
};

}  // namespace tilewright::compile
