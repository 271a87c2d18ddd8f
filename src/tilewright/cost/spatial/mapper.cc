#include "tilewright/cost/spatial/mapper.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tilewright/cost/spatial/candidates.h"
#include "tilewright/cost/spatial/score.h"

namespace tilewright::cost {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Keeps the first, the last and `wanted` - 2 sizes that grow by about equal factors.
std::vector<int64_t> thinned(const std::vector<int64_t>& sizes, size_t wanted) {
  if (sizes.size() <= wanted) return sizes;
  std::vector<int64_t> kept;
  const double factor = std::log(double(sizes.back()) / double(sizes.front()));
  size_t at = 0;
  for (size_t i = 0; i < wanted; ++i) {
    const double goal = double(sizes.front()) *
                        std::exp(factor * double(i) / double(std::max<size_t>(1, wanted - 1)));
    while (at + 1 < sizes.size() && double(sizes[at]) < goal * (1 - 1e-9)) ++at;
    if (kept.empty() || kept.back() != sizes[at]) kept.push_back(sizes[at]);
  }
  if (kept.back() != sizes.back()) kept.push_back(sizes.back());
  return kept;
}

/// Sizes that make a number of equal parts, and those rounded up to whole lanes; ascending.
std::vector<int64_t> whole_lanes(int64_t extent, int64_t lanes) {
  std::vector<int64_t> sizes;
  for (int64_t parts = 1; parts <= extent; ++parts) {
    const int64_t size = ceil_div(extent, parts);
    sizes.push_back(std::min(extent, ceil_div(size, lanes) * lanes));
    if (lanes > 1 && size < lanes) break;  // fewer lanes than there are waste the array
    if (size == 1) break;
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

class Mapper {
 public:
  Mapper(const spatial::Design& design, const SpatialLayer& layer,
         const SpatialMapperOptions& options)
      : design_(design), layer_(layer), options_(options) {
    best_.exact = true;
  }

  std::optional<SpatialBest> run() {
    std::vector<SpatialEvaluator> evaluators;
    for (const SpatialChoice& choice : considered())
      evaluators.emplace_back(design_, layer_, choice);
    // Promising choices first: their results skip most tiles of the others.
    std::vector<std::pair<double, size_t>> by_bound;
    for (size_t i = 0; i < evaluators.size(); ++i)
      by_bound.emplace_back(options_.brute_force ? 0 : choice_bound(evaluators[i]), i);
    std::stable_sort(by_bound.begin(), by_bound.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (!options_.brute_force && !by_bound.empty()) {
      for (SpatialEvaluator& evaluator : evaluators) try_known(evaluator);
      if (score_ == kUnlimited) sample(evaluators[by_bound[0].second]);
    }
    search_all(evaluators, by_bound);
    // None is as good as one known: a copy more made it slower, which bounds do not expect.
    if (!found_ && score_ < kUnlimited) {
      score_ = kUnlimited;
      search_all(evaluators, by_bound);
    }
    if (!found_) return std::nullopt;
    best_.cost = evaluate(design_, layer_, best_.mapping);
    return best_;
  }

 private:
  std::vector<SpatialChoice> considered() const {
    if (!options_.choices.empty()) return options_.choices;
    return options_.brute_force ? choices(design_, layer_) : distinct_choices(design_, layer_);
  }

  /// Whole steps alone, and what the ports must move at least.
  double choice_bound(SpatialEvaluator& evaluator) const {
    const SpatialUnit& unit = evaluator.unit();
    double steps = 1, most = 0;
    SpatialSizes whole{};
    for (int loop = 0; loop < unit.loops; ++loop) {
      whole[loop] = layer_.loops[loop].extent;
      steps *= double(ceil_div(whole[loop], unit.lanes[loop]));
    }
    for (int f : {0, 1}) {
      const SpatialTransfer all =
          unit.transfer(f ? unit.choice.second() : unit.choice.first, {{}, whole});
      most += double(all.bytes()) / (unit.gathers[f] ? 1 : design_.bus_bytes);
    }
    return std::max(steps, most);
  }

  std::vector<std::vector<int64_t>> sizes_of(const SpatialEvaluator& evaluator) {
    const SpatialUnit& unit = evaluator.unit();
    std::vector<std::vector<int64_t>> sizes;
    double product = 1;
    for (int loop = 0; loop < unit.loops; ++loop) {
      sizes.push_back(tile_sizes(evaluator, loop));
      product *= double(sizes.back().size());
    }
    while (!options_.brute_force && product > double(options_.tiles)) {
      best_.exact = false;
      auto most = std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
        return a.size() < b.size();
      });
      product /= double(most->size());
      *most = thinned(*most, most->size() - 1);
      product *= double(most->size());
    }
    return sizes;
  }

  /// The score (cost/spatial/score.h) of some mapping is known: those that score as much are still
  /// looked at, so that what is found does not depend on what was known.
  void know(double score) { score_ = std::min(score_, std::nextafter(score, kUnlimited)); }

  void try_known(SpatialEvaluator& evaluator) {
    for (const SpatialMapping& mapping : options_.known)
      if (mapping.choice == evaluator.unit().choice && evaluator.fits(mapping)) {
        know(evaluator.cycles(mapping) * energy_factor(evaluator.energy(mapping)));
        ++best_.predicted;
      }
  }

  /// Looks at a few tiles of a choice, to have a bound for all others.
  void sample(SpatialEvaluator& evaluator) {
    constexpr size_t kSizes = 3, kTiles = 6;
    auto sizes = sizes_of(evaluator);
    for (std::vector<int64_t>& of_loop : sizes) of_loop = thinned(of_loop, kSizes);
    const std::vector<SpatialCandidate> candidates = candidates_of(evaluator, sizes);
    const double factor = least_factor(evaluator);
    for (size_t i = 0; i < std::min(kTiles, candidates.size()); ++i)
      if (useful(candidates[i].least, factor)) try_tile(evaluator, candidates[i]);
    if (!found_) return;
    found_ = false;
    know(std::exchange(score_, kUnlimited));
  }

  void search_all(std::vector<SpatialEvaluator>& evaluators,
                  const std::vector<std::pair<double, size_t>>& by_bound) {
    for (const auto& [bound, index] : by_bound)
      if (useful(bound, least_factor(evaluators[index]))) search(evaluators[index]);
  }

  std::vector<SpatialCandidate> candidates_of(SpatialEvaluator& evaluator,
                                              const std::vector<std::vector<int64_t>>& sizes) {
    return promising_tiles(evaluator, sizes,
                           options_.brute_force ? kUnlimited : score_ / least_factor(evaluator));
  }

  void search(SpatialEvaluator& evaluator) {
    const std::vector<SpatialCandidate> candidates = candidates_of(evaluator, sizes_of(evaluator));
    const double factor = least_factor(evaluator);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!useful(candidates[i].least, factor)) {
        best_.skipped += int64_t(candidates.size() - i);
        return;
      }
      try_tile(evaluator, candidates[i]);
    }
  }

