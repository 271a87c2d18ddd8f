// The cost model against the cycle simulator: operators of a workload file on designs drawn at
// random, each under the best mapping that the mapper finds. Counts must be equal, cycles close.
//   bench_model --workload FILE [--suites hasco/] [--ids ID,ID] [--designs 10] [--seed 1]
//               [--json F]
// Ends with 1 if a count differs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cases.h"
#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/codegen/spatial/layer_code.h"
#include "tilewright/cost/spatial/mapper.h"
#include "tilewright/cost/spatial/testing/cases.h"

namespace tilewright::bench {
namespace {

struct Options {
  std::string workload, suites = "hasco/", json;
  std::vector<std::string> ids;
  int designs = 10;
  uint64_t seed = 1;
  int64_t tiles = cost::SpatialMapperOptions{}.tiles;
  double show = 0.04;
};

std::vector<spatial::Insn> program_of(const spatial::Design& design,
                                      const cost::SpatialLayer& layer,
                                      const cost::SpatialMapping& mapping) {
  spatial::LayerOperands operands;
  for (size_t tensor = 0; tensor < operands.address.size(); ++tensor)
    operands.address[tensor] = (uint64_t{1} + tensor) << 34;  // far from each other
  return spatial::with_tokens(design, spatial::layer_code(design, layer, mapping, operands))
      .value();
}

/// What both count, by name: of the model, of the simulator.
std::vector<std::pair<std::string, std::array<int64_t, 2>>> counts(
    const cost::SpatialCost& model, const spatial::Counters& sim,
    const cost::SpatialMapping& mapping) {
  const auto [a, b, out] = model.dram;
  const auto of = [](uint64_t count) { return static_cast<int64_t>(count); };
  return {{"steps", {model.steps, of(sim.steps)}},
          {"COMPUTEs", {model.computes, of(sim.computes)}},
          {"instructions", {model.instructions, of(sim.insns)}},
          {"bytes read of the first factor",
           {model.spad_reads[mapping.choice.first], of(sim.first_bytes)}},
          {"bytes read of the second factor",
           {model.spad_reads[mapping.choice.second()], of(sim.second_bytes)}},
          {"LOADs", {a.transfers + b.transfers, of(sim.loads)}},
          {"bytes loaded", {a.bytes + b.bytes, of(sim.load_bytes)}},
          {"bursts loaded", {a.bursts + b.bursts, of(sim.load_bursts)}},
          {"bytes of zeros", {a.padding + b.padding, of(sim.zero_bytes)}},
          {"STOREs", {out.transfers, of(sim.stores)}},
          {"bytes stored", {out.bytes, of(sim.store_bytes)}},
          {"bursts stored", {out.bursts, of(sim.store_bursts)}}};
}

/// Readings of one operator, or of all.
class Readings {
 public:
  void add(double model, double simulated, bool counts_equal) {
    errors_.push_back(std::abs(model / simulated - 1));
    cycles_ += simulated;
    unequal_ += !counts_equal;
  }
  void add(const Readings& others) {
    errors_.insert(errors_.end(), others.errors_.begin(), others.errors_.end());
    cycles_ += others.cycles_;
    unequal_ += others.unequal_;
  }
  int unequal() const { return unequal_; }
  nlohmann::ordered_json json() const {
    return {{"readings", errors_.size()},   {"million_cycles", cycles_ / 1e6},
            {"counts_differ", unequal_},    {"median", at(0.5)},
            {"within_98_of_100", at(0.98)}, {"worst", at(1)}};
  }
  void print(const std::string& name) const {
    fmt::print("{:<18} {:>8} {:>15.1f} {:>13} {:>8.2f} {:>8.2f} {:>8.2f}\n", name, errors_.size(),
               cycles_ / 1e6, unequal_, 100 * at(0.5), 100 * at(0.98), 100 * at(1));
    std::fflush(stdout);
  }

