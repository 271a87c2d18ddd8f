#include "tilewright/cost/spatial/timeline.h"

#include <cmath>

namespace tilewright::cost {
namespace {

/// When queues are free, and what they have done.
struct Totals {
  double load_free = 0, compute_free = 0, store_free = 0;
  double instructions = 0, load = 0, compute = 0, store = 0;
};

/// A COMPUTE while it reads.
struct Reading {
  double begin = 0, end = 0;
  double wanted = 0;                   ///< accesses of the scratchpad in a cycle
  uint32_t key = 0;                    ///< of its costs
  double store_begin = 0, stored = 0;  ///< of the STORE behind it; 0: there is none
};

/// When what happens next may happen. All are points in time but for what Totals counts.
struct Clock : Totals {
  /// The COMPUTE before the latest one, and that: LOADs run ahead of both.
  std::array<Reading, 2> reading;
  std::array<double, 2> loaded{};  ///< end of the LOAD of the present tile
  std::array<std::array<double, 2>, 2>
      used{};                      ///< by factor: last use of this tile, of the one before
  std::array<double, 2> stored{};  ///< end of the latest STORE, of the one before

  void shift(double cycles) {
    for (double* time : {&load_free, &compute_free, &store_free, &loaded[0], &loaded[1],
                         &used[0][0], &used[0][1], &used[1][0], &used[1][1], &stored[0], &stored[1],
                         &reading[0].begin, &reading[0].end, &reading[1].begin, &reading[1].end})
      *time += cycles;
    for (Reading& array : reading)
      if (array.stored > 0) {
        array.store_begin += cycles;
        array.stored += cycles;
      }
  }
};

/// A loop is followed until two iterations take the same time, then for the last one; those between
/// are as the latest one followed.
constexpr double kSame = 0.01;

class Walker {
 public:
  Walker(const SpatialUnit& unit, const SpatialMapping& mapping, SpatialTileCosts& costs)
      : unit_(unit), mapping_(mapping), costs_(costs) {
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
    for (int depth = 0; depth < depth_; ++depth)
      for (int f = 0; f < kSpatialTensors; ++f)
        moves_[depth][f] = unit.in(unit.moves[f == kSpatialResult ? f : tensor_[f]], order_[depth]);
    // What changes more seldom is loaded first: it need not wait for the tile before.
    if (innermost(tensor_[0]) < innermost(tensor_[1])) load_order_ = {0, 1};
  }

  SpatialTimeline walk() {
    run(0);
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
    const bool last = index == trips_[depth] - 1;
    const uint32_t place = last ? 2 : index > 0;
    const Keys& outer = keys_[depth];
    Keys& keys = keys_[depth + 1];
    for (int f : {0, 1})
      keys.load[f] = outer.load[f] + (moves_[depth][f] ? costs_.load_digit(f, loop) * place : 0);
    keys.compute = outer.compute | uint32_t{last} << loop;
    keys.store = outer.store | (moves_[depth][kSpatialResult] ? uint32_t{last} << loop : 0);
    box_.size[loop] = last ? last_[depth] : mapping_.tile[loop];
    for (int f : {0, 1}) changed_[f] |= moves_[depth][f];
    if (!moves_[depth][kSpatialResult]) {
      const uint32_t bit = 1u << loop;
      not_first_ = index ? not_first_ | bit : not_first_ & ~bit;
      not_last_ = last ? not_last_ & ~bit : not_last_ | bit;
    }
  }

  void run(int depth) {
    if (depth == depth_) return tile();
    const int64_t trips = trips_[depth];
    std::array<double, 3> period{-1, -1, -1};
    for (int64_t index = 0; index < trips; ++index) {
      go_to(depth, index);
      const Totals before = now_;
      depth + 1 == depth_ ? tile() : run(depth + 1);
      const std::array<double, 3> latest{now_.load_free - before.load_free,
                                         now_.compute_free - before.compute_free,
                                         now_.store_free - before.store_free};
      // STOREs that fall behind hold up COMPUTEs sooner or later: not yet what goes on.
      bool same = latest[2] - std::max(latest[0], latest[1]) <= kSame * latest[1];
      for (int queue = 0; queue < 3; ++queue)
        same = same && std::abs(latest[queue] - period[queue]) <= kSame * latest[1];
      period = latest;
      const int64_t between = trips - 2 - index;
      if (index < 1 || between < 1 || !same) continue;
      skip(before, between);
      index += between;
    }
  }