  /// Of no mapping of the choice it is less.
  static double least_factor(const SpatialEvaluator& evaluator) {
    return energy_factor(evaluator.least_energy());
  }

  /// Whether a mapping may be better than the best so far that takes so many cycles at least.
  bool useful(double least, double factor) const {
    return options_.brute_force || least * factor < score_;
  }

  /// An order of a tile's loops, with what LOADs take together in it, and the factor of its energy.
  struct Ordered {
    std::array<int, kSpatialLoops> order{};
    double loads = 0, factor = 1;
  };

  /// Those that may be better than the best so far. Loops with one tile stand first, where they
  /// change nothing; the others in every order.
  std::vector<Ordered> orders(SpatialEvaluator& evaluator,
                              const SpatialCandidate& candidate) const {
    const SpatialUnit& unit = evaluator.unit();
    SpatialSizes trips{};
    Ordered next;
    auto place = next.order.begin();
    const auto put = [&](auto&& which) {
      for (int loop = 0; loop < unit.loops; ++loop)
        if (which(loop)) *place++ = loop;
      return place;
    };
    const auto reduces = [&](int loop) { return layer_.loops[loop].reduces; };
    for (int loop = 0; loop < unit.loops; ++loop)
      trips[loop] = ceil_div(layer_.loops[loop].extent, candidate.tile[loop]);
    const auto moving = put([&](int loop) { return !reduces(loop) && trips[loop] == 1; });
    const auto reduced = put([&](int loop) { return !reduces(loop) && trips[loop] > 1; });
    put(reduces);
    std::vector<Ordered> found;
    const SpatialEnergy energy = evaluator.energy(candidate.tile);
    if (!useful(candidate.least, energy_factor(energy.of({1, 1})))) return found;
    do {
      std::array<int64_t, 2> times;
      next.loads = 0;
      for (int tensor : {0, 1}) {
        times[tensor] = repeats(unit, tensor, next.order.data(), trips);
        next.loads += candidate.loads[tensor] * double(times[tensor]);
      }
      next.factor = energy_factor(energy.of(times));
      if (useful(std::max(candidate.least, next.loads), next.factor)) found.push_back(next);
    } while (std::next_permutation(moving, reduced));
    return found;
  }

