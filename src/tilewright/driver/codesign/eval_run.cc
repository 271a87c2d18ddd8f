#include "tilewright/driver/codesign/eval_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/codesign/evaluation.h"
#include "tilewright/codesign/unmatched.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/codesign/goals.h"
#include "tilewright/driver/codesign/mapping_options.h"

namespace tilewright::driver {
namespace {

/// A mapping that somebody gives, and where it stands.
struct GivenMapping {
  size_t layer = 0;
  std::string text, place;
  size_t column = 1;  ///< of the line at which `text` begins
};

std::string short_number(double value) { return fmt::format("{:.4g}", value); }

/// `LAYER: MAPPING`; of a workload of one layer the mapping alone will do.
Result<GivenMapping> given_of_line(const codesign::Workload& workload, const std::string& line,
                                   const std::string& place) {
  GivenMapping given{0, line, place, 1};
  std::vector<std::string> names;
  size_t longest = 0;
  for (size_t i = 0; i < workload.layers.size(); ++i) {
    const std::string& name = names.emplace_back(workload.layers[i].layer.name);
    if (name.size() < longest || !line.starts_with(name + ":")) continue;
    longest = name.size() + 1;
    given.layer = i;
  }
  if (longest > 0) {
    given.text = line.substr(longest);
    given.column = longest + 1;
    return given;
  }
  const size_t colon = line.rfind(':');
  if (colon == line.npos && names.size() == 1) return given;
  Error error =
      fail(ErrorKind::Usage,
           colon == line.npos ? std::string("a mapping without its layer")
                              : fmt::format("there is no layer '{}'", line.substr(0, colon)),
           "it is LAYER: MAPPING, as `codesign eval --mappings` prints it",
           colon == line.npos ? "" : did_you_mean(line.substr(0, colon), names))
          .value();
  return tl::unexpected<Error>(std::move(error).at(place + ":1"));
}

/// Empty lines and those that begin with # mean nothing.
Status add_lines(const codesign::Workload& workload, const std::string& text,
                 const std::string& place, std::vector<GivenMapping>& into) {
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1, ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line[0] == '#') continue;
    into.push_back(TW_TRY(given_of_line(workload, line, fmt::format("{}:{}", place, number))));
  }
  return {};
}

Result<std::vector<GivenMapping>> given_mappings(const codesign::Workload& workload,
                                                 const std::vector<std::string>& maps) {
  std::vector<GivenMapping> given;
  for (const std::string& map : maps) {
    std::error_code ignored;
    // A line has words; what has none can only be a file.
    const bool is_file = std::filesystem::exists(map, ignored) || map.find(' ') == map.npos;
    TW_TRY_STATUS(add_lines(workload, is_file ? TW_TRY(read_file(map)) : map,
                            is_file ? map : "--map", given));
  }
  std::set<size_t> seen;
  for (const GivenMapping& one : given)
    if (!seen.insert(one.layer).second)
      return fail(ErrorKind::Usage,
                  fmt::format("two mappings of '{}'", workload.layers[one.layer].layer.name));
  return given;
}

/// Layers with given mappings are judged again.
Status apply(const std::vector<GivenMapping>& given, const codesign::Hardware& design,
             const codesign::Workload& workload, const codesign::Technology& technology,
             codesign::DesignResult& result) {
  if (given.empty()) return {};
  for (const GivenMapping& one : given) {
    Result<codesign::LayerResult> judged =
        codesign::judge(design, workload.layers[one.layer], technology, one.text);
    if (!judged) {
      Error error = std::move(judged.error());
      const size_t column = error.place.empty() ? 1 : std::stoul(error.place);
      error.place = fmt::format("{}:{}", one.place, one.column + column - 1);
      return tl::unexpected<Error>(std::move(error));
    }
    result.layers[one.layer] = *std::move(judged);
  }
  result = codesign::sum_up(workload, technology, design, std::move(result.layers));
  return {};
}

