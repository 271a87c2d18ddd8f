// Mappings in cycles of the cost model: of ResNet-50's convolutions on a 16x16 array with 256 KB
// (methods, contest), of a product on two arrays, of operators of a workload file.
//
//   bench_mapping methods [--trials 500]    a library (im2col), a template with tile sizes (xgb),
//                                           HASCO's search, ours
//   bench_mapping contest [--seconds 60] [--layers 20] [--methods random,q]
//                                           searchers in the space of all mappings
//   bench_mapping programs [--count 60]     the same programs on a large and on a small design
//   bench_mapping choices --workload FILE   operators, the best mapping of each choice of loops
//
// --json FILE keeps the figures. Images lie channels last, for everybody.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "library.h"
#include "programs.h"
#include "tilewright/codesign/workload.h"
#include "tilewright/tune/spatial/methods.h"
#include "tilewright/zoo/zoo.h"

namespace tilewright::bench {
namespace {

struct Conv {
  cost::SpatialLayer layer;
  double runs = 1;
};

/// The distinct convolutions, channels last.
std::vector<Conv> resnet_convolutions() {
  std::vector<Conv> convs;
  const codesign::Workload workload =
      codesign::workload_of(zoo::build("resnet50", {}).value()).value();
  for (const codesign::WorkloadLayer& one : workload.layers)
    for (tune::LayoutVariant& variant : tune::layout_variants(one.layer))
      if (variant.name == "last,last")
        convs.push_back({std::move(variant.layer), static_cast<double>(one.runs)});
  return convs;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Cycles of the mapping that `search` finds; infinite: none.
double cycles_of(const spatial::Design& design, const cost::SpatialLayer& layer,
                 const tune::MappingSearch& search) {
  const auto found = tune::find_mapping(design, layer, search).value();
  return found ? found->cost.cycles : search::kInvalid;
}

/// `tiles`: of a layer that the mapper looks at, at most.
double mapped(const spatial::Design& design, const cost::SpatialLayer& layer, int64_t tiles) {
  return cost::best_mapping(design, layer, {.tiles = tiles}).value().cost.cycles;
}

/// Ratios to ours over all convolutions of the network: each run counts.
class Ratios {
 public:
  void add(double ratio, double runs) {
    sum_ += runs * std::log(ratio);
    plain_ += runs * ratio;
    count_ += runs;
    if (ratio > 2) above_two_ += runs;
  }
  double mean() const { return std::exp(sum_ / count_); }
  double arithmetic() const { return plain_ / count_; }
  double above_two() const { return above_two_; }

 private:
  double sum_ = 0, plain_ = 0, count_ = 0, above_two_ = 0;
};

struct Column {
  std::string name;
  std::function<double(const Conv&)> cycles;
  Ratios ratios;
  double total = 0, seconds = 0;
};

/// Searched methods take the median of three seeds.
std::vector<Column> columns(const spatial::Design& design, int trials) {
  std::vector<Column> all;
  for (const double rate : {1.0, 4.0, 16.0, HUGE_VAL})
    all.push_back(
        {std::isinf(rate) ? "library alone" : fmt::format("library, host {:g} B/cycle", rate),
         [=](const Conv& conv) { return library_cost(design, conv.layer).cycles(rate); },
         {}});
  for (const std::string method : {"template", "hasco-calls", "hasco"})
    all.push_back({method,
                   [=](const Conv& conv) {
                     std::vector<double> seeds;
                     for (const uint64_t seed : {1, 2, 3})
                       seeds.push_back(cycles_of(
                           design, conv.layer, {.method = method, .trials = trials, .seed = seed}));
                     std::sort(seeds.begin(), seeds.end());
                     return seeds[1];
                   },
                   {}});
  return all;
}

nlohmann::ordered_json compare_methods(int trials, int64_t tiles) {
  const spatial::Design design;
  std::vector<Column> all = columns(design, trials);
  nlohmann::ordered_json json;
  json["trials"] = trials;
  double total = 0, bounds = 0, mapper_seconds = 0;
  fmt::print("{:<28} {:>4} {:>10} {:>7}  over ours:", "layer", "runs", "ours", "bound");
  for (const Column& column : all) fmt::print(" | {}", column.name);
  fmt::print("\n");
  for (const Conv& conv : resnet_convolutions()) {
    const auto start = std::chrono::steady_clock::now();
    const double ours = mapped(design, conv.layer, tiles);
    mapper_seconds += seconds_since(start);
    const double bound = cost::lower_bound(design, conv.layer);
    total += conv.runs * ours;
    bounds += conv.runs * bound;
    nlohmann::ordered_json row{
        {"layer", conv.layer.name}, {"runs", conv.runs}, {"ours", ours}, {"bound", bound}};
    fmt::print("{:<28} {:>4} {:>10.0f} {:>7.3f}          ", conv.layer.name, conv.runs, ours,
               ours / bound);
    std::fflush(stdout);
    for (Column& column : all) {
      const auto began = std::chrono::steady_clock::now();
      const double cycles = column.cycles(conv);
      column.seconds += seconds_since(began);
      column.ratios.add(cycles / ours, conv.runs);
      column.total += conv.runs * cycles;
      row[column.name] = cycles;
      fmt::print(" {:>8.3f}", cycles / ours);
    }
    fmt::print("\n");
    std::fflush(stdout);
    json["layers"].push_back(std::move(row));
  }
  fmt::print("\nours: {:.0f} cycles in all, {:.3f} of the bound; mapped in {:.2f} s\n", total,
             total / bounds, mapper_seconds);
  for (const Column& column : all) {
    fmt::print(
        "{:<26} {:>6.3f}x ours (geometric mean), {:.3f}x (mean), {:.3f}x in all, above 2x in {:g}; "
        "{:.1f} s\n",
        column.name, column.ratios.mean(), column.ratios.arithmetic(), column.total / total,
        column.ratios.above_two(), column.seconds);
    json["summary"][column.name] = {{"geometric_mean", column.ratios.mean()},
                                    {"mean", column.ratios.arithmetic()},
                                    {"total", column.total / total},
                                    {"above_two", column.ratios.above_two()}};
  }
  return json;
}

nlohmann::ordered_json hold_contest(double seconds, int layers, int64_t tiles,
                                    const std::vector<std::string>& methods) {
  const spatial::Design design;
  nlohmann::ordered_json json;
  json["seconds"] = seconds;
  double worst = 0, sum = 0;
  int count = 0;
  fmt::print("{:<28} {:>10} {:>6} of ours:", "layer", "ours", "s");
  for (const std::string& method : methods) fmt::print(" {:>10}", method);
  fmt::print("\n");
  for (const Conv& conv : resnet_convolutions()) {
    if (count == layers) break;
    ++count;
    const auto start = std::chrono::steady_clock::now();
    const double ours = mapped(design, conv.layer, tiles);
    nlohmann::ordered_json row{{"layer", conv.layer.name}, {"ours", ours}};
    fmt::print("{:<28} {:>10.0f} {:>6.2f}         ", conv.layer.name, ours, seconds_since(start));
    double best = search::kInvalid;
    for (const std::string& method : methods) {
      const double cycles = cycles_of(design, conv.layer,
                                      {.method = method,
                                       .trials = std::numeric_limits<int>::max(),
                                       .seconds = seconds,
                                       .seed = 1});
      best = std::min(best, cycles);
      row[method] = cycles;
      fmt::print(" {:>10.4f}", cycles / ours);
      std::fflush(stdout);
    }
    fmt::print("\n");
    worst = std::max(worst, ours / best);
    sum += std::log(ours / best);
    json["layers"].push_back(std::move(row));
  }
  fmt::print(
      "\nours over the best of any searcher in {:g} s: {:.4f} (geometric mean), worst {:.4f}\n",
      seconds, std::exp(sum / count), worst);
  json["mean"] = std::exp(sum / count);
  json["worst"] = worst;
  return json;
}

}  // namespace
}  // namespace tilewright::bench

int main(int argc, char** argv) {
  namespace bench = tilewright::bench;
  using tilewright::spatial::Dataflow;
  CLI::App app("Mappings of spatial accelerators, by the cost model");
  app.require_subcommand(1);
  int trials = 500, layers = 20, count = 60, seeds = 20;
  double seconds = 60;
  std::string file, workload, suites = "hasco/ttm";
  std::vector<std::string> methods = {"random", "annealing", "p", "q", "evolution", "xgb", "prior"};
  CLI::App* compare = app.add_subcommand("methods", "Library, template, HASCO's search and ours");
  compare->add_option("--trials", trials, "mappings of a layer that a search tries");
  CLI::App* contest = app.add_subcommand("contest", "Searchers against the mapper");
  contest->add_option("--seconds", seconds, "of a searcher on a layer");
  contest->add_option("--layers", layers, "the first of the distinct convolutions");
  contest->add_option("--methods", methods)->delimiter(',');
  CLI::App* programs = app.add_subcommand("programs", "The same programs on two designs");
  programs->add_option("--count", count, "programs, for each seed");
  programs->add_option("--seeds", seeds, "draws of programs");
  CLI::App* choices = app.add_subcommand("choices", "The best mapping of each choice of loops");
  choices->add_option("--workload", workload, "workload file")
      ->required()
      ->check(CLI::ExistingFile);
  bool os = false;
  choices->add_flag("--os", os, "output stationary units, not weight stationary ones");
  choices->add_option("--suites", suites, "operators whose suite begins so");
  int64_t tiles = tilewright::cost::SpatialMapperOptions{}.tiles;
  for (CLI::App* verb : {compare, contest, programs, choices})
    verb->add_option("--json", file, "figures, as JSON");
  for (CLI::App* verb : {compare, contest})
    verb->add_option("--tiles", tiles, "of a layer that the mapper looks at, at most");
  CLI11_PARSE(app, argc, argv);
  nlohmann::ordered_json json;
  if (compare->parsed()) json = bench::compare_methods(trials, tiles);
  if (contest->parsed()) json = bench::hold_contest(seconds, layers, tiles, methods);
  if (programs->parsed()) json = bench::programs_on_two_designs(count, seeds);
  if (choices->parsed())
    json = bench::choices_of_operators(
        workload, suites, os ? Dataflow::OutputStationary : Dataflow::WeightStationary);
  if (!file.empty()) std::ofstream(file) << json.dump(1) << "\n";
  return 0;
}
