#include "tilewright/compile/vta/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/names.h"
#include "tilewright/compile/vta/hardware_fit.h"
#include "tilewright/compile/vta/launch.h"
#include "tilewright/compile/vta/programs.h"

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
    Result<vta::LaunchReport> report = accel::launch_runs(*device_, *program_, options);
    if (!report) return tl::unexpected<Error>(std::move(report.error()).at(name_));
    log_->set(name_,
              std::make_shared<VtaLaunchRecord>(device_->name(), program_, *std::move(report)));
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

class VtaRuntime final : public DeviceRuntime {
 public:
  std::vector<DeviceRow> devices() const override {
    return {{"vta:fsim", "functional simulator: results, no time"},
            {"vta:tsim", "cycle simulator: results and cycles", true},
            {"vta:rtl", "the generated Verilog under Verilator", true}};
  }

  /// Tools of rtl are only looked for: building the model takes long.
  std::vector<DeviceState> states() const override {
    std::vector<DeviceState> states = DeviceRuntime::states();
    const Result<std::string> version = checked_version(kVerilator);
    if (!version)
      states.back().reason = fmt::format("{}: {}", version.error().what, version.error().why);
    return states;
  }

  std::vector<DeviceTool> tools() const override {
    return {{kVerilator, "vta:rtl and rtl --lint"}, {kIcarus, "rtl --bench"}, {kYosys, "synth"}};
  }

  Result<std::vector<TargetSummary>> targets() const override {
    std::vector<TargetSummary> summaries;
    for (const std::string& config : vta::builtin_configs()) {
      const vta::Config hw = TW_TRY(vta::load_config(config));
      const int macs = hw.batch() * hw.block_in() * hw.block_out();
      summaries.push_back({"accelerators",
                           {{"target", kVtaDevice}, {"hw", config}, {"label", vta::label(hw)}},
                           {fmt::format("{} --hw {}", kVtaDevice, config), vta::label(hw),
                            std::to_string(macs) + " MAC/cycle", "simulators"}});
    }
    return summaries;
  }

  Result<std::unique_ptr<runtime::Launch>> load_launch(
      const std::string& name, std::string_view code, const LaunchSettings& settings,
      const std::shared_ptr<LaunchLog>& log) const override {
    auto program = std::make_shared<const vta::Program>(TW_TRY(vta::parse_program(code)));
    std::unique_ptr<vta::Device> device =
        TW_TRY(open_vta(settings.device, program->config, program->end()));
    return make_vta_launch(name, std::move(program), std::move(device), settings, log);
  }

  Result<LaunchSummary> summary(const std::string& name, std::string_view code) const override {
    const vta::Program program = TW_TRY(vta::parse_program(code));
    const vta::Config& hw = program.config;
    size_t instructions = 0;
    for (const vta::Run& run : program.runs) instructions += run.insns.size();
    LaunchSummary summary;
    summary.list = "accelerators";
    summary.line = fmt::format("{}: target {}, hardware {} ({}), {} MHz, {} instructions", name,
                               kVtaDevice, hw.name, vta::label(hw), hw.clock_mhz, instructions);
    summary.json = {
        {"program", name},         {"target", kVtaDevice},      {"hw", hw.name},
        {"label", vta::label(hw)}, {"clock_mhz", hw.clock_mhz}, {"instructions", instructions}};
    return summary;
  }

  Result<bool> fits_hardware(const std::string& name, std::string_view code,
                             const std::string& hardware) const override {
    TW_TRY_STATUS(check_program_hardware(name, TW_TRY(vta::parse_program(code)).config, hardware));
    return true;
  }

  const ProgramReader* programs() const override { return &vta_programs(); }
  const HardwareReader* hardware() const override { return &vta_hardware(); }
};

}  // namespace

const DeviceRuntime& vta_runtime() {
  static const VtaRuntime runtime;
  return runtime;
}

Result<std::unique_ptr<vta::Device>> open_vta(const std::string& id, const vta::Config& config,
                                              uint64_t dram_bytes) {
  if (id.empty() || id == kVtaDevice || id == "vta:fsim") return vta::make_fsim(config, dram_bytes);
  if (id == "vta:tsim") return vta::make_tsim(config, dram_bytes);
  if (id == "vta:rtl") return vta::make_rtl(config, dram_bytes);
  std::vector<std::string> ids;
  for (const DeviceRow& row : vta_runtime().devices()) ids.push_back(row.id);
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

}  // namespace tilewright::compile
