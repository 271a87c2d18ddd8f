// hw: accelerators as values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/output_file.h"
#include "tilewright/compile/devices.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

constexpr const char* kSet = "--set";

struct HwOptions {
  std::string action, first, second, output;
  std::vector<std::string> settings;
};

/// A value as its file has it: words, which a shell leaves without quotes, get them.
std::string toml_value(const std::string& value) {
  const auto in_word = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  const bool word = !value.empty() && std::isalpha(static_cast<unsigned char>(value[0])) &&
                    std::all_of(value.begin(), value.end(), in_word);
  const bool known = value == "true" || value == "false" || value == "inf" || value == "nan";
  return word && !known ? fmt::format("\"{}\"", value) : value;
}

/// `base` with KEY=VALUE settings, by way of its text: one parser knows the keys.
Result<std::unique_ptr<compile::Hardware>> with_settings(const compile::LoadedHardware& base,
                                                         const std::vector<std::string>& settings) {
  std::map<std::string, std::string> values = base.hardware->settings();
  std::set<std::string> given;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos)
      return fail(ErrorKind::Usage, fmt::format("--set '{}' is not KEY=VALUE", setting), {},
                  "--set log_batch=1");
    const std::string key = setting.substr(0, equals);
    if (!given.insert(key).second)
      return fail(ErrorKind::Usage, fmt::format("--set {} is given more than once", key), {},
                  "leave all but one out");
    values[key] = toml_value(setting.substr(equals + 1));
  }
  std::string toml, sections;
  for (const auto& [key, value] : values)
    if (key.find('.') == std::string::npos) toml += fmt::format("{} = {}\n", key, value);
  std::string section;
  for (const auto& [key, value] : values) {
    const size_t dot = key.find('.');
    if (dot == std::string::npos) continue;
    if (key.substr(0, dot) != section)
      sections += fmt::format("[{}]\n", section = key.substr(0, dot));
    sections += fmt::format("{} = {}\n", key.substr(dot + 1), value);
  }
  auto made = base.reader->parse(toml + sections, kSet);
  if (!made) {  // lines and columns would be those of a text that nobody sees
    if (made.error().place.starts_with(kSet)) made.error().place = kSet;
    for (Error& other : made.error().others)
      if (other.place.starts_with(kSet)) other.place = kSet;
  }
  return made;
}

nlohmann::ordered_json config_json(const compile::Hardware& config) {
  nlohmann::ordered_json json = parse_ordered_json(config.json());
  for (const auto& [key, value] : config.settings()) json["settings"][key] = value;
  return json;
}

Result<int> hw_diff(const HwOptions& options, bool as_json) {
  const auto a = TW_TRY(compile::load_hardware(options.first)).hardware->settings();
  const auto b = TW_TRY(compile::load_hardware(options.second)).hardware->settings();
  nlohmann::ordered_json json = document("hw");
  json["differences"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"setting", options.first, options.second}};
  for (const auto& [key, value] : a) {
    const auto other = b.find(key);
    const std::string there = other == b.end() ? "" : other->second;
    if (there == value) continue;
    rows.push_back({key, value, there});
    json["differences"].push_back({{"setting", key}, {"first", value}, {"second", there}});
  }
  as_json ? print_json(json) : fmt::print("{}", table(rows));
  return 0;
}

void print_config(const compile::Hardware& config) {
  std::vector<std::vector<std::string>> rows = {{"memory", "elements", "bytes each", "KiB"}};
  for (std::vector<std::string>& row : config.memories()) rows.push_back(std::move(row));
  fmt::print("{}\n{}", config.title(), table(rows));
}

Result<int> hw_verb(const HwOptions& options, bool as_json) {
  TW_TRY_STATUS(check_outputs({{options.output}, {}}, {options.first, options.second}, as_json));
  if (options.action == "diff") return hw_diff(options, as_json);
  compile::LoadedHardware loaded = TW_TRY(compile::load_hardware(options.first));
  if (!options.settings.empty()) loaded.hardware = TW_TRY(with_settings(loaded, options.settings));
  compile::Hardware& config = *loaded.hardware;
  // A configuration of one's own is called as its file, unless --set names it.
  if (options.action == "new" && !options.output.empty() && !is_stream(options.output) &&
      std::none_of(options.settings.begin(), options.settings.end(),
                   [](const std::string& setting) { return setting.starts_with("name="); }))
    config.rename(std::filesystem::path(options.output).stem().string());
  TW_TRY_STATUS(config.check());
  if (!options.output.empty()) TW_TRY_STATUS(write_file(options.output, config.toml()));
  const Status compilable = config.compilable();
  nlohmann::ordered_json json = document("hw");
  json["config"] = config_json(config);
  json["compilable"] = compilable.has_value();
  if (!compilable)
    say(fmt::format("warning: {}: {}", compilable.error().what, compilable.error().why));
  if (as_json) {
    print_json(json);
  } else if (options.action == "new" && options.output.empty()) {
    fmt::print("{}", config.toml());
  } else if (options.output != "-") {
    print_config(config);
  }
  return 0;
}

}  // namespace

void add_hw(Verb app, VerbContext& context) {
  Verb verb = app.add_verb(
      "hw",
      "Accelerator configurations: `hw check vta`, `hw new vta --set log_batch=1 -o my.toml`, "
      "`hw diff vta vta-paper`");
  auto options = std::make_shared<HwOptions>();
  verb.add_option("action", options->action, "check, new or diff")
      .required()
      .one_of({"check", "new", "diff"});
  verb.add_option("first", options->first, "a built-in name, .toml or VTA's .json").required();
  verb.add_option("second", options->second, "for diff");
  verb.add_option("--set", options->settings, "KEY=VALUE, e.g. log_batch=1, timing.bus_bytes=16");
  verb.add_option("-o,--output", options->output, "file to write");
  verb.callback([&context, options] {
    context.action = [&context, options]() -> Result<int> {
      if ((options->action == "diff") == options->second.empty())
        return fail(ErrorKind::Usage, "diff takes two configurations, check and new take one", {},
                    "tilewright hw diff vta vta-paper");
      if (options->action == "diff" && (!options->settings.empty() || !options->output.empty()))
        return fail(ErrorKind::Usage,
                    fmt::format("{} is not for diff", options->output.empty() ? kSet : "--output"),
                    "it compares two configurations as they are",
                    "tilewright hw new makes one with other settings");
      return hw_verb(*options, context.json);
    };
  });
}

}  // namespace tilewright::driver
