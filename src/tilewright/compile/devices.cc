#include "tilewright/compile/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/names.h"
#include "tilewright/runtime/gpu/device.h"

namespace tilewright::compile {
namespace {

/// A VTA program on a device: constants are written once, inputs before every run.
class VtaLaunch : public runtime::Launch {
 public:
  VtaLaunch(std::string name, std::shared_ptr<const vta::Program> program,
            std::unique_ptr<vta::Device> device, LaunchSettings settings,
            std::shared_ptr<LaunchLog> log)
      : name_(std::move(name)),
        program_(std::move(program)),
        device_(std::move(device)),
        settings_(std::move(settings)),
        log_(std::move(log)) {}

  Status prepare() {
    TW_TRY_STATUS(vta::check_design(*device_, *program_));
    return accel::write_image(*device_, *program_);
  }

  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    TW_TRY_STATUS(check_sizes("input", program_->inputs, inputs));
    TW_TRY_STATUS(check_sizes("output", program_->outputs, outputs));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string_view bytes(static_cast<const char*>(inputs[i].data()),
                                   static_cast<size_t>(inputs[i].bytes()));
      TW_TRY_STATUS(accel::write_through(*device_, program_->inputs[i].address, bytes));
    }
    if (!settings_.dump_folder.empty()) TW_TRY_STATUS(dump_before(inputs));
    TW_TRY_STATUS(launch());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const vta::Region& region = program_->outputs[i];
      TW_TRY_STATUS(
          device_->read(region.address, static_cast<char*>(outputs[i].data()), region.bytes));
    }
    return settings_.dump_folder.empty() ? Status{} : dump_after();
  }

 private:
  Status check_sizes(const char* what, const std::vector<vta::Region>& regions,
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
    vta::LaunchOptions options;
    options.record_times = settings_.record_times;
    LaunchLog::Entry& entry = log_->entry(name_);
    entry.program = program_;
    Result<vta::LaunchReport> report = accel::launch_runs(*device_, *program_, options);
    if (!report) return tl::unexpected<Error>(std::move(report.error()).at(name_));
    entry.report = *std::move(report);
    return {};
  }

  std::string dump_path() const { return settings_.dump_folder + "/" + name_; }

  Status dump_before(const std::vector<Array>& inputs) {
    dumped_ = *program_;
    for (size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(dumped_.image.data() + (program_->inputs[i].address - program_->base),
                  inputs[i].data(), static_cast<size_t>(inputs[i].bytes()));
    return {};
  }

  Status dump_after() {
    std::string final_image(program_->image.size(), '\0');
    TW_TRY_STATUS(device_->read(program_->base, final_image.data(), final_image.size()));
    TW_TRY_STATUS(vta::write_dump(dump_path(), dumped_, final_image));
    dumped_ = {};
    return {};
  }

  std::string name_;
  std::shared_ptr<const vta::Program> program_;
  std::unique_ptr<vta::Device> device_;
  LaunchSettings settings_;
  std::shared_ptr<LaunchLog> log_;
  vta::Program dumped_;
};

/// Options that add the times of every run to the log, if they are to be recorded.
runtime::GpuOptions gpu_options(const LaunchSettings& settings, const std::string& name,
                                const std::shared_ptr<const runtime::GpuProgram>& program,
                                const std::shared_ptr<LaunchLog>& log) {
  if (!settings.record_times) return {};
  const size_t index = log->gpus.size();
  log->gpus.push_back({name, program, 0, std::vector<int64_t>(program->calls.size())});
  return {true, [log, index](const std::vector<int64_t>& times) {
            LaunchLog::GpuEntry& entry = log->gpus[index];
            ++entry.runs;
            for (size_t i = 0; i < times.size(); ++i) entry.total_ns[i] += times[i];
          }};
}

Result<std::unique_ptr<runtime::Launch>> load_gpu(const LaunchSettings& settings,
                                                  const std::shared_ptr<LaunchLog>& log,
                                                  const std::string& name,
                                                  const std::string& language,
                                                  std::string_view code) {
  auto program =
      std::make_shared<const runtime::GpuProgram>(TW_TRY(runtime::parse_gpu_program(code)));
  std::shared_ptr<runtime::GpuDevice> device =
      TW_TRY(runtime::open_gpu(settings.device.empty() ? language : settings.device));
  const runtime::GpuOptions options = gpu_options(settings, name, program, log);
  return runtime::make_gpu_launch(name, std::move(program), std::move(device), options);
}

std::vector<std::string> ids_for(const std::string& target) {
  std::vector<std::string> ids;
  for (const DeviceEntry& entry : device_table())
    if (entry.target == target) ids.push_back(entry.id);
  return ids;
}

}  // namespace

const std::vector<DeviceEntry>& device_table() {
  static const std::vector<DeviceEntry> entries = {
      {"cpu", "cpu", "this machine"},
      {"opencl", "opencl", "the first OpenCL device; opencl:1 is the next one"},
      {"cuda", "cuda", "the first GPU with a CUDA driver; cuda:1 is the next one"},
      {"vta:fsim", "vta", "functional simulator: results, no time"},
      {"vta:tsim", "vta", "cycle simulator: results and cycles"},
      {"vta:rtl", "vta", "the generated Verilog under Verilator"},
  };
  return entries;
}

Result<std::unique_ptr<vta::Device>> open_vta(const std::string& id, const vta::Config& config,
                                              uint64_t dram_bytes) {
  if (id.empty() || id == "vta" || id == "vta:fsim") return vta::make_fsim(config, dram_bytes);
  if (id == "vta:tsim") return vta::make_tsim(config, dram_bytes);
  if (id == "vta:rtl") return vta::make_rtl(config, dram_bytes);
  const std::vector<std::string> ids = ids_for("vta");
  return fail(ErrorKind::Device, fmt::format("'{}' cannot run code for vta", id),
              fmt::format("devices for it: {}", fmt::join(ids, ", ")), did_you_mean(id, ids));
}

Result<std::unique_ptr<runtime::Launch>> make_vta_launch(
    const std::string& name, std::shared_ptr<const vta::Program> program,
    std::unique_ptr<vta::Device> device, const LaunchSettings& settings,
    std::shared_ptr<LaunchLog> log) {
  auto launch = std::make_unique<VtaLaunch>(name, std::move(program), std::move(device), settings,
                                            std::move(log));
  TW_TRY_STATUS(launch->prepare());
  return launch;
}

LaunchLog::Entry& LaunchLog::entry(const std::string& name) {
  for (Entry& entry : entries)
    if (entry.name == name) return entry;
  entries.push_back({name, nullptr, {}});
  return entries.back();
}

runtime::LaunchLoader make_launch_loader(const LaunchSettings& settings,
                                         std::shared_ptr<LaunchLog> log) {
  return [settings, log](const std::string& name, const runtime::LaunchInfo& info,
                         std::string_view code) -> Result<std::unique_ptr<runtime::Launch>> {
    if (info.device == "opencl" || info.device == "cuda")
      return load_gpu(settings, log, name, info.device, code);
    if (info.device != "vta")
      return fail(ErrorKind::Device, fmt::format("there is no device for '{}' code", info.device));
    auto program = std::make_shared<const vta::Program>(TW_TRY(vta::parse_program(code)));
    std::unique_ptr<vta::Device> device =
        TW_TRY(open_vta(settings.device, program->config, program->end()));
    return make_vta_launch(name, std::move(program), std::move(device), settings, log);
  };
}

}  // namespace tilewright::compile
