#include "tilewright/graph/partition/arena.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/rng.h"

namespace tilewright::graph {
namespace {

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

void expect_sound(const std::vector<Lifetime>& pieces, const Arena& arena) {
  ASSERT_EQ(arena.offset.size(), pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(arena.offset[i] % 64, 0);
    EXPECT_GE(arena.offset[i], 0);
    EXPECT_LE(arena.offset[i] + pieces[i].bytes, arena.bytes);
    for (size_t j = 0; j < i; ++j) {
      if (!meet(pieces[i], pieces[j])) continue;
      EXPECT_TRUE(arena.offset[i] + pieces[i].bytes <= arena.offset[j] ||
                  arena.offset[j] + pieces[j].bytes <= arena.offset[i])
          << "pieces " << i << " and " << j;
    }
  }
}

/// Most bytes alive at once, moment by moment.
int64_t alive_at_most(const std::vector<Lifetime>& pieces) {
  int64_t most = 0;
  for (int t = 0; t <= 64; ++t) {
    int64_t alive = 0;
    for (const Lifetime& p : pieces)
      if (p.first <= t && t <= p.last) alive += (p.bytes + 63) / 64 * 64;
    most = std::max(most, alive);
  }
  return most;
}

/// The least arena, by placing the pieces in every order, each as low as it goes.
class ByForce {
 public:
  explicit ByForce(const std::vector<Lifetime>& pieces)
      : pieces_(pieces), offset_(pieces.size(), -1) {
    place(0, 0);
  }
  int64_t least() const { return least_; }

 private:
  int64_t lowest(size_t i) const {
    int64_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t j = 0; j < pieces_.size(); ++j) {
        const bool above = at >= offset_[j] + pieces_[j].bytes;
        const bool below = at + pieces_[i].bytes <= offset_[j];
        if (offset_[j] < 0 || !meet(pieces_[i], pieces_[j]) || above || below) continue;
        at = offset_[j] + pieces_[j].bytes;
        moved = true;
      }
    }
    return at;
  }
  void place(size_t count, int64_t size) {
    if (size >= least_) return;
    if (count == pieces_.size()) least_ = size;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (offset_[i] >= 0) continue;
      const int64_t at = lowest(i);
      offset_[i] = at;
      place(count + 1, std::max(size, at + pieces_[i].bytes));
      offset_[i] = -1;
    }
  }

  const std::vector<Lifetime>& pieces_;
  std::vector<int64_t> offset_;
  int64_t least_ = INT64_MAX;
};

std::vector<Lifetime> random_pieces(Rng& rng, int64_t count, int64_t steps, int64_t lines) {
  std::vector<Lifetime> pieces;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t a = rng.between(0, steps), b = rng.between(0, steps);
    pieces.push_back({64 * rng.between(1, lines), static_cast<int>(std::min(a, b)),
                      static_cast<int>(std::max(a, b))});
  }
  return pieces;
}

TEST(Arena, AgreesWithAllOrdersOfSmallInstances) {
  Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Lifetime> pieces = random_pieces(rng, rng.between(2, 7), 7, 6);
    const Arena arena = pack_arena(pieces);
    expect_sound(pieces, arena);
    EXPECT_TRUE(arena.optimal);
    EXPECT_EQ(arena.lower_bound, alive_at_most(pieces));
    EXPECT_EQ(arena.bytes, ByForce(pieces).least()) << "round " << round;
  }
}

TEST(ArenaSlow, ProvesThatTheBoundCannotBeReached) {
  const std::vector<Lifetime> pieces = {{256, 5, 6}, {256, 4, 6}, {256, 0, 1}, {192, 3, 6},
                                        {192, 1, 2}, {128, 1, 6}, {64, 3, 4},  {192, 2, 4},
                                        {192, 2, 3}, {128, 1, 2}};
  const Arena arena = pack_arena(pieces);
  expect_sound(pieces, arena);
  EXPECT_EQ(arena.lower_bound, 13 * 64);
  EXPECT_EQ(arena.bytes, ByForce(pieces).least());
  EXPECT_GT(arena.bytes, arena.lower_bound);
  EXPECT_TRUE(arena.optimal);
}

TEST(Arena, ReachesTheBoundOfPerfectPackings) {
  // A full rectangle of time and memory, cut at random: its height is the bound and reachable.
  Rng rng(11);
  for (int round = 0; round < 20; ++round) {
    struct Cut {
      int from, to;
      int64_t low, high;
    };
    std::vector<Cut> cuts = {{0, 40, 0, 40}};
    for (int n = 0; n < 15; ++n) {
      const auto i = static_cast<size_t>(rng.between(0, std::ssize(cuts) - 1));
      Cut& c = cuts[i];
      const bool in_time = rng.between(0, 1) == 1;
      if (in_time ? c.to - c.from < 2 : c.high - c.low < 2) continue;
      Cut other = c;
      if (in_time)
        c.to = other.from = static_cast<int>(rng.between(c.from + 1, c.to - 1));
      else
        c.high = other.low = rng.between(c.low + 1, c.high - 1);
      cuts.push_back(other);
    }
    std::vector<Lifetime> pieces;
    for (const Cut& c : cuts) pieces.push_back({64 * (c.high - c.low), c.from, c.to - 1});
    const Arena arena = pack_arena(pieces);
    expect_sound(pieces, arena);
    EXPECT_EQ(arena.bytes, 64 * 40) << "round " << round;
    EXPECT_TRUE(arena.optimal);
  }
}

TEST(Arena, GivesUpWithASoundPlanAndSaysSo) {
  Rng rng(5);
  int unproven = 0;
  for (int round = 0; round < 20; ++round) {
    const std::vector<Lifetime> pieces = random_pieces(rng, 60, 40, 1000);
    const Arena arena = pack_arena(pieces, 20);
    expect_sound(pieces, arena);
    EXPECT_GE(arena.bytes, arena.lower_bound);
    EXPECT_TRUE(arena.optimal || arena.bytes > arena.lower_bound);
    unproven += !arena.optimal;
  }
  EXPECT_GT(unproven, 0);
}

TEST(Arena, NothingNeedsNothing) {
  const Arena arena = pack_arena({});
  EXPECT_EQ(arena.bytes, 0);
  EXPECT_TRUE(arena.optimal);
}

TEST(Arena, SizesAreRoundedUpToLines) {
  const Arena arena = pack_arena({{1, 0, 3}, {65, 1, 2}});
  EXPECT_EQ(arena.lower_bound, 3 * 64);
  EXPECT_EQ(arena.bytes, 3 * 64);
}

}  // namespace
}  // namespace tilewright::graph
