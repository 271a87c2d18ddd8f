// What all instructions of a tile's program take together: sums over tiles of each kind, which no
// order of the loops changes. From them follow times that no mapping with this tile beats.
//
// Example: 100 outputs in tiles of 32 are three COMPUTEs of 32 and one of 4, each of 8 inputs, of
// which there are 16: 6 x COMPUTE(32, 8) + 2 x COMPUTE(4, 8).
#include "tilewright/cost/spatial/tile_costs.h"

namespace tilewright::cost {
namespace {

/// Calls `visit` for each kind of tile (whole or smaller, by the loops of `moves` that have a
/// smaller last one) with its key, its box at the end of its loops, and how many there are.
template <class Visit>
void for_each_kind(const SpatialUnit& unit, const SpatialSizes& tile, uint32_t moves,
                   const Visit& visit) {
  SpatialBox box;
  const auto descend = [&](auto& self, int loop, uint32_t key, double times) -> void {
    if (loop == unit.loops) return visit(key, box, times);
    const SpatialTrips trips(unit.layer.loops[loop].extent, tile[loop]);
    box.start[loop] = (trips.count - 1) * trips.tile;
    box.size[loop] = trips.last;
    if (trips.count == 1 || !unit.in(moves, loop)) return self(self, loop + 1, key, times);
    if (trips.last == trips.tile) return self(self, loop + 1, key, times * double(trips.count));
    self(self, loop + 1, key | 1u << loop, times);
    box.start[loop] = 0;
    box.size[loop] = trips.tile;
    self(self, loop + 1, key, times * double(trips.count - 1));
  };
  descend(descend, 0, 0, 1);
}

constexpr uint32_t kAllLoops = (1u << kSpatialLoops) - 1;

}  // namespace

int64_t repeats(const SpatialUnit& unit, int tensor, const int* order, const SpatialSizes& trips) {
  int64_t times = 1, outside = 1;
  for (int place = 0; place < unit.loops; ++place) {
    const int loop = order[place];
    if (trips[loop] == 1) continue;
    if (unit.in(unit.moves[tensor], loop))
      times = outside;
    else
      outside *= trips[loop];
  }
  return times;
}

double SpatialTileCosts::all_computes(const SpatialUnit& unit) {
  if (all_computes_) return *all_computes_;
  double all = 0;
  for_each_kind(unit, tile_, kAllLoops, [&](uint32_t key, const SpatialBox& box, double times) {
    all += times * compute(unit, key, box).cycles;
  });
  return all_computes_.emplace(all);
}

double SpatialTileCosts::least_computes(const SpatialUnit& unit) {
  const double others = unit.compute_overhead() - 1;  // of a COMPUTE beside its steps, at least
  SpatialBox whole;
  double steps = 1, computes = 1, whole_steps = 1, wholes = 1;
  for (int loop = 0; loop < unit.loops; ++loop) {
    const SpatialTrips trips(unit.layer.loops[loop].extent, tile_[loop]);
    whole.size[loop] = trips.count == 1 ? trips.last : trips.tile;
    steps *= double(trips.blocks(unit.lanes[loop]));
    whole_steps *= double(ceil_div(whole.size[loop], unit.lanes[loop]));
    computes *= double(trips.count);
    wholes *= double(trips.count == 1 || trips.last == trips.tile ? trips.count : trips.count - 1);
  }
  const double more = compute(unit, 0, whole).cycles - whole_steps - others;
  return steps + computes * others + wholes * more;
}

double SpatialTileCosts::all_loads(const SpatialUnit& unit, int f) {
  if (all_loads_[f]) return *all_loads_[f];
  const int tensor = f ? unit.choice.second() : unit.choice.first;
  SpatialBox box;
  const auto descend = [&](auto& self, int loop, uint32_t key, double times) -> double {
    if (loop == unit.loops) return times * load(unit, f, key, box).cycles;
    const SpatialTrips trips(unit.layer.loops[loop].extent, tile_[loop]);
    const auto at = [&](Place place, int64_t index, double count) {
      box.start[loop] = index * trips.tile;
      box.size[loop] = place == kLast ? trips.last : trips.tile;
      return self(self, loop + 1, key + load_digit(f, loop, place), times * count);
    };
    box.start[loop] = 0;
    box.size[loop] = trips.count == 1 ? trips.last : trips.tile;
    if (trips.count == 1 || !unit.in(unit.moves[tensor], loop))
      return self(self, loop + 1, key, times);
    double all = at(kFirst, 0, 1);
    if (trips.count > 2) all += at(kBetween, 1, double(trips.count - 2));
    return all + at(kLast, trips.count - 1, 1);
  };
  return all_loads_[f].emplace(descend(descend, 0, 0, 1));
}

double SpatialTileCosts::first_load(const SpatialUnit& unit, int factor) {
  SpatialBox box;
  for (int loop = 0; loop < unit.loops; ++loop)
    box.size[loop] = std::min(tile_[loop], unit.layer.loops[loop].extent);
  return load(unit, factor, 0, box).cycles;
}

double SpatialTileCosts::all_stores(const SpatialUnit& unit) {
  if (all_stores_) return *all_stores_;
  double all = 0;
  for_each_kind(unit, tile_, unit.moves[kSpatialResult],
                [&](uint32_t key, const SpatialBox& box, double times) {
                  all += times * store(unit, key, box);
                });
  return all_stores_.emplace(all);
}

double SpatialTileCosts::last_store(const SpatialUnit& unit) {
  SpatialBox box;
  uint32_t key = 0;
  for (int loop = 0; loop < unit.loops; ++loop) {
    const SpatialTrips trips(unit.layer.loops[loop].extent, tile_[loop]);
    box.start[loop] = (trips.count - 1) * trips.tile;
    box.size[loop] = trips.last;
    if (trips.count > 1 && trips.last != trips.tile && unit.in(unit.moves[kSpatialResult], loop))
      key |= 1u << loop;
  }
  return store(unit, key, box);
}

}  // namespace tilewright::cost
