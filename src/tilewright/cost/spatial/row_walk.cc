#include "tilewright/cost/spatial/row_walk.h"

#include <algorithm>
#include <numeric>

namespace tilewright::cost {
namespace {

/// Rows that streams read ahead of the steps.
constexpr int64_t kRowsAhead = 8;

/// A line that has nothing of any row, wherever they are.
constexpr int32_t kNoLine = 1 << 28;

/// What the next row finds. Times are relative to the cycle in which the last step's rows were
/// there.
struct NextRow {
  std::array<int32_t, 2> offset{};  ///< of the row in its word
  /// Words from the line that is kept to that word; out of 0..banks-1: it has nothing of the row.
  std::array<int32_t, 2> line{kNoLine, kNoLine};
  std::array<int8_t, 2> ahead{};  ///< cycles by which each stream was done earlier
  int8_t port = 0;                ///< the same of the accesses
  int8_t lag = 0;                 ///< cycles until the last step fires
};

struct RowsPassed {
  int64_t cycles = 0, accesses = 0;
  NextRow found;  ///< seen from where the loops began
};

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

class RowFollower {
 public:
  explicit RowFollower(const RowWalk& walk) : w_(walk), line_(walk.word * walk.banks) {
    two_ = w_.streams[1].bytes > 0;
    for (size_t f = 0; f < 2; ++f) {
      const RowBytes& rows = w_.streams[f];
      moves_[f] = rows.fetches == 1;
      for (const int64_t row : {rows.bytes, rows.last})
        moves_[f] |= rows.accesses(row, 0, line_) < rows.accesses(row, w_.word - 1, line_);
    }
    for (size_t level = 0; level < w_.depth; ++level) {
      periods_[level] = 1;
      for (size_t f = 0; f < 2; ++f)
        periods_[level] = std::max(periods_[level], w_.word / std::gcd(w_.word, step(level, f)));
    }
  }

  RowCosts costs() {
    const RowsPassed all = run(w_.depth, 0, {});
    return {all.cycles + all.found.lag - 1, all.accesses};
  }

 private:
  static constexpr int kKnownBits = 6;
  static constexpr int64_t kLongestPeriod = 64;  // words have up to 64 bytes

  /// Where rows begin seldom matters to units that each fetch for themselves.
  int64_t step(size_t level, size_t f) const { return moves_[f] ? w_.loops[level].step[f] : 0; }

  /// Accesses of a stream for its next row.
  int64_t read(size_t f, uint8_t bits, NextRow& now) const {
    const RowBytes& rows = w_.streams[f];
    int64_t left = bits >> f & 1 ? rows.last : rows.bytes;
    if (rows.fetches > 1) return rows.accesses(left, now.offset[f], line_);
    int64_t at = now.offset[f];
    if (now.line[f] >= 0 && now.line[f] < w_.banks) {
      const int64_t kept = std::min(left, line_ - now.line[f] * w_.word - at);
      at += kept;
      left -= kept;
    }
    int64_t accesses = 0;
    for (; left > 0; ++accesses) {
      const int64_t first = at / w_.word, bytes = std::min(left, first * w_.word + line_ - at);
      now.line[f] = static_cast<int32_t>(-first);
      at += bytes;
      left -= bytes;
    }
    return accesses;
  }

  /// One step's rows.
  RowsPassed row(uint8_t bits, NextRow now) const {
    const int64_t first = read(0, bits, now);
    if (!two_) {
      now.lag = 1;
      return {std::max<int64_t>(1, first), first, now};
    }
    const int64_t second = read(1, bits, now);
    const int64_t port = first + second - now.port;
    const std::array<int64_t, 2> done{std::max<int64_t>(1, first) - now.ahead[0],
                                      std::max<int64_t>(1, second) - now.ahead[1]};
    // Who is ahead of the steps by all it may be waits for them.
    const int64_t cycles = std::max({port, done[0], done[1], int64_t{now.lag >= kRowsAhead}});
    now.lag = static_cast<int8_t>(std::max<int64_t>(now.lag + 1 - cycles, 1));
    const auto most = [&](int64_t ahead) {
      return static_cast<int8_t>(std::min<int64_t>(ahead, kRowsAhead - now.lag));
    };
    now.port = most(cycles - port);
    for (size_t f = 0; f < 2; ++f) now.ahead[f] = most(cycles - done[f]);
    return {cycles, first + second, now};
  }

