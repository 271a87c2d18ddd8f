#include "tilewright/cost/spatial/row_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tilewright::cost {
namespace {

/// docs/spatial-timing.md, 2, word for word: each row of each loop's iteration, one after the
/// other.
class EveryRow {
 public:
  explicit EveryRow(const RowWalk& walk) : walk_(walk) { descend(walk.depth, 0, {0, 0}); }
  int64_t accesses = 0;
  int64_t cycles = 0;  ///< of one stream alone: a row each, or as many as it has accesses

 private:
  void descend(size_t level, uint8_t bits, std::array<int64_t, 2> at) {
    if (level == 0) {
      const int64_t first = read(0, bits, at[0]);
      const int64_t second = walk_.streams[1].bytes ? read(1, bits, at[1]) : 0;
      accesses += first + second;
      cycles += std::max<int64_t>(1, first);
      return;
    }
    const RowLoop& loop = walk_.loops[level - 1];
    const int64_t count = bits & RowWalk::kShort ? loop.last_count : loop.count;
    for (int64_t i = 0; i < count; ++i) {
      descend(level - 1, uint8_t(i + 1 == count ? bits | loop.last_sets : bits), at);
      for (size_t f = 0; f < 2; ++f) at[f] += loop.step[f];
    }
  }

  int64_t read(size_t f, uint8_t bits, int64_t at) {
    const RowBytes& rows = walk_.streams[f];
    const int64_t line = walk_.word * walk_.banks;
    int64_t left = bits >> f & 1 ? rows.last : rows.bytes, count = 0;
    if (rows.fetches > 1)
      return std::max((left * rows.fetches + line - 1) / line,
                      (at % walk_.word + left + line - 1) / line);
    for (; left > 0; --left, ++at) {  // byte by byte
      if (kept_[f] <= at && at < kept_[f] + line) continue;
      kept_[f] = at / walk_.word * walk_.word;
      ++count;
    }
    return count;
  }

  const RowWalk& walk_;
  std::array<int64_t, 2> kept_{-100000, -100000};
};

RowWalk drawn(std::mt19937& random, bool two) {
  const auto below = [&](int count) { return int64_t(random() % unsigned(count)); };
  RowWalk walk;
  walk.word = 4 << below(5);
  walk.banks = 1 + below(8);
  for (size_t f = 0; f < (two ? 2U : 1U); ++f) {
    const int64_t bytes = 1 + below(40);
    walk.streams[f] = {bytes, 1 + below(int(bytes)), below(6) ? 1 : 1 + below(9)};
  }
  walk.depth = size_t(1 + below(4));
  for (size_t level = 0; level < walk.depth; ++level) {
    RowLoop& loop = walk.loops[level];
    loop.count = 2 + below(below(3) ? 6 : 40);
    loop.last_count = 1 + below(int(loop.count));
    for (size_t f = 0; f < (two ? 2U : 1U); ++f)
      loop.step[f] = below(4) ? below(90) : walk.streams[f].bytes;
    if (level > 0 && below(4) == 0)
      for (size_t f = 0; f < 2; ++f)
        loop.step[f] = walk.loops[level - 1].count * walk.loops[level - 1].step[f];
    if (below(3) == 0) loop.last_sets = uint8_t(1 + below(two ? 7 : 1));
  }
  return walk;
}

TEST(RowWalk, CountsWhatEveryRowTakes) {
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    const RowWalk walk = drawn(random, i % 2);
    const EveryRow every(walk);
    RowWalk fewer = walk;  // with loops that go on made one
    fewer.depth = 0;
    for (size_t level = 0; level < walk.depth; ++level) fewer.add(walk.loops[level]);
    const RowCosts costs = i % 3 ? fewer.costs() : walk.costs();
    ASSERT_EQ(costs.accesses, every.accesses) << "case " << i;
    if (i % 2 == 0) {
      ASSERT_EQ(costs.cycles, every.cycles) << "case " << i;
    }
    EXPECT_GE(costs.cycles + 16, costs.accesses);  // one access in a cycle, 8 rows ahead
  }
}

// The example of row_walk.h: in 16 rows of 9 bytes, 9 words.
TEST(RowWalk, RepeatsWhatWas) {
  RowWalk walk;
  walk.streams[0] = {9, 9, 1};
  walk.loops[0] = {16000, 16000, {9, 0}, 0};
  walk.depth = 1;
  EXPECT_EQ(walk.costs().accesses, 9000);
  EXPECT_EQ(walk.costs().cycles, 16000);
  // Another row 640 bytes further on, in turn: nothing stays.
  walk.loops[0] = {2, 2, {640, 0}, 0};
  walk.loops[1] = {16000, 16000, {9, 0}, 0};
  walk.depth = 2;
  EXPECT_EQ(walk.costs().accesses, 2 * 16000 * 3 / 2);
}

}  // namespace
}  // namespace tilewright::cost
