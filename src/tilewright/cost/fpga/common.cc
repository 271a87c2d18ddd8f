// Arrays (sizes side by side) come in the order of the time that they need at least for all layers.
// For one of them, each layer's best tiles by themselves say what all take at least. These tiles
// may not fit together, since buffers are as large as the largest one's: then tiles that cost a
// little more come in, and a depth-first search puts them together.
//
//   two layers, room for 100 words      A: 60 words 10 cycles, 30 words 12     image and weights
//   each alone 10 + 20 = 30 cycles      B: 80 words 20 cycles, 40 words 21     together <= 100
#include "tilewright/cost/fpga/common.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace tilewright::cost {
namespace {

/// Tiles that cost up to this share more than the best ones are looked at first, then eight times
/// as much, until some fit together.
constexpr double kFirstSlack = 0.002, kMoreSlack = 8;
constexpr double kAll = 100;  ///< no tiles are left out any more

/// Tiles of one layer, and the buffers that they need.
struct Choice {
  FpgaBest best;
  FpgaRams buffers;
};

/// What layers have in common beside their sizes side by side. The interval is that of the
/// generated code: the longest would slow all layers down.
using Structure = std::tuple<int, int, int, int, int, int, int64_t, bool, FpgaStays, int64_t>;

Structure structure_of(const FpgaDesign& d, FpgaStays order, int64_t interval) {
  return {d.image_slots, d.weight_slots, d.result_slots, d.image_ports, d.weight_ports,
          d.pipelines,   d.block,        d.uram,         order,         interval};
}

FpgaRams larger(FpgaRams a, const FpgaRams& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    a[i].banks = std::max(a[i].banks, b[i].banks);
    a[i].words = std::max(a[i].words, b[i].words);
  }
  return a;
}

bool needs_no_more(const FpgaRams& a, const FpgaRams& b) { return larger(a, b) == b; }

/// The choices of a layer of which no other needs less time and no more memory.
class Choices {
 public:
  void add(const Choice& one) {
    for (const Choice& other : all_)
      if (other.best.time.cycles <= one.best.time.cycles &&
          needs_no_more(other.buffers, one.buffers))
        return;
    std::erase_if(all_, [&](const Choice& other) {
      return other.best.time.cycles >= one.best.time.cycles &&
             needs_no_more(one.buffers, other.buffers);
    });
    const auto at = std::upper_bound(
        all_.begin(), all_.end(), one,
        [](const Choice& a, const Choice& b) { return a.best.time.cycles < b.best.time.cycles; });
    all_.insert(at, one);
  }
  const std::vector<Choice>& by_time() const { return all_; }

 private:
  std::vector<Choice> all_;
};

/// A choice for each layer, such that the buffers of all fit together: the fastest.
class Together {
 public:
  Together(const std::vector<FpgaLayerUse>& layers, const std::vector<Choices>& choices,
           double least)
      : layers_(layers), choices_(choices), least_(least), chosen_(layers.size()) {}

