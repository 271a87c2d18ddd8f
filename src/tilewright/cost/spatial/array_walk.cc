#include "tilewright/cost/spatial/array_walk.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace tilewright::cost {
// Not anonymous: FollowedArray::Followed, which array_walk.h names, keeps ArrayFollowers.
namespace array_walk {

constexpr int64_t kMostAhead = 8;  ///< rows that streams read ahead of the steps

/// Accesses of a stream's rows, one row after the other.
class RowAccesses {
 public:
  RowAccesses(const RowWalk& walk, size_t stream)
      : walk_(&walk), stream_(stream), line_(walk.word * walk.banks) {
    for (size_t level = 0; level < walk.depth; ++level) varies_ |= walk.loops[level].last_sets != 0;
    find_bits();
  }

  /// Whether so many iterations of a loop have passed since then, and nothing else has changed. How
  /// far these go on in words matters, too, and is the caller's to know.
  bool like(const RowAccesses& then, size_t level, int64_t iterations) const {
    for (size_t other = 0; other < walk_->depth; ++other)
      if (at_[other] != then.at_[other] + (other == level ? iterations : 0)) return false;
    return bits_ == then.bits_ && kept_ - place_ == then.kept_ - then.place_;
  }
  /// Iterations of a loop before the last one, which may be different.
  int64_t left_of(size_t level) const { return walk_->loops[level].count - 2 - at_[level]; }
  /// As if so many iterations of a loop had passed.
  void jump(size_t level, int64_t iterations) {
    const int64_t bytes = iterations * walk_->loops[level].step[stream_];
    at_[level] += iterations;
    place_ += bytes;
    kept_ += bytes;
  }

  int64_t next() {
    const RowBytes& rows = walk_->streams[stream_];
    const int64_t accesses = of_row(rows, bits_ >> stream_ & 1 ? rows.last : rows.bytes);
    advance();
    return accesses;
  }

 private:
  int64_t of_row(const RowBytes& rows, int64_t left) {
    if (rows.fetches > 1) return rows.accesses(left, place_ & (walk_->word - 1), line_);
    int64_t at = place_, accesses = 0;
    if (at >= kept_ && at < kept_ + line_) {
      const int64_t there = std::min(left, kept_ + line_ - at);
      at += there;
      left -= there;
    }
    for (; left > 0; ++accesses) {
      kept_ = at & -walk_->word;
      const int64_t brought = std::min(left, kept_ + line_ - at);
      at += brought;
      left -= brought;
    }
    return accesses;
  }

  void advance() {
    size_t level = 0;
    for (; level < walk_->depth; ++level) {
      place_ += walk_->loops[level].step[stream_];
      if (++at_[level] < counts_[level]) break;
      place_ -= at_[level] * walk_->loops[level].step[stream_];
      at_[level] = 0;
    }
    if (varies_ && (level > 0 || walk_->loops[0].last_sets != 0)) find_bits();
  }

  void find_bits() {
    bits_ = 0;
    for (size_t level = walk_->depth; level-- > 0;) {
      const RowLoop& loop = walk_->loops[level];
      counts_[level] = bits_ & RowWalk::kShort ? loop.last_count : loop.count;
      if (at_[level] + 1 == counts_[level]) bits_ |= loop.last_sets;
    }
  }

  const RowWalk* walk_;
  size_t stream_;
  int64_t line_;
  bool varies_ = false;
  uint8_t bits_ = 0;
  std::array<int64_t, RowWalk::kMostLoops> at_{}, counts_{};
  int64_t place_ = 0, kept_ = -(int64_t{1} << 40);
};

/// A stream of rows that is being read.
class RowReading {
 public:
  RowReading(const RowWalk& walk, size_t stream, int64_t rows)
      : accesses_(walk, stream), left_(rows) {
    if (left_ > 0) wanted_ = accesses_.next();
  }
  bool more() const { return left_ > 0; }
  bool wants() const { return wanted_ > 0; }
  bool like(const RowReading& then, size_t level, int64_t iterations) const {
    return wanted_ == then.wanted_ && accesses_.like(then.accesses_, level, iterations);
  }
  int64_t left_of(size_t level) const { return accesses_.left_of(level); }
  void jump(size_t level, int64_t iterations, int64_t rows) {
    accesses_.jump(level, iterations);
    left_ -= rows;
  }
  /// One cycle; takes the port if it wants it and it is free. True: the row is complete.
  bool read(bool& port) {
    if (wanted_ > 0 && (!std::exchange(port, false) || --wanted_ > 0)) return false;
    if (--left_ > 0) wanted_ = accesses_.next();
    return true;
  }

