#include "tilewright/cost/fpga/search.h"

#include <algorithm>

namespace tilewright::cost {
namespace {

int64_t parts(int64_t extent, int64_t size) { return (extent + size - 1) / size; }

/// Multiples of `size` that are tiles of `extent`, the largest first.
std::vector<int64_t> tiles_of(int64_t extent, int64_t size, const FpgaSearch& search) {
  std::vector<int64_t> tiles;
  for (const int64_t part : part_sizes(parts(extent, size), search)) tiles.push_back(part * size);
  std::reverse(tiles.begin(), tiles.end());
  return tiles;
}

class Search {
 public:
  /// `take` gets all designs below the limit; without it the `most` best are kept.
  Search(const FpgaModel& model, const FpgaSearch& search, size_t most,
         std::function<void(FpgaBest)> take = {})
      : model_(model),
        search_(search),
        roles_(model.roles()),
        most_(most),
        take_(std::move(take)),
        least_(search.limit),
        worth_(search.limit) {
    const FpgaModel::Traffic once = model.least_traffic();
    image_ = once.image / search.image_ports;
    weights_ = once.weights / search.weight_ports;
    result_ = once.result;
  }

  std::vector<FpgaBest> run() {
    for (const Triple& triple : triples()) {
      if (triple.bound >= worth_ || looked_enough()) break;
      FpgaDesign design;
      design.uo = triple.sizes[0];
      design.ui = triple.sizes[1];
      design.us = triple.sizes[2];
      design.pipelines = triple.pipelines;
      design.overlap = search_.overlap;
      design.row_banks = search_.row_banks;
      try_tiles(design, model_.bound(design.uo, design.ui, design.us));
    }
    for (FpgaBest& one : best_) one.looked_at = looked_at_;
    return std::move(best_);
  }

 private:
  struct Triple {
    std::array<int64_t, 3> sizes{};
    int pipelines = 1;
    double bound = 0;
  };

  std::vector<Triple> triples() const {
    int64_t most = model_.most_products();
    if (search_.most_products > 0) most = std::min(most, search_.most_products);
    std::vector<Triple> all;
    const auto add = [&](const std::array<int64_t, 3>& sizes) {
      const double compute = model_.bound(sizes[0], sizes[1], sizes[2]);
      for (int p = 1; p <= search_.pipelines && sizes[0] * sizes[1] * sizes[2] * p <= most; ++p)
        all.push_back({sizes, p, at_least(compute, image_, weights_) / p});
    };
    if (search_.sizes) {
      add(*search_.sizes);
      return all;
    }
    for (const int64_t uo : sizes_of(roles_.outputs))
      for (const int64_t ui : sizes_of(roles_.inputs))
        for (const int64_t us : sizes_of(roles_.pixels))
          if (uo * ui * us <= most) add({uo, ui, us});
    std::stable_sort(all.begin(), all.end(),
                     [](const Triple& a, const Triple& b) { return a.bound < b.bound; });
    return all;
  }

  /// Cycles that computing, reading the image and reading weights take together, at least.
  double at_least(double compute, double image, double weights) const {
    if (!search_.overlap) return compute + image + weights + result_;
    if (search_.slots == 1) return compute + std::max(image, weights) + result_;
    return std::max({compute, image, weights, result_});
  }
  /// The image is read again for each tile of outputs, weights for each of pixels, what stays once.
  double tiles_at_least(double compute, double outputs, double pixels, bool one_input) const {
    const double image = image_ * outputs, weights = weights_ * pixels;
    if (!one_input) return at_least(compute, image, weights);
    return std::min(at_least(compute, image_, weights), at_least(compute, image, weights_));
  }

  std::vector<int64_t> sizes_of(int loop) const {
    std::vector<int64_t> sizes = part_sizes(model_.extent(loop), search_);
    const int64_t most = loop == roles_.pixels   ? search_.most_pixels
                         : loop == roles_.inputs ? search_.most_inputs
                                                 : 0;
    if (most > 0) std::erase_if(sizes, [&](int64_t size) { return size > most; });
    return sizes;
  }

  bool looked_enough() const {
    return search_.most_looked > 0 && looked_at_ >= search_.most_looked;
  }

