// Configurations of the DPU for the verb `hw`, and whether a program fits one.
#include <fmt/format.h>

#include "tilewright/compile/dpu/backend.h"
#include "tilewright/compile/dpu/device.h"
#include "tilewright/compile/hardware_text.h"

namespace tilewright::compile {
namespace {

class DpuHardware final : public Hardware {
 public:
  explicit DpuHardware(dpu::Config config) : config_(std::move(config)) {}

  void rename(const std::string& name) override { config_.name = name; }
  std::map<std::string, std::string> settings() const override {
    return toml_settings(dpu::to_toml(config_));
  }
  std::string toml() const override { return dpu::to_toml(config_); }
  std::string json() const override { return settings_json(settings()); }
  std::string title() const override {
    return fmt::format("{} processing elements of {}x{}x{} MAC per cycle, {} MHz", config_.pe,
                       dpu::kBanks, dpu::kLanes, dpu::kLanes, config_.clock_mhz);
  }
  std::vector<std::vector<std::string>> memories() const override {
    std::vector<std::vector<std::string>> rows;
    const auto add = [&](const std::string& name, int64_t words, int64_t bytes) {
      rows.push_back({name, std::to_string(words), std::to_string(bytes),
                      std::to_string(words * bytes >> 10)});
    };
    for (int m = 0; m < dpu::kMemories; ++m)
      add(fmt::format("fm{}", m), config_.fm_words(m), dpu::kLanes);
    add("pm", config_.pm_depth, dpu::kPmWordBytes);
    return rows;
  }
  Status check() const override { return dpu::check(config_); }
  Status compilable() const override { return {}; }

 private:
  dpu::Config config_;
};

class DpuHardwareReader final : public HardwareReader {
 public:
  std::vector<std::string> builtin() const override { return dpu::builtin_configs(); }
  std::string kind() const override { return "dpu"; }
  Result<std::unique_ptr<Hardware>> load(const std::string& name) const override {
    return std::make_unique<DpuHardware>(TW_TRY(dpu::load_config(name)));
  }
  Result<std::unique_ptr<Hardware>> parse(const std::string& toml,
                                          const std::string& place) const override {
    return std::make_unique<DpuHardware>(TW_TRY(dpu::parse_config(toml, place)));
  }
};

}  // namespace

const HardwareReader& dpu_hardware() {
  static const DpuHardwareReader reader;
  return reader;
}

Status check_dpu_hardware(const std::string& program, const dpu::Config& own,
                          const std::string& name) {
  dpu::Config other = TW_TRY(dpu::load_config(name));
  const bool same_clock = own.clock_mhz == other.clock_mhz && own.timing == other.timing;
  other.name = own.name;
  other.clock_mhz = own.clock_mhz;
  other.timing = own.timing;
  other.compiler = own.compiler;
  return check_same_hardware(program, kDpuDevice, name, dpu::to_toml(own), dpu::to_toml(other),
                             same_clock);
}

}  // namespace tilewright::compile