  /// As if `times` more iterations had passed that each took as long as the latest.
  void skip(const Totals& before, int64_t times) {
    const Totals after = now_;
    auto more = [&](double Totals::* what) {
      now_.*what += double(times) * (after.*what - before.*what);
    };
    const double period =
        std::max(after.compute_free - before.compute_free, after.load_free - before.load_free);
    now_.shift(double(times) * period);
    more(&Totals::instructions);
    more(&Totals::load);
    more(&Totals::compute);
    more(&Totals::store);
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
    now_.load_free = loaded_beside_arrays(f, begin, work);
    now_.load += now_.load_free - begin;
    now_.loaded[f] = now_.load_free;
    changed_[f] = false;
  }

  /// A LOAD writes into the scratchpad from which COMPUTEs read: both end later, where both want an
  /// access in the same cycle. Returns when the LOAD ends.
  double loaded_beside_arrays(int f, double begin, const SpatialTileCosts::Load& work) {
    const double quiet = std::min(quiet_, work.cycles);  // before the first beat
    double time = begin + quiet, left = work.cycles - quiet;
    const double written = left > 0 ? work.accesses / left : 0;
    for (size_t which : {0, 1}) {
      const Reading& array = now_.reading[which];
      const double alone = std::clamp(array.begin - time, 0.0, left);
      time += alone;
      left -= alone;
      if (left <= 0 || written <= 0 || array.wanted <= 0 || time >= array.end) continue;
      const auto [reads, writes] = costs_.beside(array.key, array.wanted, f, keys_[depth_].load[f],
                                                 written, time - array.begin);
      const double both = std::min((array.end - time) / reads, left / writes);
      time += both;
      left -= both * writes;
      delay(which, both * (1 - reads));
    }
    return time + left;
  }

  /// A COMPUTE ends later, and so what begins behind it.
  void delay(size_t which, double cycles) {
    Reading& array = now_.reading[which];
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
    Reading& next = now_.reading[1];
    const double begin = next.begin - head_;
    double late = end + cycles - begin;
    if (array.stored > stored && begin == token(stored)) late = cycles;
    if (late <= 0) return;
    delay_store(next, now_.compute_free, late);
    next.begin += late;
    next.end += late;
    for (auto& used : now_.used)
      for (double& time : used)
        if (time == now_.compute_free) time += late;
    now_.compute_free += late;
  }

