// What the ranking of tiles must say whatever the machine.
#include "tilewright/cost/tile_space.h"

#include <gtest/gtest.h>

#include "tilewright/cost/testing/contractions.h"

namespace tilewright::cost {
namespace {

/// Thirty-two registers of sixteen floats; load ports as fast as the multipliers.
hw::CpuTarget machine() {
  hw::CpuTarget target;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  target.cores = 2;
  target.rates.f32 = 112;  // one multiply-add of a vector in 0.29 ns
  target.rates.l1 = {224, 448};
  target.rates.l2 = {110, 220};
  target.rates.l3 = {90, 180};
  target.rates.dram = {30, 40};
  target.rates.fork_join_ns = 400;
  return target;
}

/// Y[ko, h, w, ki] += X[co, h, w, ci] * W[ko, co, ci, ki].
Contraction pointwise(int64_t inputs, int64_t outputs, int64_t height, int64_t width) {
  Contraction c;
  c.axes = {{"ko", outputs, false}, {"h", height, false}, {"w", width, false},
            {"ki", 16, false},      {"co", inputs, true}, {"ci", 16, true}};
  c.operands = {{{plain(4, inputs), plain(1, height), plain(2, width), plain(5, 16)}, 4, false},
                {{plain(0, outputs), plain(4, inputs), plain(5, 16), plain(3, 16)}, 4, true},
                {{plain(0, outputs), plain(1, height), plain(2, width), plain(3, 16)}, 4, false}};
  c.columns = 0, c.plane = 1, c.rows = 2, c.lanes = 3;
  return c;
}

TilePoint best(const Contraction& c, int threads = 1) {
  return rank_points(c, machine(), threads)[0].point;
}

TEST(TileSpaceTest, PointsFitTheRegistersAndAreSorted) {
  for (const int64_t width : {1, 5, 7, 13, 14, 17, 28, 55, 56, 112}) {
    const Contraction c = pointwise(16, 16, width, width);
    const std::vector<RankedPoint> points = rank_points(c, machine(), 2);
    ASSERT_FALSE(points.empty());
    double last = 0;
    for (const RankedPoint& p : points) {
      EXPECT_EQ(reject(c, p.point, machine()), "");
      EXPECT_LE(p.point.rows * p.point.plane * p.point.columns + p.point.columns + 1, 32);
      EXPECT_GE(p.time.total(), last);
      last = p.time.total();
    }
  }
}

TEST(TileSpaceTest, TapsInThePaddingCostNothing) {
  // Three taps, 12 apart, on rows of 28: of tiles of four pixels, the outer taps take four of
  // seven.
  Contraction c = pointwise(16, 16, 28, 28);
  c.axes.push_back({"s", 3, true});
  c.operands[0].indices[2].terms.push_back({6, 12, 1, 0});
  const TilePoint point{4, 4};
  const Prediction all = predict(c, point, machine(), 1);
  c.insides = {{2, 6, 1, 12, 12, 28}};
  const Prediction inside = predict(c, point, machine(), 1);
  EXPECT_NEAR(inside.compute, all.compute * (4 + 7 + 4) / 21, 1e-6 * all.compute);
  EXPECT_NEAR(inside.l1, all.l1 * (4 + 7 + 4) / 21, 1e-6 * all.l1);
  // Whole rows have pixels inside for each tap.
  EXPECT_NEAR(predict(c, {28, 1}, machine(), 1).compute,
              predict(pointwise(16, 16, 28, 28), {28, 1}, machine(), 1).compute * 3,
              0.05 * all.compute);
  EXPECT_NE(reject(c, {28, 1, 2}, machine()), "");
}

TEST(TileSpaceTest, RowsOfLargeWindowsHideTheirLatency) {
  // Y[h, w, c] += X[h + r, w + s, c] * W[r, s, c].
  Contraction c;
  c.axes = {{"h", 37, false}, {"w", 37, false}, {"c", 16, false}, {"r", 7, true}, {"s", 7, true}};
  c.operands = {
      {{plain(3, 7), plain(4, 7), plain(2, 16)}, 4, true},
      {{{{{0, 1, 1, 0}, {3, 1, 1, 0}}, 43}, {{{1, 1, 1, 0}, {4, 1, 1, 0}}, 43}, plain(2, 16)},
       4,
       false},
      {{plain(0, 37), plain(1, 37), plain(2, 16)}, 4, false}};
  c.lanes = 2, c.rows = 1, c.reuse = false;
  EXPECT_GE(best(c).rows, kChains);
  EXPECT_LE(best(c).rows, 14);  // beside seven weights there are no more registers
  hw::CpuTarget few = machine();
  few.vector_registers = 16;
  EXPECT_EQ(rank_points(c, few, 1)[0].point.rows, 4);
}

TEST(TileSpaceTest, ComposesExtentsWithoutThinRests) {
  // Loads cost as much as multiply-adds: two vectors per row share each broadcast.
  for (const int64_t width : {13, 14, 26, 28, 52, 55, 56, 104, 112}) {
    const TilePoint p = best(pointwise(16, 16, width, width));
    EXPECT_GE(p.columns, 2) << width;
    EXPECT_GE(p.rows * p.columns, 18) << width;
    const int64_t rest = width % p.rows;
    EXPECT_TRUE(rest == 0 || rest * p.columns >= 8) << width << " as tiles of " << p.rows;
  }
  const TilePoint seven = best(pointwise(32, 128, 7, 7));
  EXPECT_GE(seven.rows * seven.plane * seven.columns, 18) << "small images join rows";
}

TEST(TileSpaceTest, RowsThatCollideInTheFirstCacheAreFew) {
  EXPECT_LE(best(matmul(1024, 1024, 1024)).rows, 7);  // rows 4096 bytes apart
  EXPECT_GT(best(matmul(1024, 1024, 1008)).rows, 7);
}

TEST(TileSpaceTest, OneRowTakesManyVectors) {
  const TilePoint p = best(matmul(1, 4096, 4096));
  EXPECT_EQ(p.rows, 1);
  EXPECT_GE(p.columns, 4);
  EXPECT_GT(p.ahead, 0) << "weights that stream from memory are asked for early";
}

TEST(TileSpaceTest, ReasonsForWhatCannotBe) {
  const Contraction c = pointwise(4, 12, 56, 56);
  const hw::CpuTarget target = machine();
  EXPECT_NE(reject(c, {7, 4, 1, false, 0}, target), "") << "33 registers";
  EXPECT_EQ(reject(c, {14, 2, 1, false, 0}, target), "");
  EXPECT_NE(reject(c, {2, 8, 1, false, 0}, target), "") << "8 columns of 12";
  EXPECT_NE(reject(c, {57, 1, 1, false, 0}, target), "");
  EXPECT_NE(reject(c, {0, 1, 1, false, 0}, target), "");
  EXPECT_NE(reject(c, {4, 2, 2, false, 0}, target), "") << "4 of 56 is no whole row";
  Contraction exact = c;
  exact.fused = false;
  EXPECT_NE(reject(exact, {14, 2, 1, false, 0}, target), "") << "products need a register";
  hw::CpuTarget narrow = target;
  narrow.vector_registers = 16;
  EXPECT_NE(reject(c, {14, 2, 1, false, 0}, narrow), "");
}

TEST(TileSpaceTest, TimeGrowsWithWorkAndShrinksWithTheMachine) {
  const hw::CpuTarget target = machine();
  auto time = [&](const Contraction& c, const hw::CpuTarget& t, int threads) {
    return rank_points(c, t, threads)[0].time.total();
  };
  const Contraction small = pointwise(16, 16, 28, 28), more_inputs = pointwise(32, 16, 28, 28),
                    more_outputs = pointwise(16, 32, 28, 28), taller = pointwise(16, 16, 56, 28);
  const double base = time(small, target, 1);
  for (const Contraction* larger : {&more_inputs, &more_outputs, &taller}) {
    EXPECT_GT(time(*larger, target, 1), 1.8 * base);
    EXPECT_LT(time(*larger, target, 1), 2.3 * base);
  }
  EXPECT_LT(time(small, target, 2), 0.6 * base);
  // Never faster than the multipliers.
  EXPECT_GE(base, 2.0 * 256 * 256 * 28 * 28 / target.rates.f32);
  hw::CpuTarget faster = target;
  faster.rates.f32 *= 2;
  EXPECT_LT(time(small, faster, 1), base);
  faster = target;
  faster.rates.dram = {60, 80};
  EXPECT_LE(time(matmul(1, 4096, 4096), faster, 2), time(matmul(1, 4096, 4096), target, 2));
}

TEST(TileSpaceTest, ReadsThatArithmeticOutlastsCountAllTheSame) {
  const Contraction c = pointwise(64, 16, 14, 14);
  hw::CpuTarget slower = machine();
  slower.rates.l2 = {80, 160};
  const TilePoint point{14, 2, 1, true};
  const Prediction fast = predict(c, point, machine(), 1), slow = predict(c, point, slower, 1);
  EXPECT_EQ(fast.bound(), "compute");
  EXPECT_EQ(slow.bound(), "compute");
  EXPECT_GT(slow.total(), fast.total());
  EXPECT_LT(slow.total() - fast.total(), slow.l2 - fast.l2);
}

TEST(TileSpaceTest, LonePiecesLeaveNothingToTakeOver) {
  // Two rows of pixels: shared out as they are, or cut into the tiles they have.
  const Contraction c = pointwise(16, 4, 2, 28);
  TilePoint lone{14, 2, 1, false};
  lone.pieces = 1;
  TilePoint many = lone;
  many.pieces = 32;
  const Prediction a = predict(c, lone, machine(), 2), b = predict(c, many, machine(), 2);
  EXPECT_GT(a.join, b.join + 0.05 * b.compute);
  lone.pieces = 0;
  EXPECT_EQ(predict(c, lone, machine(), 2).join, b.join) << "the usual number";
}

TEST(TileSpaceTest, NamesTheResourceThatBinds) {
  EXPECT_EQ(rank_points(matmul(1, 8192, 8192), machine(), 2)[0].time.bound(), "dram");
  EXPECT_EQ(rank_points(pointwise(32, 32, 28, 28), machine(), 2)[0].time.bound(), "compute");
}

TEST(TileSpace, KeepsPartsOfVectorsApart) {
  // 24 columns are a vector and half of one: tiles of two vectors would be guarded in every step.
  Contraction c;
  c.axes = {{"i", 33, false}, {"j", 24, false}, {"l", 64, true}};
  const auto matrix = [](int rows, int columns, int64_t m, int64_t n) {
    return Operand{{{{{rows, 1, 1, 0}}, m}, {{{columns, 1, 1, 0}}, n}}};
  };
  c.operands = {matrix(0, 2, 33, 64), matrix(2, 1, 64, 24), matrix(0, 1, 33, 24)};
  c.lanes = 1, c.rows = 0;
  hw::CpuTarget target;
  target.vector_bytes = 64, target.vector_registers = 32;
  EXPECT_FALSE(reject(c, {11, 2, 1}, target).empty());
  EXPECT_TRUE(reject(c, {11, 1, 1}, target).empty());
  c.axes[1].extent = 40;
  EXPECT_FALSE(reject(c, {8, 3, 1}, target).empty());
  EXPECT_TRUE(reject(c, {11, 2, 1}, target).empty());
}

TEST(UsualAhead, IsAsLongForTilesOfAllSizes) {
  // Steps of few accumulators are short: more of them pass until memory answers.
  EXPECT_EQ(usual_ahead({14, 2, 1}), 32);
  EXPECT_EQ(usual_ahead({7, 2, 2}), 32);
  EXPECT_EQ(usual_ahead({4, 4, 1}), 64);
  EXPECT_EQ(usual_ahead({4, 2, 1}), 128);
  EXPECT_EQ(usual_ahead({1, 1, 1}), 128);
  // What long rows of vectors ask for at a time stays in L1.
  EXPECT_EQ(usual_ahead({1, 8, 1}), 32);
}

TEST(TileSpaceTest, WorkersThatTakePartsOfRowsMeetInCacheLines) {
  Contraction c = pointwise(4, 28, 1, 49);
  const TilePoint rows{13, 2, 1, true, 32}, columns{13, 2, 1, false, 32}, lines{16, 1, 1, true, 32};
  const auto join = [&](const TilePoint& point) { return predict(c, point, machine(), 2).join; };
  const double before = join(rows), by_columns = join(columns), by_lines = join(lines);
  // A copy leaves one row of pixels for each of 448 channels.
  const auto left_by_copy = [](int64_t pixels) {
    return Operand{{{{{0, 16}, {3, 1}}, 448}, plain(2, pixels)}, 4, false};
  };
  c.left = left_by_copy(49);
  EXPECT_NEAR(join(rows) - before, 448 * kMetLineNs, 1);
  EXPECT_GT(join(lines) - by_lines, 1);
  EXPECT_LE(join(columns), by_columns);
  EXPECT_NEAR(predict(c, rows, machine(), 1).join, 0, 1e-9);
  c.left = left_by_copy(48);  // rows, and parts of 16 of their pixels, are whole lines
  EXPECT_NEAR(join(lines), by_lines, 1);
  EXPECT_GT(join(rows) - before, 1);
}

TEST(TileSpaceTest, WorkersWithoutPiecesWait) {
  const Contraction c = pointwise(64, 1, 1, 1);  // one tile: nothing to share
  EXPECT_GE(rank_points(c, machine(), 8)[0].time.total(),
            rank_points(c, machine(), 1)[0].time.total());
}

TEST(TileSpaceTest, DescribesPoints) {
  EXPECT_EQ(describe({7, 2, 2, false, 0}), "14x2 vectors");
  EXPECT_EQ(describe({14, 2, 1, true, 32}), "14x2 vectors, rows outside, fetched 32 steps ahead");
}

}  // namespace
}  // namespace tilewright::cost
