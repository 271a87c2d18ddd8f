#include "tilewright/compile/gemmini/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/accel/gemmini/fsim.h"
#include "tilewright/base/names.h"
#include "tilewright/compile/accelerator_launch.h"
#include "tilewright/compile/gemmini/backend.h"
#include "tilewright/compile/hardware_text.h"

namespace tilewright::compile {
namespace {

std::string gemmini_label(const gemmini::Config& config) {
  return fmt::format("{0}x{0}, {1} + {2} KiB", config.dim, config.spad_kb, config.acc_kb);
}

/// Outputs with four axes, [n, c, h, w], are given as images: in DRAM they are [n, h, w, c], with
/// the channels filled up.
class GemminiImages final : public runtime::Launch {
 public:
  GemminiImages(std::shared_ptr<const gemmini::Program> program,
                std::unique_ptr<runtime::Launch> launch)
      : program_(std::move(program)), launch_(std::move(launch)) {}

  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    std::vector<Array> raw = outputs;
    const bool known = outputs.size() == program_->outputs.size();
    for (size_t i = 0; known && i < outputs.size(); ++i)
      if (is_image(outputs[i]))
        raw[i] = Array(DType::I8, {static_cast<int64_t>(program_->outputs[i].bytes)});
    TW_TRY_STATUS(launch_->run(inputs, raw));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (is_image(outputs[i])) TW_TRY_STATUS(unpack(raw[i], outputs[i]));
    return {};
  }

 private:
  static bool is_image(const Array& array) { return array.shape().size() == 4; }

  static Status unpack(const Array& raw, Array& image) {
    const Shape& s = image.shape();
    const int64_t pixels = s[2] * s[3], pitch = raw.size() / std::max<int64_t>(1, s[0] * pixels);
    if (pitch < s[1] || pitch * s[0] * pixels != raw.size() || image.dtype() != DType::I8)
      return fail(ErrorKind::Package, fmt::format("an output of {} bytes is no image {}",
                                                  raw.size(), tilewright::to_string(s)));
    const auto from = raw.as<int8_t>();
    const auto to = image.as<int8_t>();
    for (int64_t n = 0; n < s[0]; ++n)
      for (int64_t c = 0; c < s[1]; ++c)
        for (int64_t p = 0; p < pixels; ++p)
          to[static_cast<size_t>((n * s[1] + c) * pixels + p)] =
              from[static_cast<size_t>((n * pixels + p) * pitch + c)];
    return {};
  }

  std::shared_ptr<const gemmini::Program> program_;
  std::unique_ptr<runtime::Launch> launch_;
};

class GemminiRuntime final : public DeviceRuntime {
 public:
  std::vector<DeviceRow> devices() const override {
    return {{"gemmini:fsim", "functional simulator: results, no time"}};
  }

  Result<std::vector<TargetSummary>> targets() const override {
    std::vector<TargetSummary> summaries;
    for (const std::string& name : gemmini::builtin_configs()) {
      const gemmini::Config config = TW_TRY(gemmini::load_config(name));
      summaries.push_back(
          {"accelerators",
           {{"target", kGemminiDevice}, {"hw", name}, {"label", gemmini_label(config)}},
           {fmt::format("{} --hw {}", kGemminiDevice, name), gemmini_label(config),
            std::to_string(config.dim * config.dim) + " MAC/cycle", "simulator"}});
    }
    return summaries;
  }

  Result<std::unique_ptr<runtime::Launch>> load_launch(
      const std::string& name, std::string_view code, const LaunchSettings& settings,
      const std::shared_ptr<LaunchLog>& log) const override {
    auto program = std::make_shared<const gemmini::Program>(TW_TRY(gemmini::parse_program(code)));
    std::shared_ptr<gemmini::Device> device =
        TW_TRY(open_gemmini(settings.device, program->config, program->end()));
    const auto record = [id = device->name()](gemmini::LaunchReport report) {
      return std::make_shared<GemminiRecord>(id, std::move(report));
    };
    auto launch = TW_TRY(AcceleratorLaunch<gemmini::Device, gemmini::Program>::create(
        name, program, std::move(device), settings, log,
        {record, [](const std::string& folder, const gemmini::Program& dumped,
                    const std::string& final_image) {
           return gemmini::write_dump(folder, dumped, final_image);
         }}));
    return std::make_unique<GemminiImages>(std::move(program), std::move(launch));
  }

