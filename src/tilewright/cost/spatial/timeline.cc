#include "tilewright/cost/spatial/timeline.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tilewright/cost/spatial/timeline_clock.h"

namespace tilewright::cost {
namespace {

/// A loop is followed until two iterations take the same time, then for the last one; those between
/// are as the latest one followed.
constexpr double kSame = 0.01;

class Walker {
 public:
  Walker(const SpatialUnit& unit, const SpatialMapping& mapping, SpatialTileCosts& costs,
         const SpatialPatience& patience)
      : unit_(unit), mapping_(mapping), costs_(costs), patience_(patience) {
    for (int place = 0; place < unit.loops; ++place) {
      const int loop = mapping.order[place];
      const SpatialTrips trips(unit.layer.loops[loop].extent, mapping.tile[loop]);
      box_.size[loop] = trips.count == 1 ? trips.last : trips.tile;
      if (trips.count == 1) continue;
      trips_[depth_] = trips.count;
      last_[depth_] = trips.last;
      order_[depth_++] = loop;
    }
    tensor_ = {unit.choice.first, unit.choice.second()};
    for (int depth = 1; depth < depth_; ++depth)
      outer_[depth] = outer_[depth - 1] | 1u << order_[depth - 1];
    rules_ = {.latency = double(unit.design.timing.token_latency - 1),
              .fetch = fetch_cycles_,
              .first = double(unit.design.timing.read_latency + 1),
              .free_since = {mapping.copies[tensor_[0]] - 1, mapping.copies[tensor_[1]] - 1}};
    for (int depth = 0; depth < depth_; ++depth)
      for (int f = 0; f < kSpatialTensors; ++f)
        moves_[depth][f] = unit.in(unit.moves[f == kSpatialResult ? f : tensor_[f]], order_[depth]);
    // What changes more seldom is loaded first: it need not wait for the tile before.
    if (innermost(tensor_[0]) < innermost(tensor_[1])) load_order_ = {0, 1};
  }

  SpatialTimeline walk() {
    run(0);
    if (gives_up_) return {std::numeric_limits<double>::infinity(), 0, 0, 0};
    return {std::max({now_.load_free, now_.compute_free, now_.store_free}), now_.load, now_.compute,
            now_.store};
  }

 private:
  int innermost(int tensor) const {
    int depth = -1;
    for (int i = 0; i < depth_; ++i)
      if (unit_.in(unit_.moves[tensor], order_[i])) depth = i;
    return depth;
  }

  void go_to(int depth, int64_t index) {
    const int loop = order_[depth];
    box_.start[loop] = index * mapping_.tile[loop];
    using enum SpatialTileCosts::Place;
    const bool last = index == trips_[depth] - 1;
    const auto place = last ? kLast : index > 0 ? kBetween : kFirst;
    // A last tile as large as the others costs as much.
    const uint32_t smaller = uint32_t{last && last_[depth] != mapping_.tile[loop]} << loop;
    const Keys& outer = keys_[depth];
    Keys& keys = keys_[depth + 1];
    for (int f : {0, 1})
      keys.load[f] = outer.load[f] + (moves_[depth][f] ? costs_.load_digit(f, loop, place) : 0);
    keys.compute = outer.compute | smaller;
    keys.store = outer.store | (moves_[depth][kSpatialResult] ? smaller : 0);
    box_.size[loop] = last ? last_[depth] : mapping_.tile[loop];
    for (int f : {0, 1}) changed_[f] |= moves_[depth][f];
    if (!moves_[depth][kSpatialResult]) {
      const uint32_t bit = 1u << loop;
      not_first_ = index ? not_first_ | bit : not_first_ & ~bit;
      not_last_ = last ? not_last_ & ~bit : not_last_ | bit;
    }
  }

  /// The loops from `depth` on, at a place of those around them: followed, or as before if they
  /// have been followed from a moment like this one.
  void run(int depth) {
    if (depth == depth_) return tile();
    // The innermost loop takes no longer than looking for it.
    if (depth == 0 || depth + 1 == depth_) return follow(depth);
    Place place{keys_[depth], not_first_ & outer_[depth], not_last_ & outer_[depth], changed_};
    Memory& memory = memories_[depth];
    for (size_t i = 0; i < std::min(memory.next, memory.known.size()); ++i) {
      const Known& known = memory.known[i];
      if (known.place != place || !known.passage.fits(now_, rules_)) continue;
      now_ = known.passage.from(now_);
      changed_ = known.changed;
      return;
    }
    const SpatialClock before = now_;
    follow(depth);
    if (gives_up_) return;
    Known& known = memory.known[memory.next++ % memory.known.size()];
    known = {place, changed_, {before, now_}};
  }