  void try_tile(SpatialEvaluator& evaluator, const SpatialCandidate& candidate) {
    const std::vector<Ordered> ordered = orders(evaluator, candidate);
    if (ordered.empty()) return;
    double least = kUnlimited;
    for (const Ordered& one : ordered) least = std::min(least, one.factor);
    if (!options_.brute_force &&
        evaluator.computes_take(candidate.tile, score_ / least - candidate.before))
      return;
    SpatialMapping mapping;
    mapping.choice = evaluator.unit().choice;
    mapping.tile = candidate.tile;
    const std::vector<Copies> fitting = copies(evaluator, mapping);
    for (const Ordered& one : ordered) {
      if (!useful(std::max(candidate.least, one.loads), one.factor)) continue;
      mapping.order = one.order;
      for (const Copies& copies : fitting) {
        mapping.copies = copies;
        predict(evaluator, mapping, one.factor);
      }
    }
  }

  using Copies = std::array<int, kSpatialTensors>;

  /// Copies of the buffers that fit. Another copy never makes a program wait longer: only those to
  /// which none can be added.
  std::vector<Copies> copies(const SpatialEvaluator& evaluator, SpatialMapping mapping) const {
    std::vector<Copies> found;
    uint32_t fitting = 0;
    for (uint32_t bits = 8; bits-- > 0;) {
      mapping.copies = {1 + int(bits & 1), 1 + int(bits >> 1 & 1), 1 + int(bits >> 2 & 1)};
      bool more = false;
      for (uint32_t other = bits + 1; other < 8; ++other)
        more = more || ((fitting >> other & 1) && (other & bits) == bits);
      if ((more && !options_.brute_force) || !evaluator.fits(mapping)) continue;
      fitting |= 1u << bits;
      found.push_back(mapping.copies);
    }
    return found;
  }

  void predict(SpatialEvaluator& evaluator, const SpatialMapping& mapping, double factor) {
    const double score =
        factor * (options_.brute_force ? evaluator.cycles(mapping)
                                       : evaluator.cycles_below(mapping, score_ / factor));
    ++best_.predicted;
    if (score >= score_) return;
    found_ = true;
    score_ = score;
    best_.mapping = mapping;
  }

  const spatial::Design& design_;
  const SpatialLayer& layer_;
  const SpatialMapperOptions& options_;
  SpatialBest best_;
  bool found_ = false;
  double score_ = kUnlimited;
};

}  // namespace

std::vector<SpatialChoice> distinct_choices(const spatial::Design& design,
                                            const SpatialLayer& layer) {
  std::vector<SpatialChoice> found;
  std::vector<SpatialUnit> units;
  for (const SpatialChoice& choice : choices(design, layer)) {
    const SpatialUnit unit(design, layer, choice);
    const bool known = std::any_of(units.begin(), units.end(), [&](const SpatialUnit& other) {
      return other.lanes == unit.lanes && other.lane_loop == unit.lane_loop &&
             other.choice.first == choice.first;
    });
    if (known) continue;
    found.push_back(choice);
    units.push_back(unit);
  }
  return found;
}

std::vector<int64_t> tile_sizes(const SpatialEvaluator& evaluator, int loop) {
  const SpatialUnit& unit = evaluator.unit();
  std::vector<int64_t> sizes = whole_lanes(unit.layer.loops[loop].extent, unit.lanes[loop]);
  SpatialMapping alone;
  alone.choice = unit.choice;
  alone.copies = {1, 1, 1};
  alone.tile.fill(1);
  for (alone.tile[loop] = sizes.front(); alone.tile[loop] > 1 && !evaluator.fits(alone);) {
    alone.tile[loop] = ceil_div(alone.tile[loop], 2);
    sizes.insert(sizes.begin(), alone.tile[loop]);
  }
  return sizes;
}

std::optional<SpatialBest> best_mapping(const spatial::Design& design, const SpatialLayer& layer,
                                        const SpatialMapperOptions& options) {
  return Mapper(design, layer, options).run();
}

}  // namespace tilewright::cost
