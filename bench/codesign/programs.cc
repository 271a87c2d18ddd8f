#include "programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cases.h"
#include "tilewright/base/rng.h"
#include "tilewright/tune/spatial/space.h"

namespace tilewright::bench {
namespace {

spatial::Design array(int side, int spad_kb) {
  spatial::Design design;
  design.rows = design.cols = side;
  design.spad_kb = spad_kb;
  return design;
}

double cycles_on(const spatial::Design& design, const cost::SpatialLayer& layer,
                 const cost::SpatialMapping& mapping) {
  return cost::evaluate(design, layer, mapping).cycles;
}

bool fits(const spatial::Design& design, const cost::SpatialLayer& layer,
          const cost::SpatialMapping& mapping) {
  return cost::misfits(design, layer, mapping).empty();
}

/// Whether a tile has work for all lanes of the design.
bool fills(const spatial::Design& design, const cost::SpatialLayer& layer,
           const cost::SpatialMapping& mapping) {
  const cost::SpatialEvaluator evaluator(design, layer, mapping.choice);
  for (size_t loop = 0; loop < layer.loops.size(); ++loop)
    if (mapping.tile[loop] < evaluator.unit().lanes[loop]) return false;
  return true;
}

/// Programs that both designs can run: tiles that divide the loops and have work for all lanes,
/// any choice and order.
std::vector<cost::SpatialMapping> programs(const spatial::Design& large,
                                           const spatial::Design& small,
                                           const cost::SpatialLayer& layer, int count,
                                           uint64_t seed) {
  const auto space =
      tune::SpatialSpace::create(small, layer, {.form = tune::SpatialForm::Factors}).value();
  Rng rng(seed);
  std::vector<cost::SpatialMapping> drawn;
  while (static_cast<int>(drawn.size()) < count) {
    const cost::SpatialMapping mapping = space->mapping(space->space().random(rng));
    const bool known = std::find(drawn.begin(), drawn.end(), mapping) != drawn.end();
    if (!known && fits(large, layer, mapping) && fits(small, layer, mapping) &&
        fills(large, layer, mapping))
      drawn.push_back(mapping);
  }
  return drawn;
}

/// The most cycles of a program with the same tile and another order, over `mapping`'s. The loop
/// summed over stays the innermost of the three.
double worst_order(const spatial::Design& design, const cost::SpatialLayer& layer,
                   const cost::SpatialMapping& mapping) {
  double worst = 0;
  cost::SpatialMapping other = mapping;
  do {
    std::next_permutation(other.order.begin(), other.order.begin() + 2);
    worst = std::max(worst, cycles_on(design, layer, other));
  } while (!(other == mapping));
  return worst / cycles_on(design, layer, mapping);
}

/// The most cycles of a program with more on-chip computation, one loop's tile twice as long, and
/// the same order, over `mapping`'s; 0: none fits.
double larger_tile(const spatial::Design& design, const cost::SpatialLayer& layer,
                   const cost::SpatialMapping& mapping) {
  double most = 0;
  for (size_t loop = 0; loop < layer.loops.size(); ++loop) {
    cost::SpatialMapping larger = mapping;
    larger.tile[loop] *= 2;
    if (larger.tile[loop] > layer.loops[loop].extent || !fits(design, layer, larger)) continue;
    most = std::max(most, cycles_on(design, layer, larger));
  }
  return most / cycles_on(design, layer, mapping);
}

/// Prints the best of all mappings of the layer, and what it takes on the other design.
void print_best(const char* name, const spatial::Design& design, const spatial::Design& other,
                const cost::SpatialLayer& layer) {
  const auto best = cost::best_mapping(design, layer).value();
  fmt::print("of all mappings, the best on the {} one: {:.0f} cycles, {}\n", name, best.cost.cycles,
             cost::to_string(layer, best.mapping));
  if (!fits(other, layer, best.mapping)) {
    fmt::print("  it does not fit the other one\n");
    return;
  }
  const double there = cost::best_mapping(other, layer).value().cost.cycles;
  fmt::print("  on the other one it takes {:.3f} times as long as the best there\n",
             cycles_on(other, layer, best.mapping) / there);
}

}  // namespace

nlohmann::ordered_json programs_on_two_designs(int count, int seeds) {
  const cost::SpatialLayer layer = cost::matmul(512, 512, 512);
  const spatial::Design large = array(16, 256), small = array(8, 128);
  nlohmann::ordered_json json;
  int differ = 0;
  fmt::print(
      "seed  spread large, small  peak ratio  small's best on large, large's on small  "
      "other order  larger tile\n");
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto all = programs(large, small, layer, count, static_cast<uint64_t>(seed));
    std::vector<double> on_large, on_small;
    for (const cost::SpatialMapping& mapping : all) {
      on_large.push_back(cycles_on(large, layer, mapping));
      on_small.push_back(cycles_on(small, layer, mapping));
    }
    const auto [l, worst_l] = std::minmax_element(on_large.begin(), on_large.end());
    const auto [s, worst_s] = std::minmax_element(on_small.begin(), on_small.end());
    const auto best_l = static_cast<size_t>(l - on_large.begin()),
               best_s = static_cast<size_t>(s - on_small.begin());
    differ += best_l != best_s;
    const double order = worst_order(large, layer, all[best_l]),
                 tile = larger_tile(large, layer, all[best_l]);
    fmt::print("{:>4}  {:>8.1f} {:>8.1f}  {:>10.2f}  {:>16.3f} {:>20.3f}  {:>11.3f}  {:>11.3f}\n",
               seed, *worst_l / *l, *worst_s / *s, *s / *l, on_large[best_s] / *l,
               on_small[best_l] / *s, order, tile);
    json["seeds"].push_back({{"large", on_large}, {"small", on_small}});
  }
  fmt::print("\neach design has another best one of {} programs for {} of {} seeds\n", count,
             differ, seeds);
  json["differ"] = differ;
  print_best("large", large, small, layer);
  print_best("small", small, large, layer);
  return json;
}

nlohmann::ordered_json choices_of_operators(const std::string& workload_file,
                                            const std::string& suites, spatial::Dataflow dataflow) {
  spatial::Design design = array(8, 256);
  design.dataflow = dataflow;
  nlohmann::ordered_json json;
  for (const Operator& one : operators_of(workload_file, suites))
    for (const cost::SpatialLayer& layer : one.layers) {
      fmt::print("{}: {}\n", one.id, layer.name);
      double least = HUGE_VAL, most = 0;
      for (const cost::SpatialChoice& choice : cost::distinct_choices(design, layer)) {
        const auto best = cost::best_mapping(design, layer, {.choices = {choice}}).value();
        least = std::min(least, best.cost.cycles), most = std::max(most, best.cost.cycles);
        const std::string text = cost::to_string(layer, best.mapping);
        fmt::print("  {:>14.0f}  {}\n", best.cost.cycles, text);
        json[one.id].push_back({{"cycles", best.cost.cycles}, {"mapping", text}});
      }
      fmt::print("  the slowest takes {:.3f} times as long as the fastest\n", most / least);
    }
  return json;
}

}  // namespace tilewright::bench
