// Configurations as TOML.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>

#include "tilewright/accel/dpu/config_keys.h"
#include "tilewright/base/names.h"
#include "tilewright/base/toml_table.h"

namespace tilewright::dpu {
namespace {

/// Reads the entries of a file and remembers where each is, for the problems found later.
class ConfigReader {
 public:
  ConfigReader(const toml::table& top, std::string place) : top_(top), place_(std::move(place)) {}

  Result<Config> read() {
    read_name();
    for (const Key& key : config_keys())
      if (const toml::node* node = find(key)) {
        places_[key.path()] = place_of(*node);
        read_key(key, *node);
      }
    find_unknown(top_, "");
    for (const std::string_view table : {"timing", "compiler"})
      if (const toml::node* node = get(top_, table); node != nullptr && node->is_table())
        find_unknown(*node->as_table(), table);
    if (Status status = check(config_); !status) add_placed(std::move(status.error()));
    TW_TRY_STATUS(std::move(problems_).status());
    return config_;
  }

 private:
  static const toml::node* get(const toml::table& table, std::string_view key) {
    const auto found = table.find(key);
    return found == table.end() ? nullptr : &found->second;
  }
  std::string place_of(const toml::node& node) const {
    const toml::source_position at = node.source().begin;
    return at.line == 0 ? place_ : fmt::format("{}:{}:{}", place_, at.line, at.column);
  }
  void problem(const toml::node& node, std::string what, std::string fix = {}) {
    problems_.add(
        Error{ErrorKind::Invalid, std::move(what), place_of(node), {}, std::move(fix), {}});
  }
  /// Problems of values, at the places of their keys.
  void add_placed(Error error) {
    std::vector<Error> others = std::exchange(error.others, {});
    const auto found = places_.find(error.place);
    error.place = found == places_.end() ? place_ : found->second;
    problems_.add(std::move(error));
    for (Error& other : others) add_placed(std::move(other));
  }

  const toml::node* find(const Key& key) {
    if (key.table.empty()) return get(top_, key.name);
    const toml::node* table = get(top_, key.table);
    return table != nullptr && table->is_table() ? get(*table->as_table(), key.name) : nullptr;
  }
  void read_name() {
    const toml::node* node = get(top_, "name");
    if (node == nullptr) return;
    const auto name = node->value_exact<std::string>();
    if (name && is_one_line(*name))
      config_.name = *name;
    else
      problem(*node, "`name` must be one line of text in quotes");
  }
  void read_key(const Key& key, const toml::node& node) {
    if (const auto* number = std::get_if<IntOf>(&key.value))
      read_int(key, node, (*number)(config_));
    else if (const auto* real = std::get_if<DoubleOf>(&key.value))
      read_double(key, node, (*real)(config_));
    else if (const auto* flag = std::get_if<BoolOf>(&key.value))
      read_bool(key, node, (*flag)(config_));
    else
      read_depths(key, node, std::get<DepthsOf>(key.value)(config_));
  }
  void read_int(const Key& key, const toml::node& node, int& into) {
    const auto value = node.value_exact<int64_t>();
    if (!value)
      problem(node, fmt::format("`{}` must be an integer", key.path()));
    else if (*value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max())
      problem(node, fmt::format("`{}` = {} is too large", key.path(), *value));
    else
      into = static_cast<int>(*value);
  }
  void read_double(const Key& key, const toml::node& node, double& into) {
    if (const auto value = node.value<double>(); value && node.is_number())
      into = *value;
    else
      problem(node, fmt::format("`{}` must be a number", key.path()));
  }
  void read_bool(const Key& key, const toml::node& node, bool& into) {
    if (key.when_true.empty()) {
      if (const auto value = node.value_exact<bool>())
        into = *value;
      else
        problem(node, fmt::format("`{}` must be true or false", key.path()));
      return;
    }
    const auto word = node.value_exact<std::string_view>();
    if (word != key.when_true && word != key.when_false)
      problem(node, fmt::format("`{}` must be \"{}\" or \"{}\"", key.path(), key.when_true,
                                key.when_false));
    else
      into = word == key.when_true;
  }
  void read_depths(const Key& key, const toml::node& node, Depths& into) {
    const toml::array* list = node.as_array();
    if (list == nullptr || list->size() != kMemories) {
      problem(node, fmt::format("`{}` must be {} integers in brackets", key.path(), kMemories));
      return;
    }
    for (size_t m = 0; m < kMemories; ++m) read_int(key, *list->get(m), into[m]);
  }
  void find_unknown(const toml::table& table, std::string_view prefix) {
    std::vector<std::string> known;
    if (prefix.empty()) known = {"kind", "name", "timing", "compiler"};
    for (const Key& key : config_keys())
      if (key.table == prefix) known.emplace_back(key.name);
    for (const auto& [key, node] : table) {
      const std::string text(key.str());
      const bool is_table = prefix.empty() && (text == "timing" || text == "compiler");
      if (is_table && !node.is_table()) problem(node, fmt::format("`{}` must be a table", text));
      if (std::find(known.begin(), known.end(), text) != known.end()) continue;
      std::string fix = did_you_mean(text, known);
      if (fix.empty()) fix = fmt::format("the keys here are {}", fmt::join(known, ", "));
      problem(node, fmt::format("unknown key `{}{}{}`", prefix, prefix.empty() ? "" : ".", text),
              std::move(fix));
    }
  }

  const toml::table& top_;
  std::string place_;
  Config config_;
  std::map<std::string, std::string> places_;  ///< of keys that are there, by path
  accel::Problems problems_;
};

std::string value_text(const Key& key, Config& config) {
  if (const auto* number = std::get_if<IntOf>(&key.value)) return fmt::to_string((*number)(config));
  if (const auto* real = std::get_if<DoubleOf>(&key.value))
    return fmt::format("{:#}", (*real)(config));
  if (const auto* depths = std::get_if<DepthsOf>(&key.value))
    return fmt::format("[{}]", fmt::join((*depths)(config), ", "));
  const bool value = std::get<BoolOf>(key.value)(config);
  if (key.when_true.empty()) return value ? "true" : "false";
  return fmt::format("\"{}\"", value ? key.when_true : key.when_false);
}

}  // namespace

Result<Config> parse_config(std::string_view text, const std::string& place) {
  constexpr const char* kExample = "an entry is KEY = VALUE";
  const toml::table table = TW_TRY(parse_toml(text, place, kExample));
  TomlProblems problems(place);
  TW_TRY_STATUS(TomlTable(table, "", problems).check_kind("dpu", false, kExample));
  return ConfigReader(table, place).read();
}

std::string to_toml(const Config& config) {
  Config copy = config;
  // Names may hold any characters: the library quotes them.
  std::ostringstream name;
  name << toml::table{{"name", config.name}};
  std::string text = "kind = \"dpu\"\n" + name.str() + "\n";
  std::string_view table;
  for (const Key& key : config_keys()) {
    if (key.table != table) text += fmt::format("\n[{}]\n", key.table);
    table = key.table;
    text += fmt::format("{} = {}\n", key.name, value_text(key, copy));
  }
  return text;
}

}  // namespace tilewright::dpu