  /// Nothing: none takes less than the `least` that is known.
  std::optional<std::vector<const Choice*>> run() {
    next(0, {FpgaRam{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, 0);
    return best_.empty() ? std::nullopt : std::optional(best_);
  }

 private:
  bool fits(const Choice& one, const FpgaRams& buffers) const {
    return layers_[0].model->problem(one.best.design, buffers).empty();
  }

  /// Of a layer beside what is in `buffers`.
  const Choice* fastest(size_t layer, const FpgaRams& buffers) const {
    for (const Choice& one : choices_[layer].by_time())
      if (fits(one, larger(one.buffers, buffers))) return &one;
    return nullptr;
  }

  void next(size_t layer, const FpgaRams& buffers, double cycles) {
    if (layer == layers_.size()) {
      least_ = cycles;
      best_ = chosen_;
      return;
    }
    double rest = 0;  // of the layers behind this one, at least
    for (size_t i = layer + 1; i < layers_.size(); ++i) {
      const Choice* one = fastest(i, buffers);
      if (one == nullptr) return;
      rest += layers_[i].times * one->best.time.cycles;
    }
    for (const Choice& one : choices_[layer].by_time()) {
      const double now = cycles + layers_[layer].times * one.best.time.cycles;
      if (now + rest >= least_) return;
      const FpgaRams all = larger(one.buffers, buffers);
      if (!fits(one, all)) continue;
      chosen_[layer] = &one;
      next(layer + 1, all, now);
    }
  }

  const std::vector<FpgaLayerUse>& layers_;
  const std::vector<Choices>& choices_;
  double least_;
  std::vector<const Choice*> chosen_, best_;
};

class CommonSearch {
 public:
  CommonSearch(const std::vector<FpgaLayerUse>& layers, const FpgaSearch& search)
      : layers_(layers), search_(search) {}

  std::optional<FpgaCommon> run() {
    for (const auto& [bound, sizes] : arrays()) {
      if (bound >= worth() || (search_.most_sizes > 0 && looked_at_ == search_.most_sizes)) break;
      ++looked_at_;
      array(sizes);
    }
    if (best_) best_->looked_at = looked_at_;
    return std::move(best_);
  }

 private:
  using Sizes = std::array<int64_t, 3>;

  double worth() const { return best_ ? best_->cycles * (1 - search_.gap) : search_.limit; }

  /// All that one layer or another would take, with the cycles that all layers take at least.
  std::vector<std::pair<double, Sizes>> arrays() const {
    std::vector<std::pair<double, Sizes>> all;
    const int64_t cells = layers_[0].model->most_products();
    const int64_t most = search_.most_products > 0 ? std::min(cells, search_.most_products) : cells;
    const auto add = [&](const Sizes& sizes) {
      const int64_t products = sizes[0] * sizes[1] * sizes[2];
      if (products > most) return;
      const int64_t pipelines = std::min<int64_t>(search_.pipelines, most / products);
      double bound = 0;
      for (const FpgaLayerUse& layer : layers_)
        bound += layer.times *
                 std::max(layer.model->bound(sizes[0], sizes[1], sizes[2]), traffic(*layer.model));
      all.push_back({bound / static_cast<double>(pipelines), sizes});
    };
    if (search_.sizes) {
      add(*search_.sizes);
      return all;
    }
    const auto inputs = sizes_of(&FpgaRoles::inputs, search_.most_inputs);
    const auto pixels = sizes_of(&FpgaRoles::pixels, search_.most_pixels);
    for (const int64_t uo : sizes_of(&FpgaRoles::outputs, 0))
      for (const int64_t ui : inputs)
        for (const int64_t us : pixels) add({uo, ui, us});
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return all;
  }

  /// Cycles to move all tensors of a layer once, at least.
  double traffic(const FpgaModel& model) const {
    if (!search_.overlap) return 0;
    const FpgaModel::Traffic once = model.least_traffic();
    return std::max(
        {once.image / search_.image_ports, once.weights / search_.weight_ports, once.result});
  }

  std::vector<int64_t> sizes_of(int FpgaRoles::* role, int64_t most) const {
    std::vector<int64_t> all;
    for (const FpgaLayerUse& layer : layers_) {
      const std::vector<int64_t> own =
          part_sizes(layer.model->extent(layer.model->roles().*role), search_);
      all.insert(all.end(), own.begin(), own.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    thin_out(all, search_.apart, [&](int64_t size) {
      return std::any_of(layers_.begin(), layers_.end(), [&](auto& one) {
        return one.model->extent(one.model->roles().*role) % size == 0;
      });
    });
    std::erase_if(all, [&](int64_t size) {
      return (most > 0 && size > most) ||
             (search_.divisors_only && !std::all_of(layers_.begin(), layers_.end(), [&](auto& one) {
                return one.model->extent(one.model->roles().*role) % size == 0;
              }));
    });
    return all;
  }

  /// Tiles for one array.
  void array(const Sizes& sizes) {
    FpgaSearch one = search_;
    one.sizes = sizes;
    one.gap = 0;
    one.row_banks = common_row_banks(layers_, sizes[2]);
    std::vector<double> least;  // of each layer by itself
    const double sum = alone(one, least);
    for (double slack = kFirstSlack * sum; sum < worth(); slack *= kMoreSlack) {
      // A solution below this has each layer within the slack of its best.
      const bool all = slack > kAll * sum;
      const double target = all ? worth() : std::min(worth(), sum + slack);
      if (choose(one, least, target - sum, target) || target == worth()) return;
    }
  }

  /// The least cycles of all layers, each by itself; as soon as that is too many: infinity.
  double alone(FpgaSearch one, std::vector<double>& least) const {
    double sum = 0;
    std::vector<double> bounds;
    for (const FpgaLayerUse& layer : layers_) {
      const auto [uo, ui, us] = *one.sizes;
      bounds.push_back(layer.times * layer.model->bound(uo, ui, us) / search_.pipelines);
    }
    double rest = std::accumulate(bounds.begin(), bounds.end(), 0.0);
    for (size_t i = 0; i < layers_.size(); ++i) {
      rest -= bounds[i];
      one.limit = (worth() - sum - rest) / layers_[i].times;
      const auto found = best_fpga_design(*layers_[i].model, one);
      if (!found) return std::numeric_limits<double>::infinity();
      least.push_back(found->time.cycles);
      sum += layers_[i].times * found->time.cycles;
    }
    return sum;
  }

  /// The best below `target`, with each layer's tiles within `slack` of its least. Whether there is
  /// one.
  bool choose(FpgaSearch one, const std::vector<double>& least, double slack, double target) {
    std::map<Structure, std::vector<Choices>> structures;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const FpgaModel& model = *layers_[i].model;
      one.limit = least[i] + slack / layers_[i].times;
      each_fpga_design(model, one, [&](FpgaBest best) {
        const Choice choice{best, model.buffers(best.design)};
        for (const FpgaStays order : {FpgaStays::Image, FpgaStays::Weights}) {
          if (best.design.stays != FpgaStays::Nothing && best.design.stays != order) continue;
          const int64_t interval = model.options().as_written ? best.time.ii : 1;
          std::vector<Choices>& choices = structures[structure_of(best.design, order, interval)];
          choices.resize(layers_.size());
          choices[i].add(choice);
        }
      });
    }
    bool found = false;
    for (const auto& [structure, choices] : structures)
      if (const auto chosen = Together(layers_, choices, target).run()) {
        found = true;
        take(*chosen, std::get<FpgaStays>(structure));
        target = std::min(target, best_->cycles);
      }
    return found;
  }

  void take(const std::vector<const Choice*>& chosen, FpgaStays order) {
    FpgaCommon common;
    common.structure = chosen[0]->best.design;
    FpgaDesign& d = common.structure;
    d.to = d.tc = d.th = d.tw = 1;
    d.stays = order;
    common.buffers = chosen[0]->buffers;
    for (size_t i = 0; i < layers_.size(); ++i) {
      common.buffers = larger(common.buffers, chosen[i]->buffers);
      common.cycles += layers_[i].times * chosen[i]->best.time.cycles;
      common.layers.push_back(chosen[i]->best);
    }
    best_ = std::move(common);
  }

  const std::vector<FpgaLayerUse>& layers_;
  const FpgaSearch& search_;
  std::optional<FpgaCommon> best_;
  int64_t looked_at_ = 0;
};

}  // namespace

int64_t common_row_banks(const std::vector<FpgaLayerUse>& layers, int64_t us) {
  int64_t banks = us;
  for (const FpgaLayerUse& layer : layers)
    banks = std::max(banks, layer.model->pixel_banks({.us = us}));
  // Pixels `stride` apart lie in banks / gcd different ones.
  const auto all = [&] {
    return std::all_of(layers.begin(), layers.end(), [&](const FpgaLayerUse& layer) {
      return banks / std::gcd(layer.model->row_stride(), banks) >= us;
    });
  };
  while (!all()) ++banks;
  return banks;
}

std::optional<FpgaCommon> best_common_fpga_design(const std::vector<FpgaLayerUse>& layers,
                                                  const FpgaSearch& search) {
  if (layers.empty()) return std::nullopt;
  return CommonSearch(layers, search).run();
}

}  // namespace tilewright::cost
