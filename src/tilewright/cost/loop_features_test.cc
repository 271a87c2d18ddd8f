#include "tilewright/cost/loop_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "tilewright/base/check.h"
#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/text.h"
#include "tilewright/schedule/step.h"

namespace tilewright::cost {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kProduct =
    R"(func product(A: f32[64,128], B: f32[128,256], out C: f32[64,256]) {
  for C.init.i in 64, C.init.j in 256 {
    block C.init(i: space 64 = C.init.i, j: space 256 = C.init.j) {
      C[i, j] = 0.0
    }
  }
  for C.i in 64, C.j in 256, C.k in 128 {
    block C(i: space 64 = C.i, j: space 256 = C.j, k: reduce 128 = C.k) {
      C[i, j] += A[i, k] * B[k, j]
    }
  }
}
)";

Func scheduled(std::string_view func, const schedule::Trace& trace) {
  const auto parsed = parse_func(func);
  TW_CHECK(parsed.has_value());
  const auto out = schedule::replay(*parsed, trace);
  TW_CHECK(out.has_value(), "{}", to_string(out.error()));
  return *out;
}

schedule::Trace tiled(int64_t lanes) {
  using namespace schedule;
  return {
      Split{"C.j", lanes}, Split{"C.i", 4}, Reorder{{"C.i.o", "C.j.o", "C.k", "C.i.i", "C.j.i"}},
      Parallel{"C.i.o"},   Unroll{"C.i.i"}, Vectorize{"C.j.i"}};
}

TEST(NestFacts, CountsLinesReuseAndStridesOfATiledProduct) {
  const std::vector<NestFact> nests = nest_facts(scheduled(kProduct, tiled(16)));
  ASSERT_EQ(nests.size(), 2u);
  const NestFact& main = nests[1];
  std::vector<int64_t> extents;
  for (const LoopFact& loop : main.loops) extents.push_back(loop.extent);
  EXPECT_THAT(extents, ElementsAre(16, 16, 128, 4, 16));
  EXPECT_EQ(main.loops[0].kind, ForKind::Parallel);
  EXPECT_EQ(main.loops[4].kind, ForKind::Vector);
  EXPECT_EQ(main.instances(), 64 * 256 * 128);
  EXPECT_EQ(main.instances(2), 128 * 4 * 16);
  ASSERT_EQ(main.accesses.size(), 3u);
  const AccessFact &c = main.accesses[0], &a = main.accesses[1], &b = main.accesses[2];
  EXPECT_TRUE(c.writes && c.reads && !a.writes);
  // Whole nest, one row tile, one tile, one step of it, one row, one element.
  EXPECT_THAT(c.touched, ElementsAre(64 * 1024, 4096, 256, 256, 64, 64));
  EXPECT_THAT(a.touched, ElementsAre(64 * 512, 2048, 2048, 256, 64, 64));
  EXPECT_THAT(b.touched, ElementsAre(128 * 1024, 128 * 1024, 128 * 64, 64, 64, 64));
  EXPECT_THAT(c.strides, ElementsAre(4 * 256, 16, 0, 256, 1));
  EXPECT_THAT(a.strides, ElementsAre(4 * 128, 0, 1, 128, 0));
  EXPECT_THAT(b.strides, ElementsAre(0, 16, 256, 0, 1));
}

TEST(NestFacts, SeesThroughFusedLoopsAndWindows) {
  schedule::Trace trace = tiled(16);
  trace.insert(trace.begin() + 3, schedule::Fuse{"C.i.o", "C.j.o"});
  trace[4] = schedule::Parallel{"C.i.o*C.j.o"};
  const NestFact fused = nest_facts(scheduled(kProduct, trace))[1];
  EXPECT_EQ(fused.loops[0].extent, 256);
  EXPECT_THAT(fused.accesses[0].touched, ElementsAre(64 * 1024, 256, 256, 64, 64));
  EXPECT_EQ(fused.accesses[1].strides[0], 0);  // the next tile is in the same rows

  const NestFact conv = nest_facts(scheduled(tilewright::testing::kConv, {}))[2];
  const AccessFact& image = conv.accesses[1];
  EXPECT_EQ(image.touched[4], 3 * 64);  // a window: 3 rows of 3
  EXPECT_EQ(image.touched[3], 4 * 3 * 64);
  EXPECT_EQ(image.strides[1], 11);  // down one row
  EXPECT_EQ(image.touched.size(), conv.loops.size() + 1);
}

TEST(LoopFeatures, AreAsManyForEverySchedule) {
  const size_t count = loop_feature_count();
  for (const std::string_view text :
       {kProduct, tilewright::testing::kMatmul, tilewright::testing::kConvScheduled}) {
    const std::vector<double> features = loop_features(scheduled(text, {}));
    EXPECT_EQ(features.size(), count);
    for (const double f : features) EXPECT_TRUE(std::isfinite(f));
  }
  EXPECT_EQ(loop_features(scheduled(kProduct, tiled(16))).size(), count);
  Func empty;
  empty.body = seq({});
  EXPECT_EQ(loop_features(empty).size(), count);
}

TEST(LoopFeatures, TellSchedulesApart) {
  const std::vector<double> wide = loop_features(scheduled(kProduct, tiled(16)));
  EXPECT_NE(wide, loop_features(scheduled(kProduct, tiled(8))));
  EXPECT_NE(wide, loop_features(scheduled(kProduct, {})));
  schedule::Trace no_unroll = tiled(16);
  no_unroll.erase(no_unroll.end() - 2);
  EXPECT_NE(wide, loop_features(scheduled(kProduct, no_unroll)));
}

TEST(LoopFeatures, TakeFarLessThanAMillisecond) {
  const Func func = scheduled(kProduct, tiled(16));
  double least = INFINITY;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    loop_features(func);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  RecordProperty("ms", std::to_string(least));
  EXPECT_LT(least, 0.5);
}

}  // namespace
}  // namespace tilewright::cost