  Result<LaunchSummary> summary(const std::string& name, std::string_view code) const override {
    const gemmini::Program program = TW_TRY(gemmini::parse_program(code));
    const gemmini::Config& config = program.config;
    size_t commands = 0;
    for (const gemmini::Run& run : program.runs) commands += run.insns.size();
    LaunchSummary summary;
    summary.list = "accelerators";
    summary.line = fmt::format("{}: target {}, hardware {} ({}), {} commands", name, kGemminiDevice,
                               config.name, gemmini_label(config), commands);
    summary.json = {{"program", name},
                    {"target", kGemminiDevice},
                    {"hw", config.name},
                    {"label", gemmini_label(config)},
                    {"instructions", commands}};
    return summary;
  }

  Result<bool> fits_hardware(const std::string& name, std::string_view code,
                             const std::string& hardware) const override {
    TW_TRY_STATUS(
        check_gemmini_hardware(name, TW_TRY(gemmini::parse_program(code)).config, hardware));
    return true;
  }

  const ProgramReader* programs() const override { return &gemmini_programs(); }
  const HardwareReader* hardware() const override { return &gemmini_hardware(); }
};

class GemminiHardware final : public Hardware {
 public:
  explicit GemminiHardware(gemmini::Config config) : config_(std::move(config)) {}

  void rename(const std::string& name) override { config_.name = name; }
  std::map<std::string, std::string> settings() const override {
    return toml_settings(gemmini::to_toml(config_));
  }
  std::string toml() const override { return gemmini::to_toml(config_); }
  std::string json() const override { return settings_json(settings()); }
  std::string title() const override {
    return fmt::format("an array of {0}x{0} multipliers", config_.dim);
  }
  std::vector<std::vector<std::string>> memories() const override {
    const auto row = [&](const std::string& name, int64_t rows, int bytes, int kb) {
      return std::vector<std::string>{name, std::to_string(rows),
                                      std::to_string(config_.dim * bytes), std::to_string(kb)};
    };
    return {row("scratchpad", config_.spad_rows(), 1, config_.spad_kb),
            row("accumulator", config_.acc_rows(), 4, config_.acc_kb)};
  }
  Status check() const override { return gemmini::check(config_); }
  Status compilable() const override { return {}; }

 private:
  gemmini::Config config_;
};

class GemminiHardwareReader final : public HardwareReader {
 public:
  std::vector<std::string> builtin() const override { return gemmini::builtin_configs(); }
  std::string kind() const override { return "gemmini"; }
  Result<std::unique_ptr<Hardware>> load(const std::string& name) const override {
    return std::make_unique<GemminiHardware>(TW_TRY(gemmini::load_config(name)));
  }
  Result<std::unique_ptr<Hardware>> parse(const std::string& toml,
                                          const std::string& place) const override {
    return std::make_unique<GemminiHardware>(TW_TRY(gemmini::parse_config(toml, place)));
  }
};

}  // namespace

const DeviceRuntime& gemmini_runtime() {
  static const GemminiRuntime runtime;
  return runtime;
}

const HardwareReader& gemmini_hardware() {
  static const GemminiHardwareReader reader;
  return reader;
}

Result<std::unique_ptr<gemmini::Device>> open_gemmini(const std::string& id,
                                                      const gemmini::Config& config,
                                                      uint64_t dram_bytes) {
  if (id.empty() || id == kGemminiDevice || id == "gemmini:fsim")
    return gemmini::make_fsim(config, dram_bytes);
  std::vector<std::string> ids;
  for (const DeviceRow& row : gemmini_runtime().devices()) ids.push_back(row.id);
  return fail(ErrorKind::Device, fmt::format("'{}' cannot run code for Gemmini", id),
              fmt::format("devices for it: {}", fmt::join(ids, ", ")), did_you_mean(id, ids));
}

Status check_gemmini_hardware(const std::string& program, const gemmini::Config& own,
                              const std::string& name) {
  gemmini::Config other = TW_TRY(gemmini::load_config(name));
  other.name = own.name;
  return check_same_hardware(program, kGemminiDevice, name, gemmini::to_toml(own),
                             gemmini::to_toml(other), /*same_clock=*/true);
}

std::vector<Count> GemminiRecord::counters() const {
  std::vector<Count> counts;
  for_each_field(report_.counters, [&](std::string_view name, uint64_t value) {
    counts.push_back({std::string(name), value});
  });
  return counts;
}

}  // namespace tilewright::compile
