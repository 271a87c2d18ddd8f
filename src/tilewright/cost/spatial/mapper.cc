#include "tilewright/cost/spatial/mapper.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewright::cost {
namespace {

struct Candidate {
  double least = 0;
  SpatialSizes tile{};
};

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
    for (const auto& [bound, index] : by_bound)
      if (options_.brute_force || bound < cycles_) search(evaluators[index]);
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

  std::vector<std::vector<int64_t>> sizes_of(const SpatialUnit& unit) {
    std::vector<std::vector<int64_t>> sizes;
    double product = 1;
    for (int loop = 0; loop < unit.loops; ++loop) {
      sizes.push_back(tile_sizes(layer_.loops[loop].extent, unit.lanes[loop]));
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

  void search(SpatialEvaluator& evaluator) {
    const SpatialUnit& unit = evaluator.unit();
    const auto sizes = sizes_of(unit);
    std::vector<Candidate> candidates;
    SpatialMapping smallest;
    smallest.choice = unit.choice;
    smallest.copies = {1, 1, 1};
    for (int loop = 0; loop < unit.loops; ++loop) smallest.tile[loop] = sizes[loop].front();
    auto descend = [&](auto& self, int loop) -> void {
      if (loop == unit.loops) {
        const double least = options_.brute_force ? 0 : evaluator.least(smallest.tile);
        if (options_.brute_force || least < cycles_) candidates.push_back({least, smallest.tile});
        return;
      }
      for (int64_t size : sizes[loop]) {
        smallest.tile[loop] = size;
        // Larger tiles need more of every memory.
        if (!evaluator.fits(smallest)) break;
        self(self, loop + 1);
      }
      smallest.tile[loop] = sizes[loop].front();
    };
    descend(descend, 0);
    if (!options_.brute_force)
      std::stable_sort(candidates.begin(), candidates.end(),
                       [](const Candidate& a, const Candidate& b) { return a.least < b.least; });
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!options_.brute_force && candidates[i].least >= cycles_) {
        best_.skipped += int64_t(candidates.size() - i);
        return;
      }
      orders(evaluator, candidates[i].tile);
    }
  }

  /// Loops with one tile stand first, where they change nothing; the others in every order.
  void orders(SpatialEvaluator& evaluator, const SpatialSizes& tile) {
    std::vector<int> fixed, moving, reduce;
    for (int loop = 0; loop < evaluator.unit().loops; ++loop) {
      const bool one = tile[loop] >= layer_.loops[loop].extent;
      (layer_.loops[loop].reduces ? reduce : one ? fixed : moving).push_back(loop);
    }
    SpatialMapping mapping;
    mapping.choice = evaluator.unit().choice;
    mapping.tile = tile;
    do {
      auto out = std::copy(fixed.begin(), fixed.end(), mapping.order.begin());
      out = std::copy(moving.begin(), moving.end(), out);
      std::copy(reduce.begin(), reduce.end(), out);
      if (!options_.brute_force && evaluator.least(tile, mapping.order.data()) >= cycles_) continue;
      copies(evaluator, mapping);
    } while (std::next_permutation(moving.begin(), moving.end()));
  }

  void copies(SpatialEvaluator& evaluator, SpatialMapping& mapping) {
    uint32_t fitting = 0;
    for (uint32_t bits = 8; bits-- > 0;) {
      mapping.copies = {1 + int(bits & 1), 1 + int(bits >> 1 & 1), 1 + int(bits >> 2 & 1)};
      if (!evaluator.fits(mapping)) continue;
      // Another copy of a buffer never makes a program wait longer.
      bool more = false;
      for (uint32_t other = bits + 1; other < 8; ++other)
        more = more || ((fitting >> other & 1) && (other & bits) == bits);
      fitting |= 1u << bits;
      if (more && !options_.brute_force) continue;
      const double cycles = evaluator.cycles(mapping);
      ++best_.predicted;
      if (found_ && cycles >= cycles_) continue;
      found_ = true;
      cycles_ = cycles;
      best_.mapping = mapping;
    }
  }

  const spatial::Design& design_;
  const SpatialLayer& layer_;
  const SpatialMapperOptions& options_;
  SpatialBest best_;
  bool found_ = false;
  double cycles_ = std::numeric_limits<double>::infinity();
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

std::vector<int64_t> tile_sizes(int64_t extent, int64_t lanes) {
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

std::optional<SpatialBest> best_mapping(const spatial::Design& design, const SpatialLayer& layer,
                                        const SpatialMapperOptions& options) {
  return Mapper(design, layer, options).run();
}

}  // namespace tilewright::cost