  /// A STORE that waits for a COMPUTE, which ends later.
  void delay_store(Reading& array, double end, double cycles) {
    if (array.stored == 0 || array.store_begin != token(end)) return;
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
    now_.reading[0] = now_.reading[1];
    now_.reading[1] = {begin + head_, now_.compute_free - tail_,
                       std::min(1.0, work.accesses / std::max(1.0, work.cycles - head_ - tail_)),
                       keys_[depth_].compute};
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
  const double fetch_cycles_ = double(unit_.fetch_cycles());
  SpatialBox box_;
  int depth_ = 0;
  std::array<int, kSpatialLoops> order_{};
  SpatialSizes trips_{}, last_{};
  std::array<int, 2> tensor_{}, load_order_{1, 0};
  std::array<bool, 2> changed_{true, true};
  /// Of a COMPUTE before it reads, and behind that; of a LOAD before its first beat.
  const double head_ = unit_.design.timing.compute_overhead - 1, tail_ = double(unit_.fill + 2);
  const double quiet_ = unit_.design.timing.load_overhead + unit_.design.timing.read_latency - 1;
  uint32_t not_first_ = 0, not_last_ = 0;
  Clock now_;
  /// Where the tile is in its loops: first, between or last.
  struct Keys {
    std::array<uint32_t, 2> load{};
    uint32_t compute = 0, store = 0;
  };
  std::array<Keys, kSpatialLoops + 1> keys_{};
  std::array<std::array<bool, kSpatialTensors>, kSpatialLoops>
      moves_{};  ///< by depth: factors, result
};

/// An array and a LOAD that want so many accesses in a cycle, in the mean. Who had the last access
/// gives way. The array needs its rows in step: each access that it wants and does not get costs a
/// cycle. A LOAD has a line more to fill meanwhile: only what is left of accesses matters to it.
BothPaces mean_speeds(double wanted, double written) {
  const double writes = std::min(1.0, std::max(0.5, 1 - wanted) / written);
  const double taken = written * writes;
  // The LOAD gets its access at once where the array had the last one, else in the next cycle;
  // the array loses where it wants an access in that cycle.
  const double array_last = wanted * (1 - taken), load_last = taken * (1 - wanted);
  const double at_once = load_last > 0 ? array_last / (array_last + load_last) : 1;
  return {1 - taken * wanted * (at_once + (1 - at_once) * wanted), writes};
}

/// Cycles of an array that show how it gets on beside a LOAD.
constexpr int64_t kBesideCycles = 4096;
constexpr uint32_t kApart = 8;

}  // namespace

SpatialTileCosts::SpatialTileCosts(const SpatialUnit& unit, const SpatialSizes& tile,
                                   SpatialRows rows)
    : tile_(tile), rows_(rows) {
  for (int f : {0, 1}) {
    const int tensor = f ? unit.choice.second() : unit.choice.first;
    uint32_t digit = 1;
    for (int loop = 0; loop < unit.loops; ++loop) {
      if (!unit.in(unit.moves[tensor], loop) || tile[loop] >= unit.layer.loops[loop].extent)
        continue;
      load_digits_[f][loop] = digit;
      digit *= 3;
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
  if (rows_ == SpatialRows::Followed) writers_[f].emplace(key, unit.load_walk(f, transfer, box));
  return load = {rows_ == SpatialRows::Followed ? unit.load_cycles_followed(f, transfer, box)
                                                : unit.load_cycles(f, transfer, box.size),
                 unit.write_accesses(f, transfer, box.size)};
}

const SpatialUnit::Compute& SpatialTileCosts::compute(const SpatialUnit& unit, uint32_t key,
                                                      const SpatialBox& box) {
  if (!known_computes_[key]) {
    known_computes_[key] = true;
    computes_[key] = unit.compute(box.size, rows_);
    if (rows_ == SpatialRows::Followed) arrays_.emplace(key, unit.array_walk(box.size));
  }
  return computes_[key];
}

double SpatialTileCosts::store(const SpatialUnit& unit, uint32_t key, const SpatialBox& box) {
  if (!known_stores_[key]) {
    known_stores_[key] = true;
    stores_[key] = double(unit.store_cycles(unit.transfer(kSpatialResult, box)));
  }
  return stores_[key];
}

BothPaces SpatialTileCosts::beside(uint32_t compute_key, double wanted, int factor,
                                   uint32_t load_key, double written, double after) {
  if (rows_ == SpatialRows::Mean) return mean_speeds(wanted, written);
  // Places that are a little apart are taken together.
  const auto begin =
      static_cast<uint32_t>(std::min(after, double(kBesideCycles))) / kApart * kApart;
  const auto [found, is_new] = paces_.try_emplace({compute_key, uint32_t(factor), load_key, begin});
  if (is_new)
    found->second =
        cost::beside(arrays_.at(compute_key), writers_[factor].at(load_key), begin, kBesideCycles);
  return found->second;
}

SpatialTimeline timeline(const SpatialUnit& unit, const SpatialMapping& mapping,
                         SpatialTileCosts& costs) {
  return Walker(unit, mapping, costs).walk();
}

}  // namespace tilewright::cost
