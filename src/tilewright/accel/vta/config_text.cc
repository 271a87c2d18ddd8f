// Configurations of VTA as text: TOML with the names of Config, and VTA's own JSON.
//
//   log_block_in = 4      <->   "LOG_BLOCK_IN": 4
//   [timing]  bus_bytes = 16      (TOML only: VTA's JSON says nothing of time)
//
// Tables of keys say for each field its name in both; reader and writer go through the same tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/accel/vta/config.h"
#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/json.h"
#include "tilewright/base/toml_table.h"

namespace tilewright::vta {
namespace {

template <class Struct, class Member>
struct Key {
  std::string_view name;
  Member Struct::* member;
  std::string_view json = {};  ///< the key in VTA's JSON
};

constexpr Key<Config, int> kSizes[] = {
    {"log_inp_width", &Config::log_inp_width, "LOG_INP_WIDTH"},
    {"log_wgt_width", &Config::log_wgt_width, "LOG_WGT_WIDTH"},
    {"log_acc_width", &Config::log_acc_width, "LOG_ACC_WIDTH"},
    {"log_out_width", &Config::log_out_width, "LOG_OUT_WIDTH"},
    {"log_batch", &Config::log_batch, "LOG_BATCH"},
    {"log_block_in", &Config::log_block_in, "LOG_BLOCK_IN"},
    {"log_block_out", &Config::log_block_out, "LOG_BLOCK_OUT"},
    {"log_uop_buff", &Config::log_uop_buff, "LOG_UOP_BUFF_SIZE"},
    {"log_inp_buff", &Config::log_inp_buff, "LOG_INP_BUFF_SIZE"},
    {"log_wgt_buff", &Config::log_wgt_buff, "LOG_WGT_BUFF_SIZE"},
    {"log_acc_buff", &Config::log_acc_buff, "LOG_ACC_BUFF_SIZE"},
};
constexpr Key<Config, bool> kFlags[] = {{"has_mul", &Config::has_mul, "HAS_MUL"},
                                        {"has_acc8", &Config::has_acc8, "HAS_ACC8"}};
constexpr Key<Extensions, bool> kExtensions[] = {
    {"pipeline4", &Extensions::pipeline4},  // in JSON: PIPELINE, 3 or 4
    {"fused_reset", &Extensions::fused_reset, "FUSED_RESET"},
    {"pipelined_alu", &Extensions::pipelined_alu, "PIPELINED_ALU"}};
constexpr Key<Timing, int> kTimes[] = {
    {"bus_bytes", &Timing::bus_bytes},
    {"max_burst_beats", &Timing::max_burst_beats},
    {"read_latency", &Timing::read_latency},
    {"burst_gap", &Timing::burst_gap},
    {"load_overhead", &Timing::load_overhead},
    {"store_element_extra", &Timing::store_element_extra},
    {"store_row_overhead", &Timing::store_row_overhead},
    {"gemm_overhead", &Timing::gemm_overhead},
    {"gemm_ii", &Timing::gemm_ii},
    {"alu_overhead", &Timing::alu_overhead},
    {"alu_imm_ii", &Timing::alu_imm_ii},
    {"alu_reg_ii", &Timing::alu_reg_ii},
    {"loop_fill", &Timing::loop_fill},
    {"finish", &Timing::finish},
    {"empty", &Timing::empty},
    {"token_latency", &Timing::token_latency},
    {"fetch_batch", &Timing::fetch_batch},
    {"command_queue", &Timing::command_queue},
};

template <class Struct, size_t N>
void read_keys(TomlTable& table, const Key<Struct, int> (&keys)[N], Struct& into) {
  for (const auto& key : keys) table.read_integer(key.name, into.*key.member);
}
template <class Struct, size_t N>
void read_keys(TomlTable& table, const Key<Struct, bool> (&keys)[N], Struct& into) {
  for (const auto& key : keys) table.read_flag(key.name, into.*key.member);
}

void read_timing(const toml::table& table, TomlProblems& problems, Timing& timing) {
  TomlTable entries(table, "timing.", problems);
  std::string preset = timing.preset;
  entries.read_text("preset", preset);
  if (preset != "custom") {
    if (Result<Timing> start = timing_preset(preset))
      timing = *start;
    else
      problems.add(start.error().what, start.error().fix, entries.find("preset"));
  }
  timing.preset = preset;
  read_keys(entries, kTimes, timing);
  entries.finish();
}

Result<Config> config_of_toml(std::string_view text, const std::string& place) {
  constexpr const char* kExample = "an entry is KEY = VALUE; tilewright hw new writes a file";
  const toml::table table = TW_TRY(parse_toml(text, place, kExample));
  TomlProblems problems(place);
  TomlTable top(table, "", problems);
  TW_TRY_STATUS(top.check_kind("vta", false, kExample));
  Config config;
  top.read_text("name", config.name);
  top.read_number("clock_mhz", config.clock_mhz);
  read_keys(top, kSizes, config);
  read_keys(top, kFlags, config);
  if (top.find("log_out_width") == nullptr) config.log_out_width = config.log_inp_width;
  if (const toml::table* timing = top.subtable("timing"))
    read_timing(*timing, problems, config.timing);
  if (const toml::table* extensions = top.subtable("extensions")) {
    TomlTable entries(*extensions, "extensions.", problems);
    read_keys(entries, kExtensions, config.extensions);
    entries.finish();
  }
  top.finish();
  TW_TRY_STATUS(problems.status());
  return config;
}

using Json = nlohmann::ordered_json;

bool read_json_int(const Json& json, std::string_view key, TomlProblems& problems, int& into) {
  const auto found = json.find(key);
  if (found == json.end()) return false;
  const auto fits_int = [&] {
    if (found->is_number_unsigned()) return found->get<uint64_t>() <= 1'000'000;
    const auto value = found->get<int64_t>();
    return value >= -1'000'000 && value <= 1'000'000;
  };
  if (!found->is_number_integer())
    problems.add(fmt::format("`{}` must be an integer", key));
  else if (!fits_int())
    problems.add(fmt::format("`{}` = {} is too large", key, found->dump()));
  else
    into = found->get<int>();
  return true;
}

/// 0/1 or true/false; absent keeps the value.
void read_json_flag(const Json& json, std::string_view key, TomlProblems& problems, bool& into) {
  const auto found = json.find(key);
  if (found == json.end()) return;
  if (found->is_boolean())
    into = found->get<bool>();
  else if (*found == 0 || *found == 1)
    into = *found == 1;
  else
    problems.add(fmt::format("`{}` must be 0 or 1", key));
}

void read_json_blocks(const Json& json, TomlProblems& problems, Config& config) {
  int block = 0;
  if (read_json_int(json, "LOG_BLOCK", problems, block))
    config.log_block_in = config.log_block_out = block;
  const bool in = read_json_int(json, "LOG_BLOCK_IN", problems, config.log_block_in);
  const bool out = read_json_int(json, "LOG_BLOCK_OUT", problems, config.log_block_out);
  if (!json.contains("LOG_BLOCK") && !(in && out))
    problems.add("`LOG_BLOCK`, or both `LOG_BLOCK_IN` and `LOG_BLOCK_OUT`, are needed");
}

void read_json_extensions(const Json& json, TomlProblems& problems, Config& config) {
  int pipeline = 3;
  read_json_int(json, "PIPELINE", problems, pipeline);
  if (pipeline != 3 && pipeline != 4)
    problems.add(fmt::format("`PIPELINE` is {}, but must be 3 or 4", pipeline));
  config.extensions.pipeline4 = pipeline == 4;
  for (const auto& key : kExtensions)
    if (!key.json.empty()) read_json_flag(json, key.json, problems, config.extensions.*key.member);
  for (const auto& key : kFlags) read_json_flag(json, key.json, problems, config.*key.member);
}

std::string line_of(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n');
  return fmt::format("{}:{}", line, before.size() - (start == before.npos ? 0 : start + 1));
}

/// Where a JSON text stops being one: nlohmann's parser with an error handler instead of throws.
struct JsonErrors : nlohmann::json_sax<Json> {
  size_t byte = 0;
  std::string what;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(std::string&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    byte = position;
    what = error.what();
    return false;
  }
};

/// The library's text without its own names: `syntax error while parsing ... - unexpected ...`.
std::string plain_words(const std::string& what) {
  const size_t reason = what.find(" - ");
  return reason == what.npos ? what : what.substr(reason + 3);
}

Result<Config> config_of_json(std::string_view text, const std::string& place) {
  const Json json = parse_ordered_json(text, std::nothrow);
  if (json.is_discarded()) {
    JsonErrors errors;
    Json::sax_parse(text, &errors);
    return tl::unexpected<Error>(Error{ErrorKind::Parse,
                                       "this is no JSON file",
                                       place + ":" + line_of(text, errors.byte),
                                       plain_words(errors.what),
                                       {},
                                       {}});
  }
  TomlProblems problems(place);
  Config config;
  for (const auto& key : kSizes) {
    if (key.json.starts_with("LOG_BLOCK")) continue;
    const bool given = read_json_int(json, key.json, problems, config.*key.member);
    if (!given && key.json == "LOG_OUT_WIDTH")
      config.log_out_width = -1;
    else if (!given)
      problems.add(fmt::format("`{}` is missing", key.json));
  }
  if (config.log_out_width < 0 && !json.contains("LOG_OUT_WIDTH"))
    config.log_out_width = config.log_inp_width;
  read_json_blocks(json, problems, config);
  read_json_extensions(json, problems, config);
  TW_TRY_STATUS(problems.status());
  return config;
}

/// Where the text sets the key that a problem is about: `:3:1`, or empty if it does not.
std::string place_of(std::string_view text, bool json, const std::string& field) {
  if (field.empty()) return "";
  if (json) {
    for (const auto& key : kSizes)
      if (key.name == field)
        if (const size_t at = text.find(fmt::format("\"{}\"", key.json)); at != text.npos)
          return ":" + line_of(text, at + 1);
    return "";
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return "";
  const auto node = parsed.table().at_path(field);
  if (!node || node.node()->source().begin.line == 0) return "";
  return fmt::format(":{}:{}", node.node()->source().begin.line,
                     node.node()->source().begin.column);
}

/// The same problems with the places of their keys in the text.
Error placed(Error error, std::string_view text, bool json, const std::string& place) {
  error.kind = ErrorKind::Parse;
  error.place = place + place_of(text, json, error.place);
  for (Error& other : error.others) other = placed(std::move(other), text, json, place);
  return error;
}

}  // namespace

Result<Config> parse_config(std::string_view text, const std::string& place) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  const bool json = start != text.npos && text[start] == '{';
  Config config = TW_TRY(json ? config_of_json(text, place) : config_of_toml(text, place));
  if (Status status = check(config); !status)
    return tl::unexpected<Error>(placed(std::move(status.error()), text, json, place));
  return config;
}

Result<Config> load_config(const std::string& name_or_path) {
  if (!is_path(name_or_path)) return builtin_config(name_or_path);
  const std::string text = TW_TRY(read_file(name_or_path));
  return parse_config(text, name_or_path);
}

std::string to_toml(const Config& config) {
  toml::table name{{"name", config.name}};
  std::string text;
  // Names may hold any characters: the library quotes them.
  std::ostringstream quoted;
  quoted << name;
  text += quoted.str() + "\n";
  text += fmt::format("clock_mhz = {:#}\n", config.clock_mhz);
  for (const auto& key : kSizes) text += fmt::format("{} = {}\n", key.name, config.*key.member);
  for (const auto& key : kFlags) text += fmt::format("{} = {}\n", key.name, config.*key.member);
  std::ostringstream preset;
  preset << toml::table{{"preset", config.timing.preset}};
  text += "\n[timing]\n" + preset.str() + "\n";
  for (const auto& key : kTimes)
    text += fmt::format("{} = {}\n", key.name, config.timing.*key.member);
  text += "\n[extensions]\n";
  for (const auto& key : kExtensions)
    text += fmt::format("{} = {}\n", key.name, config.extensions.*key.member);
  return text;
}

std::string to_json(const Config& config) {
  Json json = Json::object();
  const bool square = config.log_block_in == config.log_block_out;
  for (const auto& key : kSizes)
    if (!square || !key.json.starts_with("LOG_BLOCK"))
      json[std::string(key.json)] = config.*key.member;
  if (square) json["LOG_BLOCK"] = config.log_block_in;
  if (config.extensions.pipeline4) json["PIPELINE"] = 4;
  for (const auto& key : kExtensions)
    if (!key.json.empty() && config.extensions.*key.member) json[std::string(key.json)] = 1;
  for (const auto& key : kFlags)
    if (config.*key.member) json[std::string(key.json)] = 1;
  return json_text(json, 2);
}

}  // namespace tilewright::vta
