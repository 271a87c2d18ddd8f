#include "tilewright/cost/spatial/array_walk.h"

#include <algorithm>
#include <utility>

namespace tilewright::cost {
// Not anonymous: FollowedArray::Followed, which array_walk.h names, keeps ArrayFollowers.
namespace array_walk {

constexpr int64_t kAfterLoad = 512;  ///< cycles in which a delay of the array shows
constexpr int64_t kMostAhead = 8;    ///< rows that streams read ahead of the steps

/// Accesses of a stream's rows, one row after the other.
class RowAccesses {
 public:
  RowAccesses(const RowWalk& walk, size_t stream)
      : walk_(walk), rows_(walk.streams[stream]), stream_(stream), line_(walk.word * walk.banks) {
    for (size_t level = 0; level < walk.depth; ++level) varies_ |= walk.loops[level].last_sets != 0;
    find_bits();
  }

  int64_t next() {
    const int64_t accesses = of_row(bits_ >> stream_ & 1 ? rows_.last : rows_.bytes);
    advance();
    return accesses;
  }

 private:
  int64_t of_row(int64_t left) {
    if (rows_.fetches > 1) return rows_.accesses(left, place_ & (walk_.word - 1), line_);
    int64_t at = place_, accesses = 0;
    if (at >= kept_ && at < kept_ + line_) {
      const int64_t there = std::min(left, kept_ + line_ - at);
      at += there;
      left -= there;
    }
    for (; left > 0; ++accesses) {
      kept_ = at & -walk_.word;
      const int64_t brought = std::min(left, kept_ + line_ - at);
      at += brought;
      left -= brought;
    }
    return accesses;
  }

  void advance() {
    size_t level = 0;
    for (; level < walk_.depth; ++level) {
      place_ += walk_.loops[level].step[stream_];
      if (++at_[level] < counts_[level]) break;
      place_ -= at_[level] * walk_.loops[level].step[stream_];
      at_[level] = 0;
    }
    if (varies_ && (level > 0 || walk_.loops[0].last_sets != 0)) find_bits();
  }

  void find_bits() {
    bits_ = 0;
    for (size_t level = walk_.depth; level-- > 0;) {
      const RowLoop& loop = walk_.loops[level];
      counts_[level] = bits_ & RowWalk::kShort ? loop.last_count : loop.count;
      if (at_[level] + 1 == counts_[level]) bits_ |= loop.last_sets;
    }
  }

  const RowWalk& walk_;
  const RowBytes& rows_;
  const size_t stream_;
  const int64_t line_;
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
      : array_(array),
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

 private:
  int64_t height(int64_t block) const {
    const bool ragged =
        block / array_.ragged_inside % array_.ragged_count == array_.ragged_count - 1;
    return ragged ? array_.ragged_height : array_.block_height;
  }
  int64_t all_block_rows() const {
    int64_t rows = 0;
    for (int64_t block = 0; block < array_.blocks; ++block) rows += height(block);
    return rows;
  }

  bool may_read(const RowReading& rows, int64_t ready) const {
    return rows.more() && ready < fired_ + kMostAhead;
  }

  void read_weights(bool& port) {
    if (!weights_.read(port) || --rows_left_ > 0) return;
    loaded_ = true;
    if (++block_ < array_.blocks) rows_left_ = height(block_);
  }

  const ArrayWalk& array_;
  const bool stays_;
  const int64_t per_block_;
  RowReading first_, second_, weights_;
  const bool two_;
  std::array<int64_t, 2> ready_{};
  int64_t now_ = 0, last_step_ = 0, fired_ = 0, block_left_ = 0, block_ = 0, rows_left_ = 0;
  bool loaded_ = false;
};

}  // namespace array_walk

using array_walk::ArrayFollower;

class FollowedArray::Followed {
 public:
  Followed(const ArrayWalk& walk, int64_t most) : walk_(walk) {
    ArrayFollower array(walk_);
    for (steps_ = std::min(walk_.steps, most); array.fired() < steps_; array.cycle())
      if (array.now() % kBetween == 0) kept_.push_back(array);
    cycles_ = array.last_step();
  }
  int64_t cycles() const { return cycles_; }
  int64_t steps() const { return steps_; }

  ArrayFollower at(int64_t cycles) const {
    const auto kept = static_cast<size_t>(cycles / kBetween);
    ArrayFollower array = kept_[std::min(kept, kept_.size() - 1)];
    while (array.now() < cycles && array.fired() < steps_) array.cycle();
    return array;
  }
  /// A delay of weights shows in the steps of the next block.
  int64_t cycles_to_show() const {
    return std::max(array_walk::kAfterLoad, 2 * walk_.block_height);
  }

 private:
  static constexpr int64_t kBetween = 2048;  ///< cycles from one state that is kept to the next
  const ArrayWalk walk_;
  int64_t steps_ = 0, cycles_ = 0;
  std::vector<ArrayFollower> kept_;
};

FollowedArray::FollowedArray(const ArrayWalk& walk, int64_t most)
    : followed_(std::make_unique<Followed>(walk, most)), cycles_(followed_->cycles()) {}

FollowedArray::~FollowedArray() = default;

ArrayMeeting FollowedArray::meet(int64_t after, const LoadWalk& load, int64_t written,
                                 int64_t most) const {
  ArrayFollower both = followed_->at(after);
  ArrayFollower alone = both;
  LoadState writes = load.at(written);
  const int64_t steps = followed_->steps(), begin = both.now();
  // Who had the last access gives way.
  bool load_was_last = after == 0, ended = false;
  while (both.fired() < steps && !ended && both.now() - begin < most)
    both.cycle([&](bool wants) {
      const bool load_wants = load.wants(writes);
      const bool to_load = load_wants && !(wants && load_was_last);
      if (wants || load_wants) load_was_last = to_load;
      ended = load.advance(writes, to_load);
      return wants && !to_load;
    });
  const int64_t beside = both.now() - begin;
  const int64_t until = both.now() + followed_->cycles_to_show();
  while (both.fired() < steps && both.now() < until) both.cycle();
  while (alone.fired() < both.fired()) alone.cycle();
  const int64_t late = both.last_step() - std::max(begin, alone.last_step());
  const int64_t done = ended ? load.cycles() : load.cycles_to(writes);
  return {double(beside), double(late), double(done - written)};
}

}  // namespace tilewright::cost
