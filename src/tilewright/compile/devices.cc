#include "tilewright/compile/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/unknown_name.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/hardware_text.h"

namespace tilewright::compile {

void LaunchLog::set(const std::string& name, std::shared_ptr<LaunchRecord> record) {
  for (Entry& entry : entries)
    if (entry.name == name) {
      entry.record = std::move(record);
      return;
    }
  entries.push_back({name, std::move(record)});
}

std::vector<DeviceState> DeviceRuntime::states() const {
  std::vector<DeviceState> states;
  for (const DeviceRow& row : devices()) states.push_back({row.id, "", row.detail});
  return states;
}

Result<std::unique_ptr<runtime::Launch>> DeviceRuntime::load_launch(
    const std::string& name, std::string_view, const LaunchSettings&,
    const std::shared_ptr<LaunchLog>&) const {
  return fail(ErrorKind::Device, fmt::format("there is no device for the launch '{}'", name));
}

Result<LaunchSummary> DeviceRuntime::summary(const std::string&, std::string_view) const {
  return LaunchSummary();
}

Result<bool> DeviceRuntime::fits_hardware(const std::string&, std::string_view,
                                          const std::string&) const {
  return false;
}

Result<std::unique_ptr<DeviceProgram>> ProgramReader::parse_text(const std::string&,
                                                                 std::string_view,
                                                                 const std::string& place,
                                                                 const std::string&) const {
  return fail(ErrorKind::Usage, fmt::format("'{}' cannot be read for this target", place),
              "its instructions are printed as text, but not read", "a package or a program dump");
}

std::vector<DeviceEntry> all_devices() {
  std::vector<DeviceEntry> entries;
  for (const Backend* backend : backends())
    for (DeviceRow& row : backend->runtime().devices())
      entries.push_back({std::string(backend->name()), std::move(row)});
  return entries;
}

std::string backend_name(const std::string& device) { return device.substr(0, device.find(':')); }

bool keeps_time(const std::string& id) {
  const std::vector<DeviceEntry> all = all_devices();
  return std::any_of(all.begin(), all.end(), [&](const DeviceEntry& entry) {
    return entry.row.id == id && entry.row.keeps_time;
  });
}

std::string timed_device(std::string_view backend) {
  for (const DeviceEntry& entry : all_devices())
    if (entry.target == backend && entry.row.keeps_time) return entry.row.id;
  return "";
}

runtime::LaunchLoader make_launch_loader(const LaunchSettings& settings,
                                         std::shared_ptr<LaunchLog> log) {
  return [settings, log](const std::string& name, const runtime::LaunchInfo& info,
                         std::string_view code) -> Result<std::unique_ptr<runtime::Launch>> {
    const Backend* backend = find_backend(info.device);
    if (backend == nullptr)
      return fail(ErrorKind::Device, fmt::format("there is no device for '{}' code", info.device));
    return backend->runtime().load_launch(name, code, settings, log);
  };
}

Status check_package_hardware(const runtime::Package& package, const std::string& hw) {
  TW_TRY(load_hardware(hw));
  bool any = false;
  for (const auto& [name, info] : package.program().launches) {
    const Backend* backend = find_backend(info.device);
    if (backend != nullptr)
      any |= TW_TRY(backend->runtime().fits_hardware(name, package.launch_code(name), hw));
  }
  if (!any)
    return fail(ErrorKind::Usage, "the package has no program for an accelerator",
                "--hw describes one", "leave --hw out");
  return {};
}

/// The word behind `kind = ` in a file; empty if it says none, or there is no such file.
static std::string kind_of_file(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return {};
  const std::map<std::string, std::string> settings = toml_settings(*text);
  const auto kind = settings.find("kind");
  if (kind == settings.end() || kind->second.size() < 2) return {};
  return kind->second.substr(1, kind->second.find_first_of("\"'", 1) - 1);
}

Result<LoadedHardware> load_hardware(const std::string& hw) {
  std::vector<const HardwareReader*> readers;
  for (const Backend* backend : backends())
    if (const HardwareReader* reader = backend->runtime().hardware()) readers.push_back(reader);
  TW_CHECK(!readers.empty(), "no back-end has configurations");
  std::vector<std::string> known;
  for (const HardwareReader* reader : readers)
    for (std::string& name : reader->builtin()) known.push_back(std::move(name));
  if (!is_path(hw) && std::find(known.begin(), known.end(), hw) == known.end())
    return unknown_name(fmt::format("no hardware is called '{}'", hw), hw, known);
  const std::string kind = kind_of_file(hw);
  std::stable_partition(readers.begin(), readers.end(), [&](const HardwareReader* reader) {
    const std::vector<std::string> names = reader->builtin();
    const bool own_kind = !kind.empty() && reader->kind() == kind;
    return own_kind || std::find(names.begin(), names.end(), hw) != names.end();
  });
  Result<std::unique_ptr<Hardware>> first = readers[0]->load(hw);
  if (first) return LoadedHardware{readers[0], *std::move(first)};
  for (size_t i = 1; i < readers.size(); ++i)
    if (auto loaded = readers[i]->load(hw)) return LoadedHardware{readers[i], *std::move(loaded)};
  return tl::unexpected<Error>(std::move(first.error()));
}

}  // namespace tilewright::compile
