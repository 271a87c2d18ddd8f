// What the instructions of a tile take, alone and where a LOAD writes beside a COMPUTE that reads.
#pragma once

#include <bitset>
#include <list>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {

/// What instructions of one tile take, by the places of their tiles in the loops: first, last or
/// between. All orders and copies have these in common.
class SpatialTileCosts {
 public:
  /// No initial values: there are 1458 of these for each tile that a search looks at.
  struct Load {
    double cycles;
    double wanted;         ///< accesses in a cycle, where rows are counted in the mean
    const LoadWalk* walk;  ///< where they are followed
  };
  struct Compute : SpatialUnit::Compute {
    double wanted;  ///< accesses in a cycle, where rows are counted in the mean
  };
  /// A COMPUTE that reads while a LOAD writes, at some point of each.
  struct Both {
    uint32_t compute_key = 0;
    double read = 0;                        ///< cycles since the array's first read
    double late = 0;                        ///< of these, delays by other LOADs
    double to_read = 0;                     ///< cycles until its last one
    const DelayedArray* delayed = nullptr;  ///< by another LOAD, when that ended
    const Load* load = nullptr;
    double left = 0;  ///< cycles of the LOAD that are left
  };

  SpatialTileCosts(const SpatialUnit& unit, const SpatialSizes& tile, SpatialRows rows);
  const SpatialSizes& tile() const { return tile_; }
  bool followed() const { return rows_ == SpatialRows::Followed; }
  /// Where a tile is in one of its loops.
  enum Place { kFirst, kBetween, kLast, kPlacesOfLoop };
  /// What a loop at a place adds to the key of a LOAD of a factor. Places that are alike add the
  /// same.
  uint32_t load_digit(int factor, int loop, Place place) const {
    return load_digits_[factor][loop][place];
  }
  const Load& load(const SpatialUnit& unit, int factor, uint32_t key, const SpatialBox& box);
  /// keys: bits of the loops at their last tile; of STOREs those that move the result.
  const Compute& compute(const SpatialUnit& unit, uint32_t key, const SpatialBox& box);
  double store(const SpatialUnit& unit, uint32_t key, const SpatialBox& box);
  /// Cycles of a LOAD before it can meet an array.
  double quiet(const SpatialUnit& unit) const;
  /// Until one of them is done. requires: both were asked for.
  ArrayMeeting meet(const Both& both);

  /// What the instructions of all tiles take together; of a factor each tile's LOAD once.
  double all_computes(const SpatialUnit& unit);
  double all_loads(const SpatialUnit& unit, int factor);
  double all_stores(const SpatialUnit& unit);
  /// Never more than `all_computes`, and sooner found: smaller tiles at the ends of loops count
  /// with their steps, without what they wait for the scratchpad.
  double least_computes(const SpatialUnit& unit);
  /// Of the first tile and of the last one.
  double first_load(const SpatialUnit& unit, int factor);
  double last_store(const SpatialUnit& unit);

 private:
  static constexpr size_t kEnds = 1 << kSpatialLoops, kPlaces = 729;  ///< six loops move a factor
  SpatialSizes tile_;
  SpatialRows rows_;
  std::array<std::array<std::array<uint32_t, kPlacesOfLoop>, kSpatialLoops>, 2> load_digits_{};
  std::array<std::bitset<kPlaces>, 2> known_loads_;
  std::bitset<kEnds> known_computes_, known_stores_;
  std::array<std::array<Load, kPlaces>, 2> loads_;
  std::array<Compute, kEnds> computes_;
  std::array<double, kEnds> stores_;
  std::optional<double> all_computes_, all_stores_;
  std::array<std::optional<double>, 2> all_loads_;
  // Where rows are followed. Tiles of other places that are alike share a walk.
  std::map<uint32_t, FollowedArray> arrays_;
  std::list<std::pair<spatial::Load, LoadWalk>> walks_;
  std::map<std::tuple<uint32_t, int64_t, const DelayedArray*, const LoadWalk*, int64_t>,
           ArrayMeeting>
      meetings_;
};

/// How often a program goes through a tensor's tiles: trips of loops that do not move it but stand
/// outside one that does. `order`: from the outside; `trips`: of each loop.
int64_t repeats(const SpatialUnit& unit, int tensor, const int* order, const SpatialSizes& trips);

}  // namespace tilewright::cost
