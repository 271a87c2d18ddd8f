#include "tilewright/compile/hardware_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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

std::string dump_format(const std::string& folder) {
  std::ifstream file(std::filesystem::path(folder) / "manifest.json");
  const auto manifest = nlohmann::json::parse(file, nullptr, false);
  if (!manifest.is_object()) return "";
  const auto format = manifest.find("format");
  return format != manifest.end() && format->is_string() ? format->get<std::string>() : "";
}

}  // namespace tilewright::compile
