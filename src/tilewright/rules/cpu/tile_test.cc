// How threads share out what is left where tiles do not fill a result.
#include "tilewright/rules/cpu/tile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tilewright/ir/text.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/rules/cpu/tile_padding.h"

namespace tilewright::rules {
namespace {

hw::CpuTarget target() {
  hw::CpuTarget target;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  return target;
}

/// The schedule at `point` for two threads of a machine with wide vectors.
std::string schedule_at(const std::string& text, const cost::TilePoint& point) {
  const auto func = parse_func(text);
  EXPECT_TRUE(func) << to_string(func.error());
  const auto trace = trace_at(*func, point, target(), 2);
  EXPECT_TRUE(trace) << to_string(trace.error());
  return trace ? schedule::print(*trace) : "";
}

TEST(Tile, ThreadsShareOutRowsOfEachPartOfTheColumns) {
  // Blocks of rows, within them a whole column and a partial one.
  const std::string steps = schedule_at(
      R"(func f(const W: f32[1984,88], X: f32[88,121], const B: f32[1984,1], out Y: f32[1984,121]) {
  alloc S: f32[1984,121]
  for i in 1984, j in 121 {
    block S.init(m: space 1984 = i, n: space 121 = j) {
      S[m, n] = 0.0
    }
  }
  for i1 in 1984, j1 in 121, k in 88 {
    block S(m: space 1984 = i1, n: space 121 = j1, r: reduce 88 = k) {
      S[m, n] += W[m, r] * X[r, n]
    }
  }
  for i2 in 1984, j2 in 121 {
    block Y(m: space 1984 = i2, n: space 121 = j2) {
      Y[m, n] = max(S[m, n] + B[m, 0], 0.0)
    }
  }
})",
      {6, 4, 1, false, 0, 992});
  EXPECT_THAT(steps, testing::HasSubstr("parallel(loop=i1.o.i@0@0)"));
  EXPECT_THAT(steps, testing::HasSubstr("parallel(loop=i1.o.i@0@1)"));
  EXPECT_THAT(steps,
              testing::Not(testing::HasSubstr("parallel(loop=j1.o")));  // one for each thread
}

/// A product on channel blocks whose copy out of them has so many channels, with an activation
/// before it or without.
std::string copied_out(int channels, bool activated) {
  const char* value = activated ? "T[n1, c1 / 16, w1, c1 % 16]" : "S[n1, c1 / 16, w1, c1 % 16]";
  return fmt::format(R"(func f(X: f32[1,2,27,16], const W: f32[6,2,16,16], out Y: f32[1,{0},27]) {{
  alloc S: f32[1,6,27,16]
  alloc T: f32[1,6,27,16]
  for a in 1, b in 6, c in 27, d in 16 {{
    block S.init(n1: space 1 = a, o1: space 6 = b, w1: space 27 = c, i1: space 16 = d) {{
      S[n1, o1, w1, i1] = 0.0
    }}
  }}
  for n in 1, o in 6, w in 27, i in 16, p in 2, q in 16 {{
    block S(n1: space 1 = n, o1: space 6 = o, w1: space 27 = w, i1: space 16 = i, p1: reduce 2 = p, q1: reduce 16 = q) {{
      S[n1, o1, w1, i1] += X[n1, p1, w1, q1] * W[o1, p1, q1, i1]
    }}
  }}
  {1}
  for e in 1, f in {0}, g in 27 {{
    block Y(n1: space 1 = e, c1: space {0} = f, w1: space 27 = g) {{
      Y[n1, c1, w1] = {2}
    }}
  }}
}})",
                     channels,
                     activated ? "for s in 1, t in 6, u in 27, v in 16 { block T(n1: space "
                                 "1 = s, o1: space 6 = t, w1: space 27 = u, i1: space 16 = "
                                 "v) { T[n1, o1, w1, i1] = max(S[n1, o1, w1, i1], 0.0) } }"
                               : "",
                     value);
}

TEST(Tile, OnlyTheLastBlockOfChannelsLeavesSomeOut) {
  for (const bool activated : {false, true})
    for (const int channels : {88, 96}) {
      const std::string steps = schedule_at(copied_out(channels, activated), {14, 2, 1, false, 0});
      const bool cut = steps.find("cut(loop=o.o, parts=[2, 1])") != std::string::npos;
      EXPECT_EQ(cut, channels == 88) << activated << "\n" << steps;
    }
}

