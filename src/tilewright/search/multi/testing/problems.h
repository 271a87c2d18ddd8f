// Tables with known fronts for tests: ZDT1 and DTLZ2 on grids, and a made-up family of accelerators
// with a prior that is roughly right.
#pragma once

#include <cmath>

#include "tilewright/search/multi/contest.h"
#include "tilewright/search/multi/draws.h"

namespace tilewright::search::testing {

inline Decision level_decision(const std::string& name, int levels) {
  std::vector<DecisionValue> values;
  for (int v = 0; v < levels; ++v)
    values.push_back({std::to_string(v), {static_cast<double>(v) / (levels - 1)}});
  return ordered_decision(name, values);
}

inline Decision size_decision(const std::string& name, const std::vector<int>& sizes) {
  std::vector<DecisionValue> values;
  for (int size : sizes) values.push_back({std::to_string(size), {std::log2(size)}});
  return ordered_decision(name, values);
}

/// A table of all points of a grid with `decisions` axes of `levels` values in [0, 1].
template <class Function>
ContestTable grid_table(size_t objectives, int decisions, int levels, const Function& function) {
  std::vector<Decision> all;
  for (int d = 0; d < decisions; ++d)
    all.push_back(level_decision("x" + std::to_string(d), levels));
  ContestTable table{{Space(all), objectives}, {}, {}};
  table.points = legal_points(table.problem);
  for (const Point& point : table.points)
    table.outcomes.push_back({function(table.problem.space.features(point)), {}, ""});
  return table;
}

/// Objectives must be positive; the functions' least values are 0.
constexpr double kAboveZero = 0.1;

/// source: Zitzler, Deb, Thiele, 2000. The front has x1 .. = 0: f2 = 1 - sqrt(f1).
inline ContestTable zdt1(int decisions, int levels) {
  return grid_table(2, decisions, levels, [](const std::vector<double>& x) {
    double rest = 0;
    for (size_t i = 1; i < x.size(); ++i) rest += x[i];
    const double g = 1 + 9 * rest / static_cast<double>(x.size() - 1);
    return Objectives{x[0] + kAboveZero, g * (1 - std::sqrt(x[0] / g)) + kAboveZero};
  });
}

/// source: Deb et al., 2002. Three objectives; the front has x2 .. = 0.5: the sum of squares is 1.
inline ContestTable dtlz2(int decisions, int levels) {
  return grid_table(3, decisions, levels, [](const std::vector<double>& x) {
    double g = 0;
    for (size_t i = 2; i < x.size(); ++i) g += (x[i] - 0.5) * (x[i] - 0.5);
    const double a = x[0] * 1.5707963267948966, b = x[1] * 1.5707963267948966;
    return Objectives{(1 + g) * std::cos(a) * std::cos(b) + kAboveZero,
                      (1 + g) * std::cos(a) * std::sin(b) + kAboveZero,
                      (1 + g) * std::sin(a) + kAboveZero};
  });
}

/// Latency, energy and area of made-up accelerators for matrix products.
struct Accelerator {
  double side, scratchpad, local, stationary, banks, bus, burst;
};

struct AcceleratorCost {
  double latency = 0, energy = 0, area = 0;
};

/// `whole`: with what a bound leaves out: filling, starving arrays, leakage, and `rough`, a few per
/// cent that depend on everything.
inline AcceleratorCost accelerator_cost(const Accelerator& a, bool whole) {
  constexpr double kLayers[][3] = {{3136, 64, 576}, {784, 128, 1152}, {196, 256, 2304},
                                   {49, 512, 4608}, {12544, 64, 147}, {49, 2048, 512}};
  AcceleratorCost cost;
  cost.area = 400 * a.side * a.side + 6 * 1024 * (a.scratchpad + a.local) + 20000 * a.banks +
              3000 * a.bus / 8 + 200 * a.burst;
  const double bytes_per_cycle = a.bus / 8 * a.burst / (a.burst + 64);
  for (const double* layer : kLayers) {
    const double m = layer[0], n = layer[1], k = layer[2];
    const double held = a.stationary > 0 ? k : m, streamed = a.stationary > 0 ? m : k;
    double steps = std::ceil(held / a.side) * std::ceil(n / a.side) * streamed;
    const double tile = std::sqrt(1024 * a.scratchpad / 3);
    const double sums = std::sqrt(1024 * a.local / 4);
    const double bytes = m * n * k * (1 / std::min(tile, n) + 1 / std::min(sums, m)) + m * n;
    double latency = std::max(steps, bytes / bytes_per_cycle);
    const double accesses = m * n * k / a.side * 3;
    double energy =
        m * n * k * 0.3 + accesses * 1.2 * std::sqrt(a.scratchpad / a.banks / 8) + bytes * 200;
    if (whole) {
      const double starving = std::max(1.0, a.side / (4 * a.banks));
      steps = steps * starving + std::ceil(held / a.side) * std::ceil(n / a.side) * 2 * a.side;
      latency = std::max(steps, bytes / bytes_per_cycle) + 0.15 * std::min(steps, bytes);
      const double rough = std::sin(a.side * 1.3 + a.scratchpad * 0.7 + a.local * 0.31 +
                                    a.banks * 2.1 + a.bus * 0.17 + m * 0.01);
      latency *= 1 + 0.03 * rough;
      energy = energy * (1 + 0.02 * rough) + latency * cost.area * 1e-5;
    }
    cost.latency += latency;
    cost.energy += energy;
  }
  return cost;
}

/// 1 728 accelerators. With `most_power`, energy / latency may not be higher.
inline ContestTable accelerators(double most_power = 0) {
  const std::vector<Decision> decisions = {size_decision("side", {8, 16, 32}),
                                           size_decision("scratchpad", {128, 256, 512}),
                                           size_decision("local", {64, 128, 256}),
                                           choice_decision("stationary", {"os", "ws"}),
                                           size_decision("banks", {1, 2, 3, 4, 5, 6, 7, 8}),
                                           size_decision("bus", {64, 128}),
                                           size_decision("burst", {64, 128})};
  ContestTable table{{Space(decisions), 3, most_power > 0 ? size_t{1} : 0}, {}, {}};
  const auto cost = [](const Point& p, bool whole) {
    auto power_of_two = [&](size_t d, int first) { return static_cast<double>(first << p[d]); };
    return accelerator_cost(
        {power_of_two(0, 8), power_of_two(1, 128), power_of_two(2, 64), static_cast<double>(p[3]),
         static_cast<double>(p[4] + 1), power_of_two(5, 64), power_of_two(6, 64)},
        whole);
  };
  auto over = [most_power](const AcceleratorCost& c) {
    std::vector<double> violations;
    if (most_power > 0) violations.push_back(std::log10(c.energy / c.latency / most_power));
    return violations;
  };
  table.points = legal_points(table.problem);
  for (const Point& point : table.points) {
    const AcceleratorCost c = cost(point, true);
    table.outcomes.push_back({{c.latency, c.energy, c.area}, over(c), ""});
  }
  table.problem.prior.at = [cost, over](const Point& point) {
    const AcceleratorCost c = cost(point, false);
    return PriorValue{{std::log10(c.latency), std::log10(c.energy), std::log10(c.area)}, over(c)};
  };
  table.problem.prior.known_objectives = {false, false, true};
  return table;
}

}  // namespace tilewright::search::testing
