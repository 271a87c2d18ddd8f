#include "tilewright/runtime/gpu/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "tilewright/base/environment.h"
#include "tilewright/runtime/gpu/cuda.h"
#include "tilewright/runtime/gpu/opencl.h"

namespace tilewright::runtime {
namespace {

using Devices = std::vector<std::shared_ptr<GpuDevice>>;

struct Language {
  const char* name;
  Result<Devices> (*devices)();
  const char* variable;  ///< of the environment: which device is meant without a choice
};
constexpr Language kLanguages[] = {{"opencl", opencl_devices, "TILEWRIGHT_OPENCL_DEVICE"},
                                   {"cuda", cuda_devices, "TILEWRIGHT_CUDA_DEVICE"}};

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string list_of(const Devices& devices) {
  std::vector<std::string> rows;
  for (const auto& device : devices)
    rows.push_back(fmt::format("{} ({})", device->info().id, device->info().name));
  return fmt::format("{}", fmt::join(rows, ", "));
}

/// By number, or by a part of the name that only one device has.
Result<std::shared_ptr<GpuDevice>> choose(const Devices& devices, const std::string& choice) {
  size_t number = 0;
  const char* end = choice.data() + choice.size();
  const auto [stop, error] = std::from_chars(choice.data(), end, number);
  if (error == std::errc() && stop == end && number < devices.size()) return devices[number];
  Devices named;
  for (const auto& device : devices)
    if (lower(device->info().name).find(lower(choice)) != std::string::npos)
      named.push_back(device);
  if (named.size() == 1) return named[0];
  return fail(ErrorKind::Device,
              fmt::format("{} device is '{}'", named.empty() ? "no" : "more than one", choice),
              "there are " + list_of(devices), "tilewright devices");
}

double sum_of(const std::vector<int64_t>& times) {
  return static_cast<double>(std::accumulate(times.begin(), times.end(), int64_t{0}));
}

/// A program as a step of a session.
class GpuLaunch : public Launch {
 public:
  GpuLaunch(std::string name, std::shared_ptr<const GpuProgram> program,
            std::shared_ptr<GpuDevice> device, const GpuOptions& options,
            std::unique_ptr<GpuInstance> instance)
      : name_(std::move(name)),
        program_(std::move(program)),
        device_(std::move(device)),
        options_(options),
        instance_(std::move(instance)) {}

  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    TW_TRY_STATUS(check_sizes("input", program_->inputs, inputs));
    TW_TRY_STATUS(check_sizes("output", program_->outputs, outputs));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].bytes() > 0) TW_TRY_STATUS(instance_->write_input(i, inputs[i].data()));
    TW_TRY_STATUS(instance_->execute());
    if (options_.on_times) {
      const std::vector<int64_t> calls = instance_->call_times();
      options_.on_times(
          calls, instance_->calls_add_up() ? sum_of(calls) : TW_TRY(instance_->time_runs(1)));
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].bytes() > 0) TW_TRY_STATUS(instance_->read_output(i, outputs[i].data()));
    return {};
  }

 private:
  Status check_sizes(const char* what, const std::vector<int>& buffers,
                     const std::vector<Array>& arrays) const {
    if (buffers.size() != arrays.size())
      return fail(ErrorKind::Package, fmt::format("'{}' has {} {}s, the program passes {}", name_,
                                                  buffers.size(), what, arrays.size()));
    for (size_t i = 0; i < arrays.size(); ++i) {
      const GpuBuffer& buffer = program_->buffers[static_cast<size_t>(buffers[i])];
      // A tensor without elements has a buffer of one byte, which nobody reads.
      if (std::max<int64_t>(1, arrays[i].bytes()) != buffer.bytes)
        return fail(ErrorKind::Package,
                    fmt::format("{} '{}' of '{}' has {} bytes, not {}", what, buffer.name, name_,
                                buffer.bytes, arrays[i].bytes()));
    }
    return {};
  }

  std::string name_;
  std::shared_ptr<const GpuProgram> program_;
  std::shared_ptr<GpuDevice> device_;
  GpuOptions options_;
  std::unique_ptr<GpuInstance> instance_;
};

}  // namespace

Result<double> GpuInstance::time_runs(int64_t runs) {
  double sum = 0;
  for (int64_t run = 0; run < runs; ++run) {
    TW_TRY_STATUS(execute());
    const std::vector<int64_t> times = call_times();
    if (times.empty())
      return fail(ErrorKind::Device, "the device gives no times", "events cannot be read");
    sum += sum_of(times);
  }
  return sum / static_cast<double>(runs);
}

std::vector<GpuDeviceInfo> list_gpus(std::vector<std::string>* problems) {
  std::vector<GpuDeviceInfo> infos;
  for (const Language& language : kLanguages) {
    const Result<Devices> devices = language.devices();
    if (devices)
      for (const auto& device : *devices) infos.push_back(device->info());
    else if (problems != nullptr)
      problems->push_back(fmt::format("{}: {} ({}); {}", language.name, devices.error().what,
                                      devices.error().why, devices.error().fix));
  }
  return infos;
}

Result<std::shared_ptr<GpuDevice>> open_gpu(const std::string& id) {
  const size_t colon = std::min(id.find(':'), id.size());
  const auto language =
      std::find_if(std::begin(kLanguages), std::end(kLanguages),
                   [&](const Language& entry) { return id.compare(0, colon, entry.name) == 0; });
  if (language == std::end(kLanguages))
    return fail(ErrorKind::Device, fmt::format("there is no device '{}'", id),
                "GPUs are called opencl:N and cuda:N", "tilewright devices");
  const Devices devices = TW_TRY(language->devices());
  if (colon < id.size()) return choose(devices, id.substr(colon + 1));
  const std::optional<std::string> preferred = environment(language->variable);
  return preferred ? choose(devices, *preferred) : devices[0];
}

Result<std::unique_ptr<Launch>> make_gpu_launch(std::string name,
                                                std::shared_ptr<const GpuProgram> program,
                                                std::shared_ptr<GpuDevice> device,
                                                const GpuOptions& options) {
  Result<std::unique_ptr<GpuInstance>> instance = device->load(program, options);
  if (!instance) return tl::unexpected<Error>(std::move(instance.error()).at(name));
  return std::make_unique<GpuLaunch>(std::move(name), std::move(program), std::move(device),
                                     options, *std::move(instance));
}

LaunchLoader gpu_launch_loader(std::string device) {
  return [device = std::move(device)](const std::string& name, const LaunchInfo& info,
                                      std::string_view code) -> Result<std::unique_ptr<Launch>> {
    if (std::none_of(std::begin(kLanguages), std::end(kLanguages),
                     [&](const Language& language) { return info.device == language.name; }))
      return fail(
          ErrorKind::Device,
          fmt::format("'{}' runs on '{}', which this runtime cannot drive", name, info.device), {},
          "run it with the tilewright command, or compile the model for a CPU or GPU");
    auto program = std::make_shared<const GpuProgram>(TW_TRY(parse_gpu_program(code)));
    return make_gpu_launch(name, std::move(program),
                           TW_TRY(open_gpu(device.empty() ? info.device : device)), {});
  };
}

}  // namespace tilewright::runtime
