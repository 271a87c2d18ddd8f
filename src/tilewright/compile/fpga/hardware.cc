// Devices for --hw, `targets` and the verb `hw`.
#include <fmt/format.h>

#include "tilewright/compile/fpga/backend.h"
#include "tilewright/compile/fpga/launch.h"
#include "tilewright/compile/fpga/network.h"
#include "tilewright/compile/hardware_text.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/runtime/fpga/uio.h"
#include "tilewright/runtime/fpga/xrt.h"

namespace tilewright::compile {
namespace {

std::string fpga_label(const hw::FpgaDevice& device) {
  return fmt::format("{}, {} MHz", device.part, device.clock_mhz);
}

/// A device without who says so of its numbers: that changes no program.
hw::FpgaDevice without_sources(hw::FpgaDevice device) {
  for (std::string* source :
       {&device.source, &device.usable.source, &device.memory.source, &device.port.source})
    source->clear();
  for (hw::FpgaOperator& row : device.operators) row.source.clear();
  return device;
}

class FpgaRuntime final : public DeviceRuntime {
 public:
  std::vector<DeviceRow> devices() const override {
    return {{kFpgaCsim, "the generated C++ under this machine's compiler: results, no time"},
            {kFpgaTsim, "cycle simulator of designs: results, cycles, who waits for what", true},
            {kFpgaRtl, "Verilog of designs under Verilator: results, cycles", true},
            {kFpgaUio, "a board with the Verilog, whose registers Linux maps", true},
            {kFpgaXrt, "a card with the C++ as a vendor's compiler built it, through XRT"}};
  }

  std::vector<DeviceState> states() const override {
    std::vector<DeviceState> states = DeviceRuntime::states();
    const auto say = [](DeviceState& state, const auto& opened) {
      if (!opened) state.reason = fmt::format("{}: {}", opened.error().what, opened.error().why);
    };
    say(states[states.size() - 2], runtime::open_uio({}));
    say(states.back(), runtime::xrt_card());
    return states;
  }

  Result<std::unique_ptr<runtime::Launch>> load_launch(
      const std::string& name, std::string_view code, const LaunchSettings& settings,
      const std::shared_ptr<LaunchLog>& log) const override {
    return load_fpga_launch(name, code, settings, log);
  }

  Result<LaunchSummary> summary(const std::string& name, std::string_view code) const override {
    const FpgaNetwork network = TW_TRY(parse_fpga_network(code));
    const hw::FpgaDevice& device = network.device;
    LaunchSummary summary;
    summary.list = "accelerators";
    summary.line = fmt::format("{}: target {}, hardware {} ({}), {}", name, kFpgaTarget,
                               device.name, fpga_label(device), layers_text(network));
    summary.json = {{"program", name},
                    {"target", kFpgaTarget},
                    {"hw", device.name},
                    {"label", fpga_label(device)},
                    {"clock_mhz", device.clock_mhz},
                    {"designs", network.structures()},
                    {"model_cycles", network.cycles()}};
    summary.title = name;
    summary.rows = {{"layer", "design", "cycles by the model"}};
    for (const FpgaNetwork::Call& call : network.calls) {
      const FpgaNetwork::Design& design = network.designs[static_cast<size_t>(call.design)];
      summary.rows.push_back({call.name, std::to_string(design.structure),
                              design.cycles > 0 ? std::to_string(design.cycles) : "unknown"});
    }
    return summary;
  }

  /// The clock is part of a device: how long a cycle is says how much may happen in it.
  Result<bool> fits_hardware(const std::string& name, std::string_view code,
                             const std::string& hardware) const override {
    const hw::FpgaDevice own = without_sources(TW_TRY(parse_fpga_network(code)).device);
    hw::FpgaDevice other = without_sources(TW_TRY(hw::load_fpga_device(hardware)));
    other.name = own.name;
    TW_TRY_STATUS(check_same_hardware(name, kFpgaTarget, hardware, hw::to_toml(own),
                                      hw::to_toml(other), true));
    return true;
  }

  Result<std::vector<TargetSummary>> targets() const override {
    std::vector<TargetSummary> summaries;
    for (const hw::FpgaDevice& device : hw::fpga_devices())
      summaries.push_back(
          {"accelerators",
           {{"target", kFpgaTarget}, {"hw", device.name}, {"label", fpga_label(device)}},
           {fmt::format("{} --hw {}", kFpgaTarget, device.name), fpga_label(device),
            fmt::format("{} DSPs", device.cells.dsps), "simulator"}});
    return summaries;
  }

  const HardwareReader* hardware() const override { return &fpga_hardware(); }
};

class FpgaHardware final : public Hardware {
 public:
  explicit FpgaHardware(hw::FpgaDevice device) : device_(std::move(device)) {}

  void rename(const std::string& name) override { device_.name = name; }
  std::map<std::string, std::string> settings() const override {
    return toml_settings(hw::to_toml(device_));
  }
  std::string toml() const override { return hw::to_toml(device_); }
  std::string json() const override { return settings_json(settings()); }
  std::string title() const override {
    return fmt::format("{} ({}), {} MHz: {} LUTs, {} FFs, {} DSPs, {} x {} GB/s", device_.name,
                       device_.part, device_.clock_mhz, device_.cells.luts, device_.cells.ffs,
                       device_.cells.dsps, device_.memory.channels, device_.memory.gigabytes);
  }
  std::vector<std::vector<std::string>> memories() const override {
    std::vector<std::vector<std::string>> rows;
    for (const hw::Memory& memory : as_target(FpgaTarget{device_}).memories)
      rows.push_back({memory.name, std::to_string(memory.banks),
                      std::to_string(memory.bytes / memory.banks),
                      std::to_string(memory.bytes >> 10)});
    return rows;
  }
  Status check() const override { return {}; }  // its reader has done that
  Status compilable() const override { return {}; }

 private:
  hw::FpgaDevice device_;
};

class FpgaHardwareReader final : public HardwareReader {
 public:
  std::vector<std::string> builtin() const override { return hw::fpga_names(); }
  std::string kind() const override { return kFpgaTarget; }
  Result<std::unique_ptr<Hardware>> load(const std::string& name) const override {
    return std::make_unique<FpgaHardware>(TW_TRY(hw::load_fpga_device(name)));
  }
  Result<std::unique_ptr<Hardware>> parse(const std::string& toml,
                                          const std::string& place) const override {
    return std::make_unique<FpgaHardware>(TW_TRY(hw::parse_fpga_device(toml, place)));
  }
};

}  // namespace

const DeviceRuntime& fpga_runtime() {
  static const FpgaRuntime runtime;
  return runtime;
}

const HardwareReader& fpga_hardware() {
  static const FpgaHardwareReader reader;
  return reader;
}

}  // namespace tilewright::compile
