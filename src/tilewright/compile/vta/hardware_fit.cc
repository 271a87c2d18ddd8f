#include "tilewright/compile/vta/hardware_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/compile/hardware_text.h"
#include "tilewright/compile/vta/place.h"

namespace tilewright::compile {

std::map<std::string, std::string> settings_of(const vta::Config& config) {
  return toml_settings(vta::to_toml(config));
}

Status check_hardware(const std::string& program, const vta::Config& own, const std::string& name,
                      const vta::Config& config) {
  if (vta::same_architecture(own, config)) return {};
  vta::Config retimed = config;  // what may differ is equal here
  retimed.name = own.name;
  retimed.clock_mhz = own.clock_mhz;
  retimed.timing = own.timing;
  retimed.extensions.pipelined_alu = own.extensions.pipelined_alu;
  const auto lines = differing_settings(settings_of(own), settings_of(retimed), name);
  return fail(
      ErrorKind::Package,
      fmt::format("'{}' is a program for other hardware than {}", program, name),
      fmt::format("{}", fmt::join(lines, "\n")),
      fmt::format("compile the model again: tilewright compile MODEL --target vta --hw {}", name));
}

Status check_program_hardware(const std::string& program, const vta::Config& own,
                              const std::string& hw) {
  const vta::Config config = TW_TRY(vta::load_config(hw));
  TW_TRY_STATUS(check_hardware(program, own, hw, config));
  if (own.clock_mhz == config.clock_mhz && own.timing == config.timing) return {};
  return fail(ErrorKind::Usage,
              fmt::format("'{}' keeps the clock and the timing that it was made with", program),
              fmt::format("{} has others", hw), fmt::format("tilewright sim PACKAGE --hw {}", hw));
}

namespace {

class VtaHardware final : public Hardware {
 public:
  explicit VtaHardware(vta::Config config) : config_(std::move(config)) {}

  void rename(const std::string& name) override { config_.name = name; }
  std::map<std::string, std::string> settings() const override { return settings_of(config_); }
  std::string toml() const override { return vta::to_toml(config_); }
  std::string json() const override { return vta::to_json(config_); }
  std::string title() const override {
    return fmt::format("{}: {}x{} by {}x{}, {} MAC per cycle, {} MHz", vta::label(config_),
                       config_.batch(), config_.block_in(), config_.block_in(), config_.block_out(),
                       config_.batch() * config_.block_in() * config_.block_out(),
                       config_.clock_mhz);
  }
  std::vector<std::vector<std::string>> memories() const override {
    std::vector<std::vector<std::string>> rows;
    for (const vta::Mem mem :
         {vta::Mem::Uop, vta::Mem::Inp, vta::Mem::Wgt, vta::Mem::Acc, vta::Mem::Out})
      rows.push_back({std::string(vta::name(mem)), std::to_string(config_.depth(mem)),
                      std::to_string(config_.element_bytes(mem)),
                      std::to_string(config_.depth(mem) * config_.element_bytes(mem) >> 10)});
    return rows;
  }
  Status check() const override { return vta::check(config_); }
  Status compilable() const override { return check_compilable(config_); }

 private:
  vta::Config config_;
};

class VtaHardwareReader final : public HardwareReader {
 public:
  std::vector<std::string> builtin() const override { return vta::builtin_configs(); }
  Result<std::unique_ptr<Hardware>> load(const std::string& name) const override {
    return std::make_unique<VtaHardware>(TW_TRY(vta::load_config(name)));
  }
  Result<std::unique_ptr<Hardware>> parse(const std::string& toml,
                                          const std::string& place) const override {
    return std::make_unique<VtaHardware>(TW_TRY(vta::parse_config(toml, place)));
  }
};

}  // namespace

const HardwareReader& vta_hardware() {
  static const VtaHardwareReader reader;
  return reader;
}

}  // namespace tilewright::compile