nlohmann::ordered_json layer_json(const codesign::WorkloadLayer& layer,
                                  const codesign::LayerResult& result) {
  nlohmann::ordered_json json;
  json["layer"] = layer.layer.name;
  json["runs"] = layer.runs;
  json["cycles"] = result.cycles;
  json["bound"] = result.bound;
  json["on_host"] = result.on_host;
  if (result.on_host) return json;
  json["binds"] = cost::name(result.binds);
  json["dram_bytes"] = result.dram_bytes;
  json["energy_pj"] = result.energy.chip() + result.energy.dram;
  json["mapping"] = codesign::mapping_text(layer, result);
  return json;
}

std::vector<std::string> layer_row(const codesign::Hardware& design,
                                   const codesign::WorkloadLayer& layer,
                                   const codesign::LayerResult& one) {
  const double busy =
      static_cast<double>(layer.layer.macs()) / (one.cycles * codesign::Parts(design).units);
  return {layer.layer.name,
          std::to_string(layer.runs),
          short_number(one.cycles),
          fmt::format("{:.1f} %", 100 * one.bound / one.cycles),
          one.on_host ? "host" : fmt::format("{:.1f} %", 100 * busy),
          one.on_host ? "host" : std::string(cost::name(one.binds)),
          short_number(one.dram_bytes / 1024)};
}

void print_mappings(const codesign::Workload& workload, const codesign::DesignResult& result) {
  for (size_t i = 0; i < result.layers.size(); ++i)
    if (!result.layers[i].on_host)
      fmt::print("{}: {}\n", workload.layers[i].layer.name,
                 codesign::mapping_text(workload.layers[i], result.layers[i]));
}

void print_totals(const codesign::DesignResult& result, const codesign::Technology& technology) {
  fmt::print(
      "\nlatency     {:.4g} cycles ({:.4g} ms), of them {:.1f} % on the host\n"
      "energy      {:.4g} mJ with DRAM\npower       {:.4g} mW without DRAM, peak {:.4g} mW\n"
      "area        {:.4g} {}\ntechnology  {}\n",
      result.cycles(), result.seconds * 1e3, 100 * result.host_cycles / result.cycles(),
      result.consumption.energy_pj * 1e-9, result.consumption.power_mw, result.peak_power_mw,
      result.area.total(), codesign::area_unit(technology.formula), technology.name);
}

}  // namespace

std::string technology_of(const std::string& design) {
  const std::filesystem::path beside =
      std::filesystem::path(design).replace_filename(kTechnologyFile);
  std::error_code ignored;
  const bool both = std::filesystem::is_regular_file(design, ignored) &&
                    std::filesystem::is_regular_file(beside, ignored);
  return both ? beside.string() : "asic45";
}

Result<int> run_eval(codesign::Workload of, const EvalSettings& settings, bool as_json) {
  const codesign::Hardware design = TW_TRY(codesign::load_hardware(settings.design));
  codesign::DesignEvaluator evaluator(
      std::move(of),
      TW_TRY(codesign::load_technology(settings.technology.empty() ? technology_of(settings.design)
                                                                   : settings.technology)),
      TW_TRY(layer_mapper(settings.mapping)));
  const codesign::Workload& workload = evaluator.workload();
  const std::vector<GivenMapping> given = TW_TRY(given_mappings(workload, settings.maps));
  TW_TRY_STATUS(codesign::check_matches({design}, workload));
  codesign::DesignResult result = evaluator.evaluate(design);
  TW_TRY_STATUS(apply(given, design, workload, evaluator.technology(), result));
  if (settings.print_mappings && !as_json) {
    print_mappings(workload, result);
    return 0;
  }
  nlohmann::ordered_json json = document("codesign.eval");
  json["mapper"] = describe(settings.mapping);
  json["technology"] = evaluator.technology().name;
  std::vector<std::vector<std::string>> rows = {
      {"layer", "runs", "cycles", "bound", "units busy", "binds", "DRAM KiB"}};
  for (size_t i = 0; i < result.layers.size(); ++i) {
    json["layers"].push_back(layer_json(workload.layers[i], result.layers[i]));
    rows.push_back(layer_row(design, workload.layers[i], result.layers[i]));
  }
  for (const codesign::Objective objective : kObjectives)
    json[std::string(codesign::name(objective))] = codesign::value(result, objective);
  json["host_cycles"] = result.host_cycles;
  json["seconds"] = result.seconds;
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("{}", table(rows));
  print_totals(result, evaluator.technology());
  return 0;
}

}  // namespace tilewright::driver