  /// As seen from so many iterations of a loop further on.
  void move(NextRow& found, size_t level, int64_t times) const {
    for (size_t f = 0; f < 2; ++f) {
      const int64_t at = found.offset[f] + times * step(level, f);
      const int64_t words = floor_div(at, w_.word);
      found.offset[f] = static_cast<int32_t>(at - words * w_.word);
      found.line[f] += static_cast<int32_t>(words);
    }
  }

  /// Different for what differs to the rows that follow.
  uint64_t key(const NextRow& found) const {
    uint64_t key = 0;
    for (size_t f = 0; f < 2; ++f) {
      const bool kept = found.line[f] >= 0 && found.line[f] < w_.banks;
      key = key << 6 | uint64_t(found.offset[f]);
      key = key << 5 | uint64_t(kept ? found.line[f] : w_.banks);
      key = key << 4 | uint64_t(found.ahead[f]);
    }
    return (key << 4 | uint64_t(found.port)) << 4 | uint64_t(found.lag);
  }

  RowsPassed run(size_t level, uint8_t bits, NextRow now) {
    if (level == 0) return row(bits, now);
    const uint64_t id = ((key(now) << 4 | uint64_t(level)) << 3 | bits) + 1;
    Known& known = known_[(id * 0x9E3779B97F4A7C15u) >> (64 - kKnownBits)];
    // What is followed meanwhile may need the same place.
    if (known.id != id) known = {id, follow(level, bits, now)};
    return known.passed;
  }

  RowsPassed follow(size_t level, uint8_t bits, NextRow now) {
    const RowLoop& loop = w_.loops[level - 1];
    const int64_t count = bits & RowWalk::kShort ? loop.last_count : loop.count;
    const int64_t alike = loop.last_sets ? count - 1 : count, period = periods_[level - 1];
    struct Before {
      uint64_t key = 0;
      int64_t cycles = 0, accesses = 0;
    };
    std::array<Before, kLongestPeriod> before;
    std::fill_n(before.begin(), period, Before{});
    RowsPassed all;
    bool skipped = false;
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) move(now, level - 1, 1);
      if (!skipped && i < alike) {
        Before& then = before[size_t(i % period)];
        const uint64_t id = key(now);
        if (i >= period && then.key == id) {
          const int64_t times = (alike - 1 - i) / period;
          all.cycles += times * (all.cycles - then.cycles);
          all.accesses += times * (all.accesses - then.accesses);
          i += times * period;
          skipped = true;
        }
        then = {id, all.cycles, all.accesses};
      }
      const uint8_t inside = i + 1 == count ? bits | loop.last_sets : bits;
      const RowsPassed one = run(level - 1, inside, now);
      all.cycles += one.cycles;
      all.accesses += one.accesses;
      now = one.found;
    }
    move(now, level - 1, 1 - count);
    all.found = now;
    return all;
  }

  struct Known {
    uint64_t id = 0;
    RowsPassed passed;
  };
  const RowWalk& w_;
  const int64_t line_;
  bool two_ = false;
  std::array<bool, 2> moves_{};  ///< from row to row
  std::array<int64_t, RowWalk::kMostLoops> periods_{};
  std::array<Known, size_t{1} << kKnownBits> known_;
};

}  // namespace

void RowWalk::add(const RowLoop& loop) {
  if (depth > 0 && loop.last_sets == 0) {
    RowLoop& inner = loops[depth - 1];
    const bool goes_on =
        loop.step[0] == inner.count * inner.step[0] && loop.step[1] == inner.count * inner.step[1];
    if (goes_on && inner.last_sets == 0 && inner.last_count == inner.count) {
      inner.count = inner.last_count = inner.count * loop.count;
      return;
    }
  }
  loops[depth++] = loop;
}

RowCosts RowWalk::costs() const { return RowFollower(*this).costs(); }

}  // namespace tilewright::cost
