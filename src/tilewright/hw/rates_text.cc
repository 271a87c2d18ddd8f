#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tilewright/hw/rates.h"
#include "tilewright/hw/target.h"

namespace tilewright::hw {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kSchema = "tilewright.rates";
/// Raised whenever what is measured, or the code generator's tiles, change their meaning.
constexpr int kVersion = 2;
constexpr const char* kCompiler = "tilewright 0.1.0";

template <class Rates>
auto levels(Rates& rates) {
  return std::vector{std::pair{"l1", &rates.l1}, std::pair{"l2", &rates.l2},
                     std::pair{"l3", &rates.l3}, std::pair{"dram", &rates.dram}};
}

/// Members of one JSON object, by a closed list of keys.
class Members {
 public:
  Members(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}

  Status check(const std::set<std::string>& keys) const {
    if (!object_.is_object()) return wrong("", "an object is expected");
    for (const std::string& key : keys)
      if (!object_.contains(key)) return wrong("", fmt::format("the key '{}' is missing", key));
    for (const auto& [key, value] : object_.items())
      if (!keys.contains(key)) return wrong("", fmt::format("the key '{}' is unknown", key));
    return {};
  }
  Result<double> number(const char* key, double least, double most) const {
    const Json& value = object_.at(key);
    if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most)
      return value.get<double>();
    return wrong(key, fmt::format("a number from {} to {} is expected", least, most));
  }
  Result<int> integer(const char* key, int least, int most) const {
    const Json& value = object_.at(key);
    if (value.is_number_integer() && value >= least && value <= most) return value.get<int>();
    return wrong(key, fmt::format("an integer from {} to {} is expected", least, most));
  }
  Result<std::string> text(const char* key) const {
    const Json& value = object_.at(key);
    if (value.is_string()) return value.get<std::string>();
    return wrong(key, "a string is expected");
  }
  Members object(const char* key) const { return {object_.at(key), path_ + "." + key}; }
  Result<const Json*> list(const char* key) const {
    if (object_.at(key).is_array()) return &object_.at(key);
    return wrong(key, "an array is expected");
  }
  tl::unexpected<Error> wrong(const std::string& key, std::string what) const {
    return tl::unexpected<Error>(
        Error{ErrorKind::Parse, std::move(what), key.empty() ? path_ : path_ + "." + key, {}, {}});
  }

 private:
  const Json& object_;
  std::string path_;
};

constexpr double kMostPerNs = 1e6;  ///< operations or bytes; anything above is no reading

Result<TileRate> read_tile(const Members& in) {
  TW_TRY_STATUS(in.check({"dtype", "rows", "columns", "share"}));
  TileRate tile;
  const auto dtype = parse_dtype(TW_TRY(in.text("dtype")));
  if (!dtype) return in.wrong("dtype", "the name of an element type is expected");
  tile.dtype = *dtype;
  tile.rows = TW_TRY(in.integer("rows", 1, 1024));
  tile.columns = TW_TRY(in.integer("columns", 1, 1024));
  tile.share = TW_TRY(in.number("share", 0.001, 1));
  return tile;
}

Result<CpuRates> read_rates(const Members& in) {
  TW_TRY_STATUS(in.check(
      {"readings", "f32", "bf16", "int8", "l1", "l2", "l3", "dram", "fork_join_ns", "tiles"}));
  CpuRates rates;
  rates.measured = true;
  rates.readings = TW_TRY(in.integer("readings", 1, 1 << 20));
  rates.f32 = TW_TRY(in.number("f32", 0.01, kMostPerNs));
  rates.bf16 = TW_TRY(in.number("bf16", 0, kMostPerNs));
  rates.int8 = TW_TRY(in.number("int8", 0, kMostPerNs));
  for (const auto& [label, level] : levels(rates)) {
    const Members bandwidth = in.object(label);
    TW_TRY_STATUS(bandwidth.check({"one", "all"}));
    level->one = TW_TRY(bandwidth.number("one", 0.01, kMostPerNs));
    level->all = TW_TRY(bandwidth.number("all", 0.01, kMostPerNs));
  }
  rates.fork_join_ns = TW_TRY(in.number("fork_join_ns", 0, 1e9));
  for (const Json& tile : *TW_TRY(in.list("tiles")))
    rates.tiles.push_back(
        TW_TRY(read_tile({tile, fmt::format("$.rates.tiles[{}]", rates.tiles.size())})));
  return rates;
}

/// Four digits say more than a measurement knows.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

}  // namespace

RatesKey rates_key() {
  RatesKey key;
  key.cores = host().cores;
  key.compiler = kCompiler;
  key.processor = host().cpu;
  std::ifstream file("/proc/cpuinfo");
  const std::set<std::string> wanted = {"model name",      "cpu family", "model",      "stepping",
                                        "CPU implementer", "CPU part",   "CPU variant"};
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(':');
    const std::string name = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    if (colon != std::string::npos && wanted.contains(name))
      key.processor += fmt::format("; {} {}", name, line.substr(std::min(colon + 2, line.size())));
  }
  return key;
}

std::string rates_to_json(const CpuRates& rates, const RatesKey& key) {
  OrderedJson json{{"schema", kSchema}, {"version", kVersion}};
  json["machine"] = {
      {"processor", key.processor}, {"cores", key.cores}, {"compiler", key.compiler}};
  OrderedJson& out = json["rates"];
  out["readings"] = rates.readings;
  out["f32"] = rounded(rates.f32);
  out["bf16"] = rounded(rates.bf16);
  out["int8"] = rounded(rates.int8);
  for (const auto& [label, level] : levels(rates))
    out[label] = {{"one", rounded(level->one)}, {"all", rounded(level->all)}};
  out["fork_join_ns"] = rounded(rates.fork_join_ns);
  out["tiles"] = OrderedJson::array();
  for (const TileRate& tile : rates.tiles)
    out["tiles"].push_back({{"dtype", name(tile.dtype)},
                            {"rows", tile.rows},
                            {"columns", tile.columns},
                            {"share", rounded(tile.share)}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CpuRates> rates_from_json(std::string_view text, const RatesKey& key) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    return fail(ErrorKind::Parse, "the rates are no JSON", {}, "tilewright calibrate --force");
  const Members root(json, "$");
  TW_TRY_STATUS(root.check({"schema", "version", "machine", "rates"}));
  if (TW_TRY(root.text("schema")) != kSchema)
    return root.wrong("schema", fmt::format("'{}' is expected", kSchema));
  const Members machine = root.object("machine");
  TW_TRY_STATUS(machine.check({"processor", "cores", "compiler"}));
  RatesKey found;
  found.processor = TW_TRY(machine.text("processor"));
  found.cores = TW_TRY(machine.integer("cores", 1, 1 << 20));
  found.compiler = TW_TRY(machine.text("compiler"));
  const int version = TW_TRY(root.integer("version", 1, 1 << 20));
  if (version != kVersion || !(found == key))
    return fail(ErrorKind::Package, "the rates are of another machine or compiler",
                fmt::format("'{}' with {} cores, {}, version {}", found.processor, found.cores,
                            found.compiler, version),
                "tilewright calibrate --force");
  return read_rates(root.object("rates"));
}

}  // namespace tilewright::hw
