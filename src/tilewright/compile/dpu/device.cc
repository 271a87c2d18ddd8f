#include "tilewright/compile/dpu/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/accel/dpu/sim/fsim.h"
#include "tilewright/accel/dpu/sim/tsim.h"
#include "tilewright/base/names.h"
#include "tilewright/compile/dpu/backend.h"
#include "tilewright/compile/dpu/launch.h"

namespace tilewright::compile {
namespace {

std::string dpu_label(const dpu::Config& config) {
  return fmt::format("{} PE, {:.4g} TOPS, {} MHz", config.pe, config.peak_ops() * 1e-12,
                     config.clock_mhz);
}

class DpuRuntime final : public DeviceRuntime {
 public:
  std::vector<DeviceRow> devices() const override {
    return {{"dpu:fsim", "functional simulator: results, no time"},
            {"dpu:tsim", "cycle simulator: results and cycles", true}};
  }

  Result<std::vector<TargetSummary>> targets() const override {
    std::vector<TargetSummary> summaries;
    for (const std::string& config : dpu::builtin_configs()) {
      const dpu::Config hw = TW_TRY(dpu::load_config(config));
      const int macs = hw.pe * dpu::kBanks * dpu::kLanes * dpu::kLanes;
      summaries.push_back({"accelerators",
                           {{"target", kDpuDevice}, {"hw", config}, {"label", dpu_label(hw)}},
                           {fmt::format("{} --hw {}", kDpuDevice, config), dpu_label(hw),
                            std::to_string(macs) + " MAC/cycle", "simulators"}});
    }
    return summaries;
  }

  Result<std::unique_ptr<runtime::Launch>> load_launch(
      const std::string& name, std::string_view code, const LaunchSettings& settings,
      const std::shared_ptr<LaunchLog>& log) const override {
    auto program = std::make_shared<const dpu::Program>(TW_TRY(dpu::parse_program(code)));
    std::unique_ptr<dpu::Device> device =
        TW_TRY(open_dpu(settings.device, program->config, program->end()));
    return make_dpu_launch(name, std::move(program), std::move(device), settings, log);
  }

  Result<LaunchSummary> summary(const std::string& name, std::string_view code) const override {
    const dpu::Program program = TW_TRY(dpu::parse_program(code));
    const dpu::Config& hw = program.config;
    size_t instructions = 0;
    for (const dpu::Run& run : program.runs) instructions += run.insns.size();
    LaunchSummary summary;
    summary.list = "accelerators";
    summary.line = fmt::format("{}: target {}, hardware {} ({}), {} instructions", name, kDpuDevice,
                               hw.name, dpu_label(hw), instructions);
    summary.json = {
        {"program", name},        {"target", kDpuDevice},      {"hw", hw.name},
        {"label", dpu_label(hw)}, {"clock_mhz", hw.clock_mhz}, {"instructions", instructions}};
    return summary;
  }

  Result<bool> fits_hardware(const std::string& name, std::string_view code,
                             const std::string& hardware) const override {
    TW_TRY_STATUS(check_dpu_hardware(name, TW_TRY(dpu::parse_program(code)).config, hardware));
    return true;
  }

  const ProgramReader* programs() const override { return &dpu_programs(); }
  const HardwareReader* hardware() const override { return &dpu_hardware(); }
};

}  // namespace

const DeviceRuntime& dpu_runtime() {
  static const DpuRuntime runtime;
  return runtime;
}

Result<std::unique_ptr<dpu::Device>> open_dpu(const std::string& id, const dpu::Config& config,
                                              uint64_t ddr_bytes) {
  if (id.empty() || id == kDpuDevice || id == "dpu:fsim") return dpu::make_fsim(config, ddr_bytes);
  if (id == "dpu:tsim") return dpu::make_tsim(config, ddr_bytes);
  std::vector<std::string> ids;
  for (const DeviceRow& row : dpu_runtime().devices()) ids.push_back(row.id);
  return fail(ErrorKind::Device, fmt::format("'{}' cannot run code for the DPU", id),
              fmt::format("devices for it: {}", fmt::join(ids, ", ")), did_you_mean(id, ids));
}

}  // namespace tilewright::compile
