#include "tilewright/cost/spatial/timeline_clock.h"

#include <algorithm>
#include <cmath>

namespace tilewright::cost {
namespace {

/// Cycles by which equal times may differ: sums of fractions are rounded.
constexpr double kEqual = 1e-3;

/// Compares times of a clock with those of a later one.
struct Later {
  double cycles;

  bool same(double then, double now) const { return std::abs(then + cycles - now) <= kEqual; }
  /// Times before `since` are all the same.
  bool same(double then, double now, double since) const {
    return same(std::max(then, since), std::max(now, since + cycles));
  }
};

bool same_reading(const SpatialReading& then, const SpatialReading& now, const Later& later) {
  return then.key == now.key && then.delayed == now.delayed &&
         std::abs(then.late - now.late) <= kEqual && later.same(then.begin, now.begin) &&
         later.same(then.end, now.end) && (then.stored == 0) == (now.stored == 0) &&
         (then.stored == 0 ||
          (later.same(then.store_begin, now.store_begin) && later.same(then.stored, now.stored)));
}

}  // namespace

void SpatialClock::shift(double cycles, const SpatialClock& before, const SpatialClock& now) {
  const auto move = [&](double& time, double then, double present) {
    time = time == then ? present : time + cycles;
  };
  move(load_free, before.load_free, now.load_free);
  move(compute_free, before.compute_free, now.compute_free);
  move(store_free, before.store_free, now.store_free);
  for (size_t i : {0, 1}) {
    move(loaded[i], before.loaded[i], now.loaded[i]);
    move(stored[i], before.stored[i], now.stored[i]);
    for (size_t f : {0, 1}) move(used[f][i], before.used[f][i], now.used[f][i]);
    SpatialReading& array = reading[i];
    const SpatialReading &then = before.reading[i], &present = now.reading[i];
    move(array.begin, then.begin, present.begin);
    move(array.end, then.end, present.end);
    if (array.stored == 0) continue;
    move(array.store_begin, then.store_begin, present.store_begin);
    move(array.stored, then.stored, present.stored);
  }
}

bool SpatialPassage::fits(const SpatialClock& clock, const Rules& rules) const {
  const Later later{clock.compute_free - before.compute_free};
  const double computed = before.compute_free - rules.latency;
  const std::array<bool, 2> loads{after.loaded[0] != before.loaded[0],
                                  after.loaded[1] != before.loaded[1]};
  // No LOAD begins before this.
  const auto loads_from = [&](const SpatialClock& c) {
    double least = INFINITY;
    for (size_t f : {0, 1})
      if (loads[f]) least = std::min(least, c.used[f][rules.free_since[f]] + rules.latency);
    return std::max(c.load_free, least == INFINITY ? c.load_free : least);
  };
  double from = before.compute_free, now = clock.compute_free;
  for (size_t i : {0, 1})
    if (!later.same(before.loaded[i], clock.loaded[i], computed) ||
        !later.same(before.stored[i], clock.stored[i], computed))
      return false;
  if (after.store_free != before.store_free &&
      !later.same(before.store_free, clock.store_free, before.compute_free))
    return false;
  if (loads[0] || loads[1]) {
    const double first = loads_from(before);
    if (!later.same(first, loads_from(clock))) return false;
    for (size_t f : {0, 1})
      for (size_t i : {0, 1})
        if (!later.same(before.used[f][i], clock.used[f][i], first - rules.latency)) return false;
    for (size_t i : {0, 1})
      if (std::max(before.reading[i].end, clock.reading[i].end - later.cycles) > first &&
          !same_reading(before.reading[i], clock.reading[i], later))
        return false;
    from = std::min(from, first);
    now = std::min(now, first + later.cycles);
  }
  // Fetching keeps nobody waiting, or as long.
  const auto fetched = [&](double instructions) {
    return rules.first + instructions * rules.fetch;
  };
  const double more = after.instructions - before.instructions;
  return later.same(fetched(before.instructions), fetched(clock.instructions)) ||
         (fetched(before.instructions + more) <= from && fetched(clock.instructions + more) <= now);
}

SpatialClock SpatialPassage::from(const SpatialClock& clock) const {
  SpatialClock next = after;
  next.shift(clock.compute_free - before.compute_free, before, clock);
  next.instructions += clock.instructions - before.instructions;
  next.load += clock.load - before.load;
  next.compute += clock.compute - before.compute;
  next.store += clock.store - before.store;
  next.loads += clock.loads - before.loads;
  next.computes += clock.computes - before.computes;
  return next;
}

}  // namespace tilewright::cost
