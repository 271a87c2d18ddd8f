#include "tilewright/accel/gemmini/config.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "tilewright/accel/common/image.h"
#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/toml_table.h"
#include "tilewright/base/unknown_name.h"

namespace tilewright::gemmini {
namespace {

/// A number of the file: reading, writing and checking follow.
struct ConfigKey {
  std::string_view name;
  int Config::* member;
  int low, high;
};
constexpr std::array kConfigKeys = {
    ConfigKey{"dim", &Config::dim, 2, 64}, ConfigKey{"spad_kb", &Config::spad_kb, 1, 65536},
    ConfigKey{"banks", &Config::banks, 1, 64}, ConfigKey{"acc_kb", &Config::acc_kb, 1, 65536}};

}  // namespace

bool same_hardware(const Config& a, const Config& b) {
  Config other = b;
  other.name = a.name;
  return a == other;
}

Status check(const Config& config) {
  accel::Problems problems;
  const auto problem = [&](std::string_view key, std::string what) {
    problems.add(Error{ErrorKind::Invalid, std::move(what), std::string(key), {}, {}, {}});
  };
  for (const ConfigKey& key : kConfigKeys)
    if (const int value = config.*key.member; value < key.low || value > key.high)
      problem(key.name,
              fmt::format("`{}` is {}, but must be in {}..{}", key.name, value, key.low, key.high));
  if (config.dim > 0 && (config.dim & (config.dim - 1)) != 0)
    problem("dim", fmt::format("`dim` is {}, but must be a power of two", config.dim));
  if (config.dim >= 2 && config.banks >= 1) {
    if (config.spad_rows() % config.banks != 0)
      problem("banks", fmt::format("{} rows of the scratchpad are not {} equal banks",
                                   config.spad_rows(), config.banks));
    if (config.spad_rows() < 4 * config.dim)
      problem("spad_kb", fmt::format("`spad_kb` has {} rows, but four blocks have {}",
                                     config.spad_rows(), 4 * config.dim));
    if (config.acc_rows() < config.dim)
      problem("acc_kb", fmt::format("`acc_kb` has {} rows, but a block has {}", config.acc_rows(),
                                    config.dim));
  }
  return std::move(problems).status();
}

Result<Config> parse_config(std::string_view text, const std::string& place) {
  constexpr const char* kShown = "hw/gemmini.toml shows what a configuration looks like";
  const toml::table top = TW_TRY(parse_toml(text, place, kShown));
  TomlProblems problems(place);
  TomlTable table(top, "", problems);
  TW_TRY_STATUS(table.check_kind("gemmini", false, kShown));
  Config config;
  table.read_text("name", config.name);
  for (const ConfigKey& key : kConfigKeys)
    table.read_integer(key.name, config.*key.member, key.low, key.high);
  table.finish();
  TW_TRY_STATUS(problems.status());
  if (Status status = check(config); !status)
    return tl::unexpected<Error>(std::move(status.error()).at(place));
  return config;
}

Result<Config> load_config(const std::string& name_or_path) {
  if (name_or_path == "gemmini") return Config{};
  if (!is_path(name_or_path))
    return unknown_name(fmt::format("no Gemmini is called '{}'", name_or_path), name_or_path,
                        builtin_configs());
  const std::string text = TW_TRY(read_file(name_or_path));
  return parse_config(text, name_or_path);
}

std::vector<std::string> builtin_configs() { return {"gemmini"}; }

std::string to_toml(const Config& config) {
  std::ostringstream name;  // names may hold any characters: the library quotes them
  name << toml::table{{"name", config.name}};
  std::string text = "kind = \"gemmini\"\n" + name.str() + "\n";
  for (const ConfigKey& key : kConfigKeys)
    text += fmt::format("{} = {}\n", key.name, config.*key.member);
  return text;
}

}  // namespace tilewright::gemmini
