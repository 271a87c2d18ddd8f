#include "tilewright/cost/fpga/search.h"

#include <algorithm>
#include <limits>

namespace tilewright::cost {
namespace {

int64_t parts(int64_t extent, int64_t size) { return (extent + size - 1) / size; }

/// Multiples of `size` that are tiles of `extent`, the largest first.
std::vector<int64_t> tiles_of(int64_t extent, int64_t size, bool divisors_only) {
  std::vector<int64_t> tiles;
  for (const int64_t part : part_sizes(parts(extent, size), divisors_only))
    tiles.push_back(part * size);
  std::reverse(tiles.begin(), tiles.end());
  return tiles;
}

class Search {
 public:
  Search(const FpgaModel& model, const FpgaSearch& search)
      : model_(model), search_(search), roles_(model.roles()) {}

  std::optional<FpgaBest> run() {
    for (const Triple& triple : triples()) {
      if (triple.bound >= least_) break;
      FpgaDesign design;
      design.uo = triple.sizes[0];
      design.ui = triple.sizes[1];
      design.us = triple.sizes[2];
      design.overlap = search_.overlap;
      design.image_slots = design.weight_slots = design.result_slots = search_.slots;
      try_tiles(design, triple.bound);
    }
    if (!found_) return std::nullopt;
    return best_;
  }

 private:
  struct Triple {
    std::array<int64_t, 3> sizes;
    double bound = 0;
  };

  std::vector<Triple> triples() const {
    if (search_.sizes)
      return {{*search_.sizes,
               model_.bound((*search_.sizes)[0], (*search_.sizes)[1], (*search_.sizes)[2])}};
    int64_t most = model_.most_products();
    if (search_.most_products > 0) most = std::min(most, search_.most_products);
    std::vector<Triple> all;
    for (const int64_t uo : sizes_of(roles_.outputs))
      for (const int64_t ui : sizes_of(roles_.inputs))
        for (const int64_t us : sizes_of(roles_.pixels))
          if (uo * ui * us <= most) all.push_back({{uo, ui, us}, model_.bound(uo, ui, us)});
    std::stable_sort(all.begin(), all.end(),
                     [](const Triple& a, const Triple& b) { return a.bound < b.bound; });
    return all;
  }

  std::vector<int64_t> sizes_of(int loop) const {
    return part_sizes(model_.extent(loop), search_.divisors_only);
  }

  void try_tiles(FpgaDesign design, double bound) {
    const bool exact = search_.divisors_only;
    const auto os = tiles_of(model_.extent(roles_.outputs), design.uo, exact);
    const auto cs = tiles_of(model_.extent(roles_.inputs), design.ui, exact);
    const auto ys = tiles_of(model_.extent(roles_.rows), 1, exact);
    const auto xs = tiles_of(model_.extent(roles_.pixels), design.us, exact);
    const double depth = model_.options().depth * static_cast<double>(model_.around());
    const auto count = [&](int loop, int64_t tile) {
      return static_cast<double>(parts(model_.extent(loop), tile));
    };
    for (const int64_t to : os)
      for (const int64_t th : ys)
        for (const int64_t tw : xs)
          for (const int64_t tc : cs) {
            const double tiles = count(roles_.outputs, to) * count(roles_.inputs, tc) *
                                 count(roles_.rows, th) * count(roles_.pixels, tw);
            if (bound + depth * tiles >= least_) break;  // smaller tc: more tiles
            design.to = to;
            design.tc = tc;
            design.th = th;
            design.tw = tw;
            try_rest(design);
          }
  }

  void try_rest(FpgaDesign design) {
    if (!model_.problem(design).empty()) return;
    const bool one_input = design.tc >= model_.extent(roles_.inputs);
    for (const FpgaStays stays : {FpgaStays::Nothing, FpgaStays::Image, FpgaStays::Weights}) {
      if (stays != FpgaStays::Nothing && !one_input) continue;
      for (int ports = 1; ports <= search_.weight_ports; ++ports)
        for (const int64_t block : search_.blocks) {
          design.stays = stays;
          design.weight_ports = ports;
          design.block = block;
          if (ports > 1 && !model_.problem(design).empty()) continue;
          const FpgaTime time = model_.time(design);
          ++best_.looked_at;
          if (time.cycles >= least_) continue;
          found_ = true;
          least_ = time.cycles;
          best_.design = design;
          best_.time = time;
        }
    }
  }

  const FpgaModel& model_;
  const FpgaSearch& search_;
  const FpgaRoles& roles_;
  double least_ = std::numeric_limits<double>::infinity();
  bool found_ = false;
  FpgaBest best_;
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

std::optional<FpgaBest> best_fpga_design(const FpgaModel& model, const FpgaSearch& search) {
  return Search(model, search).run();
}

}  // namespace tilewright::cost