 private:
  double at(double share) const {
    if (errors_.empty()) return 0;
    std::vector<double> sorted = errors_;
    std::sort(sorted.begin(), sorted.end());
    const auto place = static_cast<size_t>(share * static_cast<double>(sorted.size()));
    return sorted[std::min(place, sorted.size() - 1)];
  }

  std::vector<double> errors_;
  double cycles_ = 0;
  int unequal_ = 0;
};

void read(const spatial::Design& design, const cost::SpatialLayer& layer,
          const cost::SpatialBest& best, const Options& options, Readings& into) {
  const auto sim = spatial::simulate(design, program_of(design, layer, best.mapping)).value();
  bool equal = true;
  const auto where = [&] {
    return fmt::format("{}  {}\n", spatial::to_toml(design), to_string(layer, best.mapping));
  };
  for (const auto& [name, both] : counts(best.cost, sim.counters, best.mapping)) {
    if (both[0] == both[1]) continue;
    equal = false;
    fmt::print("{}: {} by the model, {} simulated\n{}", name, both[0], both[1], where());
  }
  const auto simulated = static_cast<double>(sim.cycles);
  into.add(best.cost.cycles, simulated, equal);
  if (std::abs(best.cost.cycles / simulated - 1) > options.show)
    fmt::print("cycles: {:.0f} by the model, {} simulated\n{}", best.cost.cycles, sim.cycles,
               where());
}

/// One design after the other is drawn; those on which it does not run are left out.
Readings read(const Operator& one, const Options& options, uint64_t seed) {
  cost::CaseDraw draw(seed);
  Readings readings;
  for (int count = 0; count < options.designs;) {
    const spatial::Design design = draw.design();
    std::vector<std::optional<cost::SpatialBest>> mapped;
    for (const cost::SpatialLayer& layer : one.layers)
      mapped.push_back(cost::best_mapping(design, layer, {.tiles = options.tiles}));
    if (!std::all_of(mapped.begin(), mapped.end(), [](const auto& best) { return bool(best); }))
      continue;
    ++count;
    for (size_t i = 0; i < mapped.size(); ++i)
      read(design, one.layers[i], *mapped[i], options, readings);
  }
  return readings;
}

int compare(const Options& options) {
  nlohmann::ordered_json json{{"designs", options.designs}, {"seed", options.seed}};
  fmt::print("{:<18} {:>8} {:>15} {:>13} {:>8} {:>8} {:>8}\n", "operator", "readings",
             "million cycles", "counts differ", "median %", "98 %", "worst %");
  Readings all;
  uint64_t seed = options.seed << 32;
  for (const Operator& one : operators_of(options.workload, options.suites)) {
    ++seed;  // of this operator's designs, whichever others are read
    const auto& ids = options.ids;
    if (!ids.empty() && std::find(ids.begin(), ids.end(), one.id) == ids.end()) continue;
    const Readings readings = read(one, options, seed);
    readings.print(one.id);
    json["operators"][one.id] = readings.json();
    all.add(readings);
  }
  all.print("all");
  json["all"] = all.json();
  if (!options.json.empty()) std::ofstream(options.json) << json.dump(1) << "\n";
  return all.unequal() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tilewright::bench

int main(int argc, char** argv) {
  CLI::App app("The cost model of spatial accelerators against their cycle simulator");
  tilewright::bench::Options options;
  app.add_option("--workload", options.workload, "workload file")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--suites", options.suites, "those that begin like this");
  app.add_option("--ids", options.ids, "of these suites only these operators")->delimiter(',');
  app.add_option("--designs", options.designs, "for each operator");
  app.add_option("--seed", options.seed, "of the designs");
  app.add_option("--tiles", options.tiles, "of a layer that the mapper looks at, at most");
  app.add_option("--show", options.show, "designs and mappings of readings that are off by more");
  app.add_option("--json", options.json, "figures, as JSON");
  CLI11_PARSE(app, argc, argv);
  return tilewright::bench::compare(options);
}