 private:
  RowAccesses accesses_;
  int64_t left_, wanted_ = 0;
};

class ArrayFollower {
 public:
  explicit ArrayFollower(const ArrayWalk& array)
      : array_(&array),
        stays_(array.blocks > 0),
        per_block_(stays_ ? array.steps / array.blocks : array.steps),
        first_(array.rows, 0, array.steps),
        second_(array.rows, 1, array.rows.streams[1].bytes > 0 ? array.steps : 0),
        weights_(array.block_rows, 0, all_block_rows()),
        two_(array.rows.streams[1].bytes > 0) {
    rows_left_ = height(0);
  }

  int64_t now() const { return now_; }
  int64_t last_step() const { return last_step_; }  ///< cycles up to it
  int64_t fired() const { return fired_; }

  /// Whether all is as it was so many iterations of a loop ago. requires: no iterations, or no
  /// blocks that stay.
  bool like(const ArrayFollower& then, size_t level, int64_t iterations) const {
    return loaded_ == then.loaded_ && rows_left_ == then.rows_left_ && block_ == then.block_ &&
           (!stays_ || weights_.like(then.weights_, 0, 0)) &&
           ready_[0] - fired_ == then.ready_[0] - then.fired_ &&
           (!two_ || ready_[1] - fired_ == then.ready_[1] - then.fired_) &&
           now_ - last_step_ == then.now_ - then.last_step_ &&
           first_.like(then.first_, level, iterations) &&
           (!two_ || second_.like(then.second_, level, iterations));
  }
  int64_t left_of(size_t level) const {
    return two_ ? std::min(first_.left_of(level), second_.left_of(level)) : first_.left_of(level);
  }
  /// As if so many iterations of a loop had passed, with these rows and cycles.
  void jump(size_t level, int64_t iterations, int64_t rows, int64_t cycles) {
    first_.jump(level, iterations, rows);
    if (two_) second_.jump(level, iterations, rows);
    for (int64_t& ready : ready_) ready += rows;
    fired_ += rows;
    now_ += cycles;
    last_step_ += cycles;
  }

  /// One cycle. `may_have`: says whether the array has the port, told whether it wants it.
  template <typename MayHave>
  void cycle(const MayHave& may_have) {
    const bool swaps = stays_ && loaded_ && block_left_ == 0;
    const bool weights = weights_.more() && (!loaded_ || swaps);
    const bool works = block_left_ > 0;
    const bool fires =
        ready_[0] > fired_ && (!two_ || ready_[1] > fired_) && (!stays_ || swaps || works);
    const bool first = may_read(first_, ready_[0]), second = may_read(second_, ready_[1]);
    bool port = may_have((weights && weights_.wants()) || (first && first_.wants()) ||
                         (second && second_.wants()));
    if (swaps) {
      block_left_ = per_block_;
      loaded_ = false;
    }
    if (weights && !works) read_weights(port);
    const bool second_first = ready_[1] < ready_[0];
    if (second && second_first) ready_[1] += second_.read(port);
    if (first) ready_[0] += first_.read(port);
    if (second && !second_first) ready_[1] += second_.read(port);
    if (weights && works) read_weights(port);
    ++now_;
    if (!fires) return;
    last_step_ = now_;
    ++fired_;
    if (stays_) --block_left_;
  }
  void cycle() {
    cycle([](bool wants) { return wants; });
  }
  /// Alone, up to the next step.
  void step() {
    for (const int64_t before = fired_; fired_ == before;) cycle();
  }

