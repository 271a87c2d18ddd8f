#include "tilewright/compile/vta/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/names.h"
#include "tilewright/compile/accelerator_launch.h"
#include "tilewright/compile/vta/hardware_fit.h"
#include "tilewright/compile/vta/launch.h"
#include "tilewright/compile/vta/programs.h"
#include "tilewright/runtime/fpga/uio.h"

namespace tilewright::compile {
namespace {

class VtaRuntime final : public DeviceRuntime {
 public:
  std::vector<DeviceRow> devices() const override {
    return {{"vta:fsim", "functional simulator: results, no time"},
            {"vta:tsim", "cycle simulator: results and cycles", true},
            {"vta:rtl", "the generated Verilog under Verilator", true},
            {"vta:uio", "a board with the Verilog, whose registers Linux maps", true}};
  }

  /// Tools of rtl are only looked for: building the model takes long.
  std::vector<DeviceState> states() const override {
    std::vector<DeviceState> states = DeviceRuntime::states();
    const Result<std::string> version = checked_version(kVerilator);
    if (!version)
      states[2].reason = fmt::format("{}: {}", version.error().what, version.error().why);
    if (const auto board = runtime::open_uio({}); !board)
      states.back().reason = fmt::format("{}: {}", board.error().what, board.error().why);
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
  if (id == "vta:uio") return vta::make_board(config, dram_bytes, TW_TRY(runtime::open_uio({})));
  std::vector<std::string> ids;
  for (const DeviceRow& row : vta_runtime().devices()) ids.push_back(row.id);
  return fail(ErrorKind::Device, fmt::format("'{}' cannot run code for vta", id),
              fmt::format("devices for it: {}", fmt::join(ids, ", ")), did_you_mean(id, ids));
}

Result<std::unique_ptr<runtime::Launch>> make_vta_launch(
    const std::string& name, std::shared_ptr<const vta::Program> program,
    std::unique_ptr<vta::Device> device, const LaunchSettings& settings,
    std::shared_ptr<LaunchLog> log) {
  TW_TRY_STATUS(vta::check_design(*device, *program));
  const std::string id = device->name();
  using VtaLaunch = AcceleratorLaunch<vta::Device, vta::Program>;
  const auto record = [id, program](vta::LaunchReport report) {
    return std::make_shared<VtaLaunchRecord>(id, program, std::move(report));
  };
  return VtaLaunch::create(name, program, std::move(device), settings, std::move(log),
                           {record, vta::write_dump});
}

}  // namespace tilewright::compile
