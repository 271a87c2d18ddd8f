#include "tilewright/cost/spatial/tile_costs.h"

#include <algorithm>

namespace tilewright::cost {
namespace {

/// An array and a LOAD that want so many accesses in a cycle, in the mean. Who had the last access
/// gives way. The array needs its rows in step: each access that it wants and does not get costs a
/// cycle. A LOAD has a line more to fill meanwhile: only what is left of accesses matters to it.
std::pair<double, double> mean_speeds(double wanted, double written) {
  const double writes = std::min(1.0, std::max(0.5, 1 - wanted) / written);
  const double taken = written * writes;
  // The LOAD gets its access at once where the array had the last one, else in the next cycle;
  // the array loses where it wants an access in that cycle.
  const double array_last = wanted * (1 - taken), load_last = taken * (1 - wanted);
  const double at_once = load_last > 0 ? array_last / (array_last + load_last) : 1;
  return {1 - taken * wanted * (at_once + (1 - at_once) * wanted), writes};
}

/// Until one of the two is done, at these speeds from now on.
ArrayMeeting gone_on(const ArrayMeeting& met, const SpatialTileCosts::Both& both, double reads,
                     double writes) {
  const double more = std::max(0.0, std::min((both.to_read + met.late - met.cycles) / reads,
                                             (both.left - met.written) / writes));
  return {met.cycles + more, met.late + more * (1 - reads), met.written + more * writes, nullptr};
}

/// Cycles for which an array and a LOAD are followed; then they go on as they did.
constexpr int64_t kMostMet = 16384;
/// Steps of a COMPUTE that is followed cycle by cycle: about 10 ms.
constexpr int64_t kMostFollowed = int64_t{1} << 20;

/// Whether tiles at the ends of a loop have positions outside of the tensor.
bool clipped(const SpatialTensor& tensor, const SpatialLayer& layer, int loop) {
  return std::any_of(tensor.dims.begin(), tensor.dims.end(), [&](const SpatialDim& dim) {
    bool moved = false;
    int64_t last = -dim.begin;
    for (const SpatialTerm& term : dim.terms) {
      moved = moved || term.loop == loop;
      last += term.stride * (layer.loops[term.loop].extent - 1);
    }
    return moved && (dim.begin > 0 || last >= dim.extent);
  });
}

}  // namespace

SpatialTileCosts::SpatialTileCosts(const SpatialUnit& unit, const SpatialSizes& tile,
                                   SpatialRows rows)
    : tile_(tile), rows_(rows) {
  for (int f : {0, 1}) {
    const int tensor = f ? unit.choice.second() : unit.choice.first;
    uint32_t digit = 1;
    for (int loop = 0; loop < unit.loops; ++loop) {
      const SpatialTrips trips(unit.layer.loops[loop].extent, tile[loop]);
      if (!unit.in(unit.moves[tensor], loop) || trips.count == 1) continue;
      const bool clips = clipped(unit.layer.tensors[tensor], unit.layer, loop);
      const bool biases =
          unit.layer.biased && unit.layer.tensors[tensor].packed && unit.layer.loops[loop].reduces;
      const uint32_t first = clips || biases ? 1 : 0;
      const uint32_t last = clips || trips.last != trips.tile ? first + 1 : first;
      load_digits_[f][loop] = {0, first * digit, last * digit};
      digit *= last + 1;
    }
  }
}

const SpatialTileCosts::Load& SpatialTileCosts::load(const SpatialUnit& unit, int f, uint32_t key,
                                                     const SpatialBox& box) {
  Load& load = loads_[f][key];
  if (known_loads_[f][key]) return load;
  known_loads_[f][key] = true;
  const int tensor = f ? unit.choice.second() : unit.choice.first;
  const SpatialTransfer transfer = unit.transfer(tensor, box);
  if (rows_ == SpatialRows::Mean) {
    const double cycles = unit.load_cycles(f, transfer, box.size), writing = cycles - quiet(unit);
    const double accesses = unit.write_accesses(f, transfer, box.size);
    return load = {cycles, writing > 0 ? accesses / writing : 0, nullptr};
  }
  spatial::Load moved = unit.load(f, box);
  moved.bias_words = static_cast<uint16_t>(transfer.biases);
  auto walk = std::find_if(walks_.begin(), walks_.end(),
                           [&](const auto& known) { return known.first == moved; });
  if (walk == walks_.end())
    walk = walks_.emplace(walks_.end(), moved, LoadWalk(unit.design, moved));
  return load = {quiet(unit) + double(walk->second.cycles()), 0, &walk->second};
}

const SpatialTileCosts::Compute& SpatialTileCosts::compute(const SpatialUnit& unit, uint32_t key,
                                                           const SpatialBox& box) {
  Compute& compute = computes_[key];
  if (known_computes_[key]) return compute;
  known_computes_[key] = true;
  if (rows_ == SpatialRows::Mean) {
    const SpatialUnit::Compute work = unit.compute(box.size, rows_);
    const double reading = work.cycles - (unit.compute_overhead() - 1);
    return compute = {work, std::min(1.0, work.accesses / std::max(1.0, reading))};
  }
  const ArrayWalk walk = unit.array_walk(box.size);
  const FollowedArray& array =
      arrays_.try_emplace(key, walk, std::min(walk.steps, kMostFollowed)).first->second;
  if (walk.steps > kMostFollowed) return compute = {unit.compute(box.size, rows_), 0};
  return compute = {{unit.compute_overhead() - 1 + double(array.cycles()), 0, walk.steps}, 0};
}

double SpatialTileCosts::store(const SpatialUnit& unit, uint32_t key, const SpatialBox& box) {
  if (!known_stores_[key]) {
    known_stores_[key] = true;
    stores_[key] = double(unit.store_cycles(unit.transfer(kSpatialResult, box)));
  }
  return stores_[key];
}

double SpatialTileCosts::quiet(const SpatialUnit& unit) const {
  const spatial::Timing& time = unit.design.timing;
  const int before = std::max(1, time.load_overhead - 1);
  return rows_ == SpatialRows::Mean ? before + time.read_latency : before;
}

ArrayMeeting SpatialTileCosts::meet(const Both& both) {
  const Load& load = *both.load;
  if (rows_ == SpatialRows::Mean) {
    const double wanted = computes_[both.compute_key].wanted;
    if (load.wanted <= 0 || wanted <= 0) return {};
    const auto [reads, writes] = mean_speeds(wanted, load.wanted);
    return gone_on({}, both, reads, writes);
  }
  const auto elapsed = static_cast<int64_t>(both.read);
  const auto written = static_cast<int64_t>(double(load.walk->cycles()) - both.left);
  const DelayedArray* delayed =
      both.delayed && elapsed < undelayed_from(*both.delayed) ? both.delayed : nullptr;
  const int64_t read = delayed ? elapsed : elapsed - static_cast<int64_t>(both.late);
  const auto [found, is_new] =
      meetings_.try_emplace({both.compute_key, read, delayed, load.walk, written});
  ArrayMeeting& met = found->second;
  if (is_new) {
    const FollowedArray& array = arrays_.at(both.compute_key);
    met = delayed ? array.meet(*delayed, read, *load.walk, written, kMostMet)
                  : array.meet(read, *load.walk, written, kMostMet);
  }
  if (met.cycles < kMostMet) return met;
  return gone_on(met, both, std::max(0.1, 1 - met.late / met.cycles),
                 std::max(0.1, met.written / met.cycles));
}

}  // namespace tilewright::cost