 private:
  int64_t height(int64_t block) const {
    const bool ragged =
        block / array_->ragged_inside % array_->ragged_count == array_->ragged_count - 1;
    return ragged ? array_->ragged_height : array_->block_height;
  }
  int64_t all_block_rows() const {
    int64_t rows = 0;
    for (int64_t block = 0; block < array_->blocks; ++block) rows += height(block);
    return rows;
  }

  bool may_read(const RowReading& rows, int64_t ready) const {
    return rows.more() && ready < fired_ + kMostAhead;
  }

  void read_weights(bool& port) {
    if (!weights_.read(port) || --rows_left_ > 0) return;
    loaded_ = true;
    if (++block_ < array_->blocks) rows_left_ = height(block_);
  }

  const ArrayWalk* array_;
  bool stays_;
  int64_t per_block_;
  RowReading first_, second_, weights_;
  bool two_;
  std::array<int64_t, 2> ready_{};
  int64_t now_ = 0, last_step_ = 0, fired_ = 0, block_left_ = 0, block_ = 0, rows_left_ = 0;
  bool loaded_ = false;
};

}  // namespace array_walk

using array_walk::ArrayFollower;

namespace array_walk {

/// The same iterations of a loop again and again.
struct Repeated {
  ArrayFollower array;  ///< before the first one
  size_t level = 0;
  int64_t iterations = 0, rows = 0, cycles = 0;  ///< of each time
  int64_t times = 0;

  ArrayFollower at(int64_t time) const {
    ArrayFollower found = array;
    found.jump(level, time * iterations, time * rows, time * cycles);
    return found;
  }
  int64_t begin() const { return array.now(); }
  int64_t end() const { return begin() + times * cycles; }
};

/// Loops whose iterations may pass as others did.
class Repetitions {
 public:
  Repetitions(const ArrayWalk& walk, int64_t steps) : steps_(steps) {
    const RowWalk& rows = walk.rows;
    // Blocks that stay have rows of their own, and loops with fewer iterations at some places other
    // distances.
    if (walk.blocks > 0) return;
    for (size_t level = 0; level < rows.depth; ++level)
      if (rows.loops[level].last_sets & RowWalk::kShort) return;
    int64_t inside = 1;
    for (size_t level = 0; level < rows.depth; inside *= rows.loops[level++].count) {
      const RowLoop& loop = rows.loops[level];
      int64_t iterations = 1;  // until rows begin at the same places of words again
      for (const int64_t step : loop.step)
        iterations = std::max(iterations, rows.word / std::gcd(rows.word, step));
      // Comparing takes as long as following some rows.
      iterations *= std::max<int64_t>(1, kFewRows / (inside * iterations));
      if (loop.count >= 4 * iterations) levels_.push_back({level, iterations, inside * iterations});
    }
  }

  /// Whether the array, which has just fired a step, goes on as before for a while.
  std::optional<Repeated> found(const ArrayFollower& array) {
    for (Level& level : levels_) {
      if (array.fired() % level.rows != 0) continue;
      const auto& before = level.before;
      if (before && array.fired() - before->fired() == level.rows &&
          array.like(*before, level.level, level.iterations)) {
        const int64_t times = std::min(array.left_of(level.level) / level.iterations,
                                       (steps_ - array.fired()) / level.rows) -
                              1;
        if (times > 0)
          return Repeated{
              array, level.level, level.iterations, level.rows, array.now() - before->now(), times};
      }
      level.before.emplace(array);
    }
    return std::nullopt;
  }

 private:
  struct Level {
    size_t level = 0;
    int64_t iterations = 0, rows = 0;
    std::optional<ArrayFollower> before{};  ///< so many rows ago
  };
  static constexpr int64_t kFewRows = 64;
  int64_t steps_;
  std::vector<Level> levels_;
};

}  // namespace array_walk

class FollowedArray::Followed {
 public:
  Followed(const ArrayWalk& walk, int64_t most) : walk_(walk), steps_(std::min(walk_.steps, most)) {
    ArrayFollower array(walk_);
    array_walk::Repetitions repetitions(walk_, steps_);
    kept_.push_back(array);
    while (array.fired() < steps_) {
      const int64_t fired = array.fired();
      array.cycle();
      if (array.now() - kept_.back().now() >= kBetween) kept_.push_back(array);
      if (array.fired() == fired) continue;
      const std::optional<array_walk::Repeated> repeated = repetitions.found(array);
      if (!repeated) continue;
      repeated_.push_back(*repeated);
      kept_.push_back(repeated->at(repeated->times));
      array = kept_.back();
    }
    cycles_ = array.last_step();
  }