TEST(Tile, PlanesOfFewFiltersArePaddedStripByStrip) {
  // Lanes run along the rows of the plane. All of it padded is 52 KB on 58 rows, 13 MB on 226.
  const auto steps = [](int64_t channels, int64_t size, int threads) {
    const Func func = func_of({"",
                               "Conv",
                               {{1, channels, size, size}, {3, channels, 3, 3}},
                               {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}});
    return schedule::print(default_trace(func, target(), threads));
  };
  using testing::HasSubstr, testing::Not;
  EXPECT_THAT(steps(4, 56, 2), HasSubstr("compute_at(block=conv_pad, loop="));
  EXPECT_THAT(steps(4, 56, 1), Not(HasSubstr("compute_at(block=conv_pad")));  // one strip: all
  EXPECT_THAT(steps(64, 224, 1), HasSubstr("compute_at(block=conv_pad, loop="));
}

TEST(Tile, FarReachingWindowsArePaddedOnce) {
  const Func func = func_of({"",
                             "Conv",
                             {{1, 64, 78, 7}, {7, 64, 6, 6}},
                             {{"dilations", std::vector<int64_t>{15, 15}},
                              {"pads", std::vector<int64_t>{37, 37, 37, 37}}}});
  EXPECT_THAT(schedule::print(default_trace(func, target(), 2)),
              testing::Not(testing::HasSubstr("compute_at(block=conv_pad")));
}

TEST(Tile, StripsOfTiles) {
  const int64_t l2 = 1 << 20, mb = 1 << 20;
  // The largest that fits half of L2, in whole tiles.
  EXPECT_EQ(rows_of_strip({224, 4, 2, 224, 1, 13 * mb}, 2, l2), 8);
  EXPECT_EQ(rows_of_strip({56, 4, 2, 56, 1, mb / 16}, 2, l2), 28);
  EXPECT_EQ(rows_of_strip({56, 1, 2, 56, 1, mb / 16}, 1, l2), 56);
  // Two threads: seven rows and six, where nothing fits; not three strips.
  EXPECT_EQ(rows_of_strip({13, 1, 5, 13, 1, 3 * mb}, 2, l2), 7);
  // Of those that fit, the one that shares out best: 55 and 54 rows, not 61 and 48.
  EXPECT_EQ(rows_of_strip({109, 1, 3, 109, 1, mb / 16}, 2, l2), 55);
  // Channel blocks: no more rows than share out well, unless windows reach far beyond them.
  EXPECT_EQ(rows_of_strip({109, 1, 3, most_strip_rows(3), 1, mb / 16}, 2, l2), 11);
  EXPECT_EQ(rows_of_strip({51, 1, 11, most_strip_rows(11), 1, mb / 2}, 2, l2), 26);
  // Eight rows and seven: strips of 14 would leave one row to the second thread.
  EXPECT_EQ(rows_of_strip({15, 1, 2, most_strip_rows(2), 1, mb / 16}, 2, l2), 8);
  // A group's plane each.
  EXPECT_EQ(rows_of_strip({30, 2, 2, 30, 8, 2 * mb}, 2, l2), 30);
  // The whole plane, although no tile divides it.
  EXPECT_EQ(rows_of_strip({6, 4, 2, 14, 13, mb / 4}, 2, l2), 6);
  // A window that reaches 75 rows further: every strip of seven would pad 82.
  EXPECT_EQ(rows_of_strip({77, 1, 75, 77, 1, 11 * mb}, 2, l2), 0);
  // Too few rows to share: neighbours would pad the same.
  EXPECT_EQ(rows_of_strip({3, 1, 2, 3, 1, mb}, 2, l2), 0);
}

TEST(Tile, TheModelKnowsWhereACopyWritesWhatTheSumLeaves) {
  for (const bool activated : {false, true}) {
    const auto main = main_contraction(*parse_func(copied_out(88, activated)), target(), 2);
    ASSERT_TRUE(main && main->left);
    const std::vector<cost::Index>& written = main->left->indices;  // n, c, w
    ASSERT_EQ(written.size(), 3u);
    std::map<std::string, int64_t> channel;
    for (const cost::IndexTerm& term : written[1].terms)
      channel[main->axes[static_cast<size_t>(term.axis)].name] = term.coefficient;
    EXPECT_EQ(channel, (std::map<std::string, int64_t>{{"o", 16}, {"i", 1}}));
    ASSERT_EQ(written[2].terms.size(), 1u);
    EXPECT_EQ(main->axes[static_cast<size_t>(written[2].terms[0].axis)].name, "w");
  }
}

}  // namespace
}  // namespace tilewright::rules
