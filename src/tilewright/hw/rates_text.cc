// Rates of a machine as JSON: the file `rates/HASH.json` of the cache.
//
//   {"schema": "tilewright.rates", "version": 3, "machine": {"processor": .., "cores": 2, ..},
//    "measurement": {..}, "rates": {"f32": 173.1, .., "tiles": [..]}}
//
// Reading is strict: missing and unknown keys, other types, numbers out of range, and a key of
// another machine or compiler are errors, since a wrong rate would only show as slow code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/hw/rates.h"
#include "tilewright/hw/target.h"

namespace tilewright::hw {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kSchema = "tilewright.rates";
/// Raised whenever what is measured, or the code generator's tiles, change their meaning.
constexpr int kVersion = 3;
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

/// What a busy machine may have left unmeasured.
const std::set<std::string> kParts = {"f32", "bf16", "int8", "fork_join", "l1",
                                      "l2",  "l3",   "dram", "tiles"};
constexpr double kMostPerNs = 1e6;  ///< operations or bytes; anything above is no reading

Result<TileRate> read_tile(const Members& in) {
  TW_TRY_STATUS(in.check({"dtype", "rows", "columns", "share", "rate"}));
  TileRate tile;
  const auto dtype = parse_dtype(TW_TRY(in.text("dtype")));
  if (!dtype) return in.wrong("dtype", "the name of an element type is expected");
  tile.dtype = *dtype;
  tile.rows = TW_TRY(in.integer("rows", 1, 1024));
  tile.columns = TW_TRY(in.integer("columns", 1, 1024));
  tile.share = TW_TRY(in.number("share", 0.001, kMostShare));
  tile.rate = TW_TRY(in.number("rate", 0.001, kMostPerNs));
  return tile;
}

Result<Circumstances> read_circumstances(const Members& in) {
  TW_TRY_STATUS(in.check({"when", "load", "steal", "spread", "kept", "bursts", "seconds"}));
  Circumstances about;
  about.when = static_cast<int64_t>(TW_TRY(in.number("when", 0, 1e12)));
  about.load = TW_TRY(in.number("load", 0, 1e6));
  about.steal = TW_TRY(in.number("steal", 0, 1));
  about.spread = TW_TRY(in.number("spread", 0, 1));
  about.kept = TW_TRY(in.integer("kept", 0, std::numeric_limits<int>::max()));
  about.bursts = TW_TRY(in.integer("bursts", 0, std::numeric_limits<int>::max()));
  about.seconds = TW_TRY(in.number("seconds", 0, 1e6));
  return about;
}

Result<CpuRates> read_rates(const Members& in) {
  TW_TRY_STATUS(in.check({"readings", "assumed", "ghz", "f32", "bf16", "int8", "l1", "l2", "l3",
                          "dram", "fork_join_ns", "tiles"}));
  CpuRates rates;
  for (const Json& part : *TW_TRY(in.list("assumed"))) {
    if (!part.is_string() || !kParts.contains(part.get<std::string>()))
      return in.wrong("assumed", fmt::format("one of {} is expected", fmt::join(kParts, ", ")));
    rates.assumed.push_back(part.get<std::string>());
  }
  rates.measured =
      std::find(rates.assumed.begin(), rates.assumed.end(), "f32") == rates.assumed.end();
  rates.ghz = TW_TRY(in.number("ghz", 0, 1000));
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

/// What both readers have in common. `found`: the key that the file says.
Result<CpuRates> read_file_of(std::string_view text, RatesKey& found) {
  const Json json = parse_json(text, std::nothrow);
  if (json.is_discarded())
    return fail(ErrorKind::Parse, "the rates are no JSON", {}, "tilewright calibrate --force");
  const Members root(json, "$");
  if (!json.is_object()) return root.wrong("", "an object is expected");
  if (json.value("schema", Json()) != kSchema)
    return root.wrong("schema", fmt::format("'{}' is expected", kSchema));
  // Files of other versions hold other members; they are measured again, not mended.
  if (json.value("version", Json()) != kVersion)
    return fail(
        ErrorKind::Package, "the rates were measured by another version of tilewright",
        fmt::format("version {} instead of {}", json_text(json.value("version", Json())), kVersion),
        "tilewright calibrate --force");
  TW_TRY_STATUS(root.check({"schema", "version", "machine", "measurement", "rates"}));
  const Members machine = root.object("machine");
  TW_TRY_STATUS(machine.check({"processor", "cores", "compiler"}));
  found.processor = TW_TRY(machine.text("processor"));
  found.cores = TW_TRY(machine.integer("cores", 1, 1 << 20));
  found.compiler = TW_TRY(machine.text("compiler"));
  CpuRates rates = TW_TRY(read_rates(root.object("rates")));
  rates.about = TW_TRY(read_circumstances(root.object("measurement")));
  return rates;
}

/// Four digits say more than a measurement knows.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

}  // namespace

RatesKey rates_key() { return {host_text(), host().cores, kCompiler}; }

std::string rates_to_json(const CpuRates& rates, const RatesKey& key) {
  OrderedJson json{{"schema", kSchema}, {"version", kVersion}};
  json["machine"] = {
      {"processor", key.processor}, {"cores", key.cores}, {"compiler", key.compiler}};
  const Circumstances& about = rates.about;
  json["measurement"] = {{"when", about.when},
                         {"load", rounded(about.load)},
                         {"steal", rounded(about.steal)},
                         {"spread", rounded(about.spread)},
                         {"kept", about.kept},
                         {"bursts", about.bursts},
                         {"seconds", rounded(about.seconds)}};
  OrderedJson& out = json["rates"];
  out["readings"] = rates.readings;
  out["assumed"] = rates.assumed;
  out["ghz"] = rounded(rates.ghz);
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
                            {"share", rounded(tile.share)},
                            {"rate", rounded(tile.rate)}});
  return json_text(json, 1) + "\n";
}

Result<CpuRates> rates_from_json(std::string_view text, const RatesKey& key) {
  RatesKey found;
  Result<CpuRates> rates = read_file_of(text, found);
  if (!rates || found == key) return rates;
  return fail(ErrorKind::Package, "the rates are of another machine or compiler",
              fmt::format("'{}' with {} cores, {}", found.processor, found.cores, found.compiler),
              "tilewright calibrate --force");
}

Result<CpuRates> rates_of_other(std::string_view text) {
  RatesKey found;
  Result<CpuRates> rates = read_file_of(text, found);
  if (!rates || found.compiler == kCompiler) return rates;
  return fail(ErrorKind::Package, "the rates went through another code generator", found.compiler);
}

std::string rates_label(const CpuRates& rates) {
  if (!rates.measured) return "assumed";
  CpuRates plain = rates;  // equal rates are equal, whenever they were measured
  plain.about = {};
  return "measured " + sha256(rates_to_json(plain, {})).substr(0, 12);
}

}  // namespace tilewright::hw