  int64_t cycles() const { return cycles_; }
  int64_t steps() const { return steps_; }

  ArrayFollower at(int64_t cycles) const {
    ArrayFollower array = before(cycles);
    while (array.now() < cycles && array.fired() < steps_) array.cycle();
    return array;
  }

 private:
  static constexpr int64_t kBetween = 2048;  ///< cycles from one state that is kept to the next

  /// Not long before.
  ArrayFollower before(int64_t cycles) const {
    const auto later = std::upper_bound(
        repeated_.begin(), repeated_.end(), cycles,
        [](int64_t wanted, const array_walk::Repeated& one) { return wanted < one.begin(); });
    if (later != repeated_.begin() && cycles < (later - 1)->end())
      return (later - 1)->at((cycles - (later - 1)->begin()) / (later - 1)->cycles);
    return *(std::upper_bound(
                 kept_.begin(), kept_.end(), cycles,
                 [](int64_t wanted, const ArrayFollower& one) { return wanted < one.now(); }) -
             1);
  }

  const ArrayWalk walk_;
  const int64_t steps_;
  int64_t cycles_ = 0;
  std::vector<ArrayFollower> kept_;
  std::vector<array_walk::Repeated> repeated_;
};

FollowedArray::FollowedArray(const ArrayWalk& walk, int64_t most)
    : followed_(std::make_unique<Followed>(walk, most)), cycles_(followed_->cycles()) {}

FollowedArray::~FollowedArray() = default;

struct DelayedArray {
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  ArrayFollower array;
  int64_t undelayed_from = kNever;
};

int64_t undelayed_from(const DelayedArray& array) { return array.undelayed_from; }

ArrayMeeting FollowedArray::meet(int64_t after, const LoadWalk& load, int64_t written,
                                 int64_t most) const {
  return meet_from({followed_->at(after), 0}, load, written, most);
}

ArrayMeeting FollowedArray::meet(const DelayedArray& array, int64_t after, const LoadWalk& load,
                                 int64_t written, int64_t most) const {
  DelayedArray then = array;
  while (then.array.now() < after && then.array.fired() < followed_->steps()) then.array.cycle();
  return meet_from(then, load, written, most);
}

ArrayMeeting FollowedArray::meet_from(const DelayedArray& array, const LoadWalk& load,
                                      int64_t written, int64_t most) const {
  ArrayFollower both = array.array, alone = array.array;
  LoadState writes = load.at(written);
  const int64_t steps = followed_->steps(), begin = both.now();
  // Who had the last access gives way.
  bool load_was_last = begin == 0, ended = false;
  while (both.fired() < steps && !ended && both.now() - begin < most)
    both.cycle([&](bool wants) {
      const bool load_wants = load.wants(writes);
      const bool to_load = load_wants && !(wants && load_was_last);
      if (wants || load_wants) load_was_last = to_load;
      ended = load.advance(writes, to_load);
      return wants && !to_load;
    });
  const int64_t beside = both.now() - begin;
  auto delayed = std::make_shared<DelayedArray>(DelayedArray{both});
  while (alone.fired() < both.fired()) alone.cycle();
  // What the LOAD did to the array shows in later steps, until all is as it would be without it.
  while (both.fired() < steps && !both.like(alone, 0, 0)) {
    both.step();
    alone.step();
  }
  const int64_t late = both.last_step() - std::max(begin, alone.last_step());
  if (both.fired() < steps && array.undelayed_from < DelayedArray::kNever)
    delayed->undelayed_from = std::max(both.now(), array.undelayed_from + late);
  const int64_t done = ended ? load.cycles() : load.cycles_to(writes);
  return {double(beside), double(late), double(done - written), std::move(delayed)};
}

}  // namespace tilewright::cost