  void follow(int depth) {
    const int64_t trips = trips_[depth];
    std::array<double, 3> period{-1, -1, -1};
    std::optional<SpatialClock> before;
    for (int64_t index = 0; index < trips; ++index) {
      go_to(depth, index);
      const int64_t between = trips - 2 - index;
      const bool may_skip = index >= first_alike_ && between >= 1;
      if (may_skip) before = now_;
      const double load = now_.load_free, compute = now_.compute_free, store = now_.store_free;
      depth + 1 == depth_ ? tile() : run(depth + 1);
      if (gives_up_) return;
      const std::array<double, 3> latest{now_.load_free - load, now_.compute_free - compute,
                                         now_.store_free - store};
      const bool same = may_skip && goes_on(latest, period);
      period = latest;
      if (!same) continue;
      skip(*before, between);
      index += between;
    }
  }

  /// Whether iterations go on as the latest one did, which the one before did, too. Searches
  /// compare mappings before that is sure.
  bool goes_on(const std::array<double, 3>& latest, const std::array<double, 3>& before) const {
    bool same = latest[2] - std::max(latest[0], latest[1]) <= kSame * latest[1];
    for (int queue = 0; queue < 3; ++queue)
      same = same && std::abs(latest[queue] - before[queue]) <= kSame * latest[1];
    if (!costs_.followed()) return same;
    // A queue that is slower or faster than the others falls behind or catches up.
    for (const double queue : latest)
      same = same && (queue == 0 || std::abs(queue - latest[1]) <= kSame * latest[1]);
    return same;
  }

  /// As if `times` more iterations had passed that each took as long as the latest.
  void skip(const SpatialClock& before, int64_t times) {
    const SpatialTotals after = now_;
    const auto more = [&](double SpatialTotals::* what) {
      now_.*what += double(times) * (after.*what - before.*what);
    };
    const double period =
        std::max(after.compute_free - before.compute_free, after.load_free - before.load_free);
    now_.shift(double(times) * period, before, before);
    more(&SpatialTotals::instructions);
    more(&SpatialTotals::load);
    more(&SpatialTotals::compute);
    more(&SpatialTotals::store);
    more(&SpatialTotals::loads);
    more(&SpatialTotals::computes);
  }

  double fetched() {
    now_.instructions += 1;
    return unit_.design.timing.read_latency + now_.instructions * fetch_cycles_ + 1;
  }

  double token(double end) const { return end + unit_.design.timing.token_latency - 1; }

  void load(int f) {
    const SpatialTileCosts::Load& work = costs_.load(unit_, f, keys_[depth_].load[f], box_);
    auto& used = now_.used[f];
    const double free = used[mapping_.copies[tensor_[f]] - 1];
    const double begin = std::max({now_.load_free, token(free), fetched()});
    used = {0, used[0]};
    now_.load_free = loaded_beside_arrays(begin, work);
    now_.load += now_.load_free - begin;
    now_.loads += work.cycles;
    now_.loaded[f] = now_.load_free;
    changed_[f] = false;
  }

  /// A LOAD writes into the scratchpad from which COMPUTEs read: both end later, where both want an
  /// access in the same cycle. Returns when the LOAD ends.
  double loaded_beside_arrays(double begin, const SpatialTileCosts::Load& work) {
    const double quiet = std::min(quiet_, work.cycles);
    double time = begin + quiet, left = work.cycles - quiet;
    for (size_t which : {0, 1}) {
      SpatialReading& array = now_.reading[which];
      const double alone = std::clamp(array.begin - time, 0.0, left);
      time += alone;
      left -= alone;
      if (left <= 0 || time >= array.end) continue;
      const ArrayMeeting met = costs_.meet({.compute_key = array.key,
                                            .read = time - array.begin,
                                            .late = array.late,
                                            .to_read = array.end - time,
                                            .delayed = array.delayed,
                                            .load = &work,
                                            .left = left});
      time += met.cycles;
      left -= met.written;
      array.late += met.late;
      array.delayed = met.array.get();
      delay(which, met.late);
    }
    return time + left;
  }

  /// A COMPUTE ends later, and so what begins behind it.
  void delay(size_t which, double cycles) {
    SpatialReading& array = now_.reading[which];
    const double end = array.end + tail_, stored = array.stored;
    array.end += cycles;
    delay_store(array, end, cycles);
    now_.compute += cycles;
    for (auto& used : now_.used)
      for (double& time : used)
        if (time == end) time += cycles;
    if (which == 1) {
      now_.compute_free += cycles;
      return;
    }
    SpatialReading& next = now_.reading[1];
    const double begin = next.begin - head_;
    const bool after_store = array.stored > stored && begin == token(stored);
    const double late = std::max(end + cycles, after_store ? token(array.stored) : 0.0) - begin;
    if (late > 0) {
      delay_store(next, now_.compute_free, late);
      next.begin += late;
      next.end += late;
      for (auto& used : now_.used)
        for (double& time : used)
          if (time == now_.compute_free) time += late;
      now_.compute_free += late;
    }
    // Its STORE waits for the one before.
    if (next.stored > 0 && next.store_begin < array.stored)
      move_store(next, array.stored - next.store_begin);
  }

