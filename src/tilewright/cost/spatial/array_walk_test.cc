// Arrays of random rows: iterations that are passed over beside each one followed.
#include "tilewright/cost/spatial/array_walk.h"

#include <gtest/gtest.h>

#include "tilewright/cost/spatial/testing/cases.h"

namespace tilewright::cost {
namespace {

ArrayWalk drawn_walk(CaseDraw& draw) {
  ArrayWalk walk;
  RowWalk& rows = walk.rows;
  rows.word = draw.one_of({4, 8, 16, 32});
  rows.banks = draw.between(1, 8);
  for (size_t f : {0, 1}) {
    RowBytes& row = rows.streams[f];
    row.bytes = f == 1 && draw.below(3) == 0 ? 0 : draw.one_of({1, 4, 9, 16, 31, 64, 100});
    row.last = row.bytes > 0 ? draw.between(1, row.bytes) : 0;
    if (draw.below(8) == 0) row.fetches = draw.between(2, 8);
  }
  rows.depth = static_cast<size_t>(draw.between(1, 4));
  for (size_t level = 0; level < rows.depth; ++level) {
    RowLoop& loop = rows.loops[level];
    loop.count = loop.last_count = draw.one_of({1, 2, 5, 8, 8, 70, 300});
    for (int64_t& step : loop.step) step = draw.one_of({0, 1, 3, 4, 16, 48, 64, 1000});
    if (draw.below(3) == 0) loop.last_sets = static_cast<uint8_t>(draw.between(1, 3));
    walk.steps *= loop.count;
  }
  return walk;
}

/// The same rows; each one is followed, as of loops that are shorter at some places.
ArrayWalk followed_walk(ArrayWalk walk) {
  walk.rows.loops[walk.rows.depth - 1].last_sets |= RowWalk::kShort;
  return walk;
}

TEST(ArrayWalk, IterationsThatRepeatArePassedOver) {
  CaseDraw draw(41);
  spatial::Design design;
  spatial::Load load;
  load.axes[3] = {200, 0, 0, 1000, 9};
  load.axes[4] = {9, 0, 0, 1, 1};
  const LoadWalk writes(design, load);
  for (int cases = 0; cases < 400;) {
    const ArrayWalk walk = drawn_walk(draw);
    if (walk.steps > 30000) continue;
    ++cases;
    const int64_t most = draw.below(2) ? walk.steps : draw.between(1, walk.steps);
    const FollowedArray quick(walk, most), slow(followed_walk(walk), most);
    ASSERT_EQ(quick.cycles(), slow.cycles()) << cases;
    for (int place = 0; place < 5; ++place) {
      const int64_t after = draw.below(slow.cycles());
      const ArrayMeeting a = quick.meet(after, writes, 0, 400),
                         b = slow.meet(after, writes, 0, 400);
      ASSERT_EQ(a.cycles, b.cycles) << cases;
      ASSERT_EQ(a.late, b.late) << cases;
      ASSERT_EQ(a.written, b.written) << cases;
    }
  }
}

}  // namespace
}  // namespace tilewright::cost
