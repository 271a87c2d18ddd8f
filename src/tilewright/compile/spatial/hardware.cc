// Designs for --hw and the verb `hw`, and whether a program fits one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/unknown_name.h"
#include "tilewright/compile/hardware_text.h"
#include "tilewright/compile/spatial/backend.h"
#include "tilewright/compile/spatial/device.h"

namespace tilewright::compile {
namespace {

class SpatialHardware final : public Hardware {
 public:
  explicit SpatialHardware(spatial::Design design) : design_(std::move(design)) {}

  void rename(const std::string& name) override { design_.name = name; }
  std::map<std::string, std::string> settings() const override {
    return toml_settings(spatial::to_toml(design_));
  }
  std::string toml() const override { return spatial::to_toml(design_); }
  std::string json() const override { return settings_json(settings()); }
  std::string title() const override {
    return fmt::format("{} of {}x{}, {} MAC per cycle, {} MHz", spatial::name(design_.unit),
                       design_.rows, design_.cols, design_.units(), design_.clock_mhz);
  }
  std::vector<std::vector<std::string>> memories() const override {
    std::vector<std::vector<std::string>> rows;
    const auto add = [&](const char* name, int64_t bytes, int64_t each) {
      rows.push_back(
          {name, std::to_string(bytes / each), std::to_string(each), std::to_string(bytes >> 10)});
    };
    add("scratchpad", design_.spad_bytes(), design_.bank_bytes);
    add("private", design_.local_bytes(), 4);
    return rows;
  }
  Status check() const override {
    const std::vector<std::string> problems = spatial::problems(design_);
    if (problems.empty()) return {};
    return fail(ErrorKind::Invalid, fmt::format("{}", fmt::join(problems, "; ")));
  }
  Status compilable() const override { return {}; }

 private:
  spatial::Design design_;
};

class SpatialHardwareReader final : public HardwareReader {
 public:
  std::vector<std::string> builtin() const override { return {spatial::Design().name}; }
  std::string kind() const override { return "spatial"; }
  Result<std::unique_ptr<Hardware>> load(const std::string& name) const override {
    return std::make_unique<SpatialHardware>(TW_TRY(load_design(name)));
  }
  Result<std::unique_ptr<Hardware>> parse(const std::string& toml,
                                          const std::string& place) const override {
    return std::make_unique<SpatialHardware>(TW_TRY(spatial::read_design(toml, place)));
  }
};

}  // namespace

const HardwareReader& spatial_hardware() {
  static const SpatialHardwareReader reader;
  return reader;
}

Result<spatial::Design> load_design(const std::string& name_or_path) {
  spatial::Design design;
  if (name_or_path == design.name) return design;
  if (!is_path(name_or_path))
    return unknown_name(fmt::format("no spatial accelerator is called '{}'", name_or_path),
                        name_or_path, {design.name});
  return spatial::read_design(TW_TRY(read_file(name_or_path)), name_or_path);
}

Status check_spatial_hardware(const std::string& program, const spatial::Design& own,
                              const std::string& name) {
  spatial::Design other = TW_TRY(load_design(name));
  const bool same_clock = own.clock_mhz == other.clock_mhz && own.timing == other.timing;
  other.name = own.name;
  other.clock_mhz = own.clock_mhz;
  other.timing = own.timing;
  other.host = own.host;
  return check_same_hardware(program, kSpatialDevice, name, spatial::to_toml(own),
                             spatial::to_toml(other), same_clock);
}

}  // namespace tilewright::compile
