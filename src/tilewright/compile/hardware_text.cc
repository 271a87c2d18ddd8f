#include "tilewright/compile/hardware_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"

namespace tilewright::compile {

std::map<std::string, std::string> toml_settings(const std::string& toml) {
  std::map<std::string, std::string> settings;
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

std::vector<std::string> differing_settings(const std::map<std::string, std::string>& own,
                                            const std::map<std::string, std::string>& other,
                                            const std::string& name) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : own)
    if (const auto there = other.find(key); there == other.end() || there->second != value)
      lines.push_back(fmt::format("{} is {} in the program, {} in {}", key, value,
                                  there == other.end() ? "absent" : there->second, name));
  return lines;
}

std::string settings_json(const std::map<std::string, std::string>& settings) {
  nlohmann::ordered_json json;
  for (const auto& [key, value] : settings) {
    const bool text = value.starts_with('\'') || value.starts_with('"');
    json[key] = text ? nlohmann::ordered_json(value.substr(1, value.size() - 2))
                     : parse_ordered_json(value);
  }
  return json_text(json);
}

Status check_same_hardware(const std::string& program, const std::string& target,
                           const std::string& name, const std::string& own,
                           const std::string& other, bool same_clock) {
  const auto lines = differing_settings(toml_settings(own), toml_settings(other), name);
  if (!lines.empty())
    return fail(ErrorKind::Package,
                fmt::format("'{}' is a program for other hardware than {}", program, name),
                fmt::format("{}", fmt::join(lines, "\n")),
                fmt::format("compile the model again: tilewright compile MODEL --target {} --hw {}",
                            target, name));
  if (same_clock) return {};
  return fail(ErrorKind::Usage,
              fmt::format("'{}' keeps the clock and the timing that it was made with", program),
              fmt::format("{} has others", name),
              fmt::format("tilewright sim PACKAGE --hw {}", name));
}

std::string dump_format(const std::string& folder) {
  const auto text = read_file(folder + "/manifest.json");
  const auto manifest = parse_json(text.value_or(""), std::nothrow);
  if (!manifest.is_object()) return "";
  const auto format = manifest.find("format");
  return format != manifest.end() && format->is_string() ? format->get<std::string>() : "";
}

}  // namespace tilewright::compile
