// The three queues of a program, tile by tile: when each instruction begins and ends.
#pragma once

#include <bitset>
#include <map>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {

struct SpatialTimeline {
  double end = 0;                           ///< of the last instruction
  double load = 0, compute = 0, store = 0;  ///< cycles in which the modules work
};

/// What instructions of one tile take, by the places of their tiles in the loops: first, last or
/// between. All orders and copies have these in common.
class SpatialTileCosts {
 public:
  struct Load {
    double cycles, accesses;
  };

  SpatialTileCosts(const SpatialUnit& unit, const SpatialSizes& tile, SpatialRows rows);
  const SpatialSizes& tile() const { return tile_; }
  /// What a loop at a place adds to the key of a LOAD of a factor: 0 for the first tile, else.
  uint32_t load_digit(int factor, int loop) const { return load_digits_[factor][loop]; }
  const Load& load(const SpatialUnit& unit, int factor, uint32_t key, const SpatialBox& box);
  /// keys: bits of the loops at their last tile; of STOREs those that move the result.
  const SpatialUnit::Compute& compute(const SpatialUnit& unit, uint32_t key, const SpatialBox& box);
  double store(const SpatialUnit& unit, uint32_t key, const SpatialBox& box);
  /// Of the array of a COMPUTE and of a LOAD, both of which were asked for, beside each other.
  /// `wanted`, `written`: accesses in a cycle, in the mean. `after`: the LOAD's first beat comes so
  /// many cycles after the array's first read.
  BothPaces beside(uint32_t compute_key, double wanted, int factor, uint32_t load_key,
                   double written, double after);

 private:
  static constexpr size_t kEnds = 1 << kSpatialLoops, kPlaces = 729;  ///< six loops move a factor
  SpatialSizes tile_;
  SpatialRows rows_;
  std::array<std::array<uint32_t, kSpatialLoops>, 2> load_digits_{};
  std::array<std::bitset<kPlaces>, 2> known_loads_;
  std::bitset<kEnds> known_computes_, known_stores_;
  std::array<std::array<Load, kPlaces>, 2> loads_;
  std::array<SpatialUnit::Compute, kEnds> computes_;
  std::array<double, kEnds> stores_;
  // Where rows are followed.
  std::map<uint32_t, ArrayWalk> arrays_;
  std::array<std::map<uint32_t, LoadWalk>, 2> writers_;
  std::map<std::array<uint32_t, 4>, BothPaces> paces_;
};

/// requires: `costs` of this unit and of the mapping's tile.
SpatialTimeline timeline(const SpatialUnit& unit, const SpatialMapping& mapping,
                         SpatialTileCosts& costs);

}  // namespace tilewright::cost
