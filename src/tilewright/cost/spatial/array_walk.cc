#include "tilewright/cost/spatial/array_walk.h"

#include <algorithm>
#include <utility>

namespace tilewright::cost {
namespace {

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
    if (rows_.fetches > 1) return (left * rows_.fetches + line_ - 1) / line_;
    int64_t at = place_, accesses = 0;
    if (at >= kept_ && at < kept_ + line_) {
      const int64_t there = std::min(left, kept_ + line_ - at);
      at += there;
      left -= there;
    }
    for (; left > 0; ++accesses) {
      kept_ = at / walk_.word * walk_.word;
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

/// A LOAD with lines to write: one waits for the port while the next one is filled.
class LineWriting {
 public:
  explicit LineWriting(const LoadWalk* load) : load_(load) {
    if (done()) return;
    zeros_ = load_->parts[0].zeros;
    burst_ = load_->parts[0].burst;
  }
  bool done() const { return load_ == nullptr || part_ == load_->parts.size(); }
  bool wants() const { return waits_; }
  void cycle(bool granted) {
    if (granted) waits_ = false;
    if (!done() && filled_ < 1 && (zeros_ > 0 || now_ >= offered_)) take();
    ++now_;
    if (filled_ < 1 || waits_) return;
    filled_ -= 1;
    waits_ = true;
  }
  int64_t pieces() const { return pieces_; }

 private:
  void take() {
    filled_ += load_->accesses;
    ++pieces_;
    --(zeros_ > 0 ? zeros_ : burst_);
    if (zeros_ > 0 || burst_ > 0) return;
    // The next burst was asked for when this one was offered.
    if (load_->parts[part_].burst > 0)
      offered_ = std::max(offered_ + load_->latency, now_ + 1 + load_->gap);
    if (++part_ == load_->parts.size()) return;
    zeros_ = load_->parts[part_].zeros;
    burst_ = load_->parts[part_].burst;
  }

  const LoadWalk* load_;
  size_t part_ = 0;
  int64_t zeros_ = 0, burst_ = 0, now_ = 0, offered_ = 0, pieces_ = 0;
  double filled_ = 0;
  bool waits_ = false;
};

class ArrayFollower {
 public:
  ArrayFollower(const ArrayWalk& array, const LoadWalk* load)
      : array_(array),
        stays_(array.blocks > 0),
        per_block_(stays_ ? array.steps / array.blocks : array.steps),
        first_(array.rows, 0, array.steps),
        second_(array.rows, 1, array.rows.streams[1].bytes > 0 ? array.steps : 0),
        weights_(array.block_rows, 0, all_block_rows()),
        two_(array.rows.streams[1].bytes > 0),
        load_(load) {
    rows_left_ = height(0);
  }

  /// Until so many steps fired.
  void run(int64_t steps) {
    while (fired_ < steps) cycle();
  }
  /// Returns how many cycles.
  int64_t run_beside_load(int64_t most) {
    const int64_t begin = now_;
    loads_ = true;
    while (fired_ < array_.steps && !load_.done() && now_ - begin < most) cycle();
    return now_ - begin;
  }
  void run_on(int64_t cycles) {
    for (; fired_ < array_.steps && cycles > 0; --cycles) cycle();
  }
  int64_t last_step() const { return last_step_; }  ///< cycles up to it
  int64_t fired() const { return fired_; }
  int64_t pieces() const { return load_.pieces(); }

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

  void cycle() {
    const bool swaps = stays_ && loaded_ && block_left_ == 0;
    const bool weights = weights_.more() && (!loaded_ || swaps);
    const bool works = block_left_ > 0;
    const bool fires =
        ready_[0] > fired_ && (!two_ || ready_[1] > fired_) && (!stays_ || swaps || works);
    const bool first = may_read(first_, ready_[0]), second = may_read(second_, ready_[1]);
    const bool array =
        (weights && weights_.wants()) || (first && first_.wants()) || (second && second_.wants());
    // Who had the last access gives way.
    const bool to_load = load_.wants() && !(array && load_was_last_);
    if (array || load_.wants()) load_was_last_ = to_load;
    if (loads_) load_.cycle(to_load);
    bool port = array && !to_load;
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

  const ArrayWalk& array_;
  const bool stays_;
  const int64_t per_block_;
  RowReading first_, second_, weights_;
  const bool two_;
  LineWriting load_;
  std::array<int64_t, 2> ready_{};
  int64_t now_ = 0, last_step_ = 0, fired_ = 0, block_left_ = 0, block_ = 0, rows_left_ = 0;
  bool loads_ = false, loaded_ = false, load_was_last_ = false;
};

}  // namespace

int64_t cycles_alone(const ArrayWalk& array, int64_t steps) {
  ArrayFollower alone(array, nullptr);
  alone.run(steps);
  return alone.last_step();
}

BothPaces beside(const ArrayWalk& array, const LoadWalk& load, int64_t after, int64_t cycles) {
  ArrayFollower both(array, &load);
  both.run_on(after);
  const int64_t beside = both.run_beside_load(cycles);
  LineWriting alone(&load);
  int64_t of_load = 0;
  for (; alone.pieces() < both.pieces(); ++of_load) alone.cycle(alone.wants());
  // A delay of weights shows in the steps of the next block.
  both.run_on(std::max(kAfterLoad, 2 * array.block_height));
  if (beside == 0 || both.fired() == 0) return {};
  const int64_t late = both.last_step() - cycles_alone(array, both.fired());
  return {std::clamp(1 - double(late) / double(beside), 0.1, 1.0),
          std::min(1.0, double(of_load) / double(beside))};
}

}  // namespace tilewright::cost