  void try_tiles(FpgaDesign design, double bound) {
    const auto os = tiles_of(model_.extent(roles_.outputs), design.uo, search_);
    const auto cs = tiles_of(model_.extent(roles_.inputs), design.ui, search_);
    const auto ys = tiles_of(model_.extent(roles_.rows), 1, search_);
    auto xs = tiles_of(model_.extent(roles_.pixels), design.us, search_);
    if (search_.whole_pixels)
      std::erase_if(xs, [&](int64_t tw) { return tw > model_.extent(roles_.pixels); });
    const double depth = model_.least_depth() * static_cast<double>(model_.around());
    const auto count = [&](int loop, int64_t tile) {
      return static_cast<double>(parts(model_.extent(loop), tile));
    };
    for (const int64_t to : os)
      for (const int64_t th : ys)
        for (const int64_t tw : xs)
          for (const int64_t tc : cs) {
            const double tiles = count(roles_.outputs, to) * count(roles_.inputs, tc) *
                                 count(roles_.rows, th) * count(roles_.pixels, tw);
            if (looked_enough()) return;
            if ((bound + depth * tiles) / design.pipelines >= worth_)
              break;  // smaller tc: more tiles
            const double pixels = count(roles_.rows, th) * count(roles_.pixels, tw);
            const bool one_input = tc >= model_.extent(roles_.inputs);
            if (tiles_at_least(bound + depth * tiles, count(roles_.outputs, to), pixels,
                               one_input) /
                    design.pipelines >=
                worth_)
              continue;
            design.to = to;
            design.tc = tc;
            design.th = th;
            design.tw = tw;
            try_rest(design);
          }
  }

  void try_rest(FpgaDesign design) {
    const int least = search_.fewer_slots ? 1 : search_.slots;
    for (int image = search_.slots; image >= least; --image)
      for (int weights = search_.slots; weights >= least; --weights)
        for (int result = search_.slots; result >= least; --result) {
          design.image_slots = image;
          design.weight_slots = weights;
          design.result_slots = result;
          try_memories(design);
        }
  }

  void try_memories(FpgaDesign design) {
    for (const bool uram : {false, true}) {
      if (uram && !search_.uram) continue;
      design.uram = uram;
      design.image_ports = design.weight_ports = 1;
      if (!model_.problem(design).empty()) continue;
      for (int image = 1; image <= search_.image_ports; ++image)
        for (int weights = 1; weights <= search_.weight_ports; ++weights) {
          design.image_ports = image;
          design.weight_ports = weights;
          if (image + weights == 2 || model_.problem(design).empty()) try_order(design);
        }
    }
  }

  void try_order(FpgaDesign design) {
    const bool one_input = design.tc >= model_.extent(roles_.inputs);
    for (const FpgaStays stays : search_.stays) {
      if (stays != FpgaStays::Nothing && !one_input) continue;
      for (const int64_t block : search_.blocks) {
        design.stays = stays;
        design.block = block;
        const FpgaTime time = model_.time(design);
        ++looked_at_;
        if (time.cycles < least_) keep({design, time, 0});
      }
    }
  }

  /// Of equal ones the first is better.
  void keep(const FpgaBest& one) {
    if (take_) return take_(one);
    const auto at = std::upper_bound(
        best_.begin(), best_.end(), one,
        [](const FpgaBest& a, const FpgaBest& b) { return a.time.cycles < b.time.cycles; });
    best_.insert(at, one);
    if (best_.size() > most_) best_.pop_back();
    if (best_.size() < most_) return;
    least_ = best_.back().time.cycles;
    worth_ = least_ * (1 - search_.gap);
  }

  const FpgaModel& model_;
  const FpgaSearch& search_;
  const FpgaRoles& roles_;
  double image_ = 0, weights_ = 0, result_ = 0;  ///< cycles to move each once, at least
  size_t most_ = 1;
  std::function<void(FpgaBest)> take_;
  double least_;  ///< of the last of `most_`
  double worth_;  ///< what is not below is no improvement to speak of
  int64_t looked_at_ = 0;
  std::vector<FpgaBest> best_;  ///< by cycles
};

}  // namespace

std::vector<int64_t> part_sizes(int64_t extent, bool divisors_only) {
  std::vector<int64_t> sizes;
  for (int64_t n = extent; n >= 1; --n) {
    const int64_t size = parts(extent, n);
    if ((sizes.empty() || sizes.back() != size) && (!divisors_only || extent % n == 0))
      sizes.push_back(size);
  }
  return sizes;
}

void thin_out(std::vector<int64_t>& sizes, double apart, const std::function<bool(int64_t)>& keep) {
  double next = 1;
  std::erase_if(sizes, [&](int64_t size) {
    if (!keep(size) && static_cast<double>(size) < next) return true;
    next = apart * static_cast<double>(size);
    return false;
  });
}

std::vector<int64_t> part_sizes(int64_t extent, const FpgaSearch& search) {
  std::vector<int64_t> sizes = part_sizes(extent, search.divisors_only);
  thin_out(sizes, search.apart, [&](int64_t size) { return extent % size == 0; });
  return sizes;
}

std::optional<FpgaBest> best_fpga_design(const FpgaModel& model, const FpgaSearch& search) {
  const std::vector<FpgaBest> found = best_fpga_designs(model, search, 1);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

void each_fpga_design(const FpgaModel& model, const FpgaSearch& search,
                      const std::function<void(FpgaBest)>& take) {
  Search(model, search, 1, take).run();
}

std::vector<FpgaBest> best_fpga_designs(const FpgaModel& model, const FpgaSearch& search,
                                        size_t most) {
  return Search(model, search, most).run();
}

}  // namespace tilewright::cost