  /// A STORE behind a COMPUTE, which ends later.
  void delay_store(SpatialReading& array, double end, double cycles) {
    const double least = token(end + cycles);
    if (array.stored > 0 && (array.store_begin == token(end) || array.store_begin < least))
      move_store(array, least - array.store_begin);
  }

  void move_store(SpatialReading& array, double cycles) {
    for (double* time : {&now_.store_free, &now_.stored[0], &now_.stored[1]})
      if (*time == array.stored) *time += cycles;
    array.store_begin += cycles;
    array.stored += cycles;
  }

  void tile() {
    for (int f : load_order_)
      if (changed_[f]) load(f);
    const SpatialUnit::Compute& work = costs_.compute(unit_, keys_[depth_].compute, box_);
    double begin =
        std::max({now_.compute_free, token(now_.loaded[0]), token(now_.loaded[1]), fetched()});
    if (!not_first_)
      begin = std::max(begin, token(now_.stored[mapping_.copies[kSpatialResult] - 1]));
    now_.compute_free = begin + work.cycles;
    now_.computes += work.cycles;
    gives_up_ = now_.compute_free - now_.computes + patience_.computes >= patience_.limit ||
                now_.load_free - now_.loads + patience_.loads >= patience_.limit;
    now_.reading[0] = now_.reading[1];
    now_.reading[1] = {begin + head_, now_.compute_free - tail_, 0, nullptr, keys_[depth_].compute};
    now_.compute += work.cycles;
    now_.used[0][0] = now_.used[1][0] = now_.compute_free;
    if (not_last_) return;
    const double store = costs_.store(unit_, keys_[depth_].store, box_);
    const double store_begin = std::max({now_.store_free, token(now_.compute_free), fetched()});
    now_.store_free = store_begin + store;
    now_.store += store;
    now_.stored = {now_.store_free, now_.stored[0]};
    now_.reading[1].store_begin = store_begin;
    now_.reading[1].stored = now_.store_free;
  }

  const SpatialUnit& unit_;
  const SpatialMapping& mapping_;
  SpatialTileCosts& costs_;
  const SpatialPatience& patience_;
  bool gives_up_ = false;
  const double fetch_cycles_ = double(unit_.fetch_cycles());
  SpatialBox box_;
  int depth_ = 0;
  std::array<int, kSpatialLoops> order_{};
  SpatialSizes trips_{}, last_{};
  std::array<int, 2> tensor_{}, load_order_{1, 0};
  std::array<bool, 2> changed_{true, true};
  /// Of a COMPUTE before it reads, and behind that; of a LOAD before it can meet an array.
  const double head_ = unit_.design.timing.compute_overhead - 1, tail_ = double(unit_.fill + 1);
  const double quiet_ = costs_.quiet(unit_);
  const int64_t first_alike_ = costs_.followed() ? 2 : 1;
  uint32_t not_first_ = 0, not_last_ = 0;
  SpatialClock now_;
  /// Where the tile is in its loops: first, between or last.
  struct Keys {
    std::array<uint32_t, 2> load{};
    uint32_t compute = 0, store = 0;
    bool operator==(const Keys&) const = default;
  };
  /// All but the clock that decides what the loops from some depth on do.
  struct Place {
    Keys keys;
    uint32_t not_first = 0, not_last = 0;
    std::array<bool, 2> changed{};
    bool operator==(const Place&) const = default;
  };
  struct Known {
    Place place;
    std::array<bool, 2> changed{};  ///< afterwards
    SpatialPassage passage;
  };
  struct Memory {
    std::array<Known, 4> known;
    size_t next = 0;
  };
  std::array<Memory, kSpatialLoops> memories_;  ///< by depth
  SpatialPassage::Rules rules_;
  std::array<uint32_t, kSpatialLoops> outer_{};  ///< by depth: the loops around it
  std::array<Keys, kSpatialLoops + 1> keys_{};
  std::array<std::array<bool, kSpatialTensors>, kSpatialLoops>
      moves_{};  ///< by depth: factors, result
};

}  // namespace

SpatialTimeline timeline(const SpatialUnit& unit, const SpatialMapping& mapping,
                         SpatialTileCosts& costs, const SpatialPatience& patience) {
  return Walker(unit, mapping, costs, patience).walk();
}

}  // namespace tilewright::cost
