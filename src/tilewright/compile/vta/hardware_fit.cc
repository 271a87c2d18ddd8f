#include "tilewright/compile/vta/hardware_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "tilewright/accel/vta/program.h"
#include "tilewright/compile/vta/launch.h"

namespace tilewright::compile {

std::map<std::string, std::string> settings_of(const vta::Config& config) {
  std::map<std::string, std::string> settings;
  const std::string toml = vta::to_toml(config);
  std::string section;
  for (size_t start = 0; start < toml.size();) {
    const size_t end = std::min(toml.find('\n', start), toml.size());
    const std::string line = toml.substr(start, end - start);
    start = end + 1;
    if (line.starts_with("[")) section = line.substr(1, line.find(']') - 1) + ".";
    const size_t equals = line.find(" = ");
    if (equals != std::string::npos && !line.starts_with("#"))
      settings[section + line.substr(0, equals)] = line.substr(equals + 3);
  }
  return settings;
}

Status check_hardware(const std::string& program, const vta::Config& own, const std::string& name,
                      const vta::Config& config) {
  if (vta::same_architecture(own, config)) return {};
  vta::Config retimed = config;  // what may differ is equal here
  retimed.name = own.name;
  retimed.clock_mhz = own.clock_mhz;
  retimed.timing = own.timing;
  retimed.extensions.pipelined_alu = own.extensions.pipelined_alu;
  const auto wanted = settings_of(own), there = settings_of(retimed);
  std::vector<std::string> lines;
  for (const auto& [key, value] : wanted)
    if (const auto other = there.find(key); other == there.end() || other->second != value)
      lines.push_back(fmt::format("{} is {} in the program, {} in {}", key, value,
                                  other == there.end() ? "absent" : other->second, name));
  return fail(
      ErrorKind::Package,
      fmt::format("'{}' is a program for other hardware than {}", program, name),
      fmt::format("{}", fmt::join(lines, "\n")),
      fmt::format("compile the model again: tilewright compile MODEL --target vta --hw {}", name));
}

Status check_package_hardware(const runtime::Package& package, const std::string& hw) {
  const vta::Config config = TW_TRY(vta::load_config(hw));
  bool any = false;
  for (const auto& [name, info] : package.program().launches) {
    if (info.device != kVtaDevice) continue;
    any = true;
    const vta::Config own = TW_TRY(vta::parse_program(package.launch_code(name))).config;
    TW_TRY_STATUS(check_hardware(name, own, hw, config));
    if (own.clock_mhz != config.clock_mhz || !(own.timing == config.timing))
      return fail(ErrorKind::Usage,
                  fmt::format("'{}' keeps the clock and the timing that it was made with", name),
                  fmt::format("{} has others", hw),
                  fmt::format("tilewright sim PACKAGE --hw {}", hw));
  }
  if (!any)
    return fail(ErrorKind::Usage, "the package has no program for an accelerator",
                "--hw describes one", "leave --hw out");
  return {};
}

}  // namespace tilewright::compile
