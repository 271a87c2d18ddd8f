// The time model for GPUs against closed forms worked out by hand, and against counting.
#include "tilewright/cost/gpu_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tilewright/cost/gpu_sum.h"
#include "tilewright/cost/testing/contractions.h"

namespace tilewright::cost {
namespace {

/// Two units of 32 lanes; every resource but the one that a test is about costs nothing.
hw::GpuTarget device() {
  hw::GpuTarget target;
  target.max_threads = 256;
  target.warp = 32;
  target.units = 2;
  target.unit_threads = 512;
  target.unit_blocks = 8;
  target.shared_bytes = 16 << 10;
  target.unit_shared_bytes = 32 << 10;
  target.registers = 255;
  target.unit_registers = 64 << 10;
  target.l2_bytes = 64 << 20;
  target.rates.f32 = target.rates.shared = target.rates.l2 = target.rates.dram = 1e30;
  target.rates.launch_ns = target.rates.latency_ns = target.rates.sync_ns = 0;
  return target;
}

/// C[m, n] += A[m, k] * B[k, n].
Contraction product(int64_t m, int64_t n, int64_t k) {
  Contraction c;
  c.axes = {{"m", m, false}, {"n", n, false}, {"k", k, true}};
  c.operands = {{{plain(0, m), plain(2, k)}, 4, false},
                {{plain(2, k), plain(1, n)}, 4, false},
                {{plain(0, m), plain(1, n)}, 4, false}};
  return c;
}

/// Threads 8 x 16, 4 x 4 each, 16 steps: tiles of 32 x 64.
GpuBlocking blocking() {
  GpuBlocking b;
  b.axes = {{8, 4, 1}, {16, 4, 1}, {1, 16, 1}};
  return b;
}

GpuPrediction predict(const Contraction& c, const hw::GpuTarget& target,
                      const GpuBlocking& b = blocking()) {
  const auto prediction = GpuModel(c, target).predict(b);
  EXPECT_TRUE(prediction);
  return prediction.value_or(GpuPrediction{});
}

TEST(GpuModel, ArithmeticOfWholeWaves) {
  hw::GpuTarget target = device();
  target.rates.f32 = 128;  // 32 multiply-adds of each unit in a ns
  target.rates.sync_ns = 1e-9;
  const GpuPrediction p = predict(product(256, 512, 1024), target);
  EXPECT_EQ(p.threads, 128);
  EXPECT_EQ(p.blocks, 8 * 8);
  EXPECT_EQ(p.shared_bytes, (32 * 16 + 16 * 64) * 4);
  EXPECT_EQ(p.registers, 24 + 16 + 4 + 4);
  EXPECT_EQ(p.resident, 4);  // of 512 threads; 32 KiB hold 5
  EXPECT_DOUBLE_EQ(p.waves, 8);
  // Per term: 16 multiply-adds, 4 + 4 loads; per round of 16: (512 + 1024) / 4 copies of 10 slots.
  const double slots = 128.0 * 16 * (16 + 8) + 10 * (512 + 1024) / 4.0;
  EXPECT_DOUBLE_EQ(p.compute, 64 * 64 / 2.0 * slots / 32);
  EXPECT_EQ(p.bound(), "compute");
  EXPECT_NEAR(p.total, p.compute + 0.1 * p.latency, 1);
}

TEST(GpuModel, TheLastWaveTakesAsLongAsItsFullestUnit) {
  hw::GpuTarget target = device();
  target.rates.f32 = 128;
  const auto time = [&](int64_t columns) {
    return predict(product(32, 64 * columns, 1024), target).compute;
  };
  const double block = time(1);  // alone on a unit
  EXPECT_DOUBLE_EQ(time(2), block);
  EXPECT_DOUBLE_EQ(time(3), 2 * block);
  EXPECT_DOUBLE_EQ(time(8), 4 * block);  // one wave of 2 units x 4
  EXPECT_DOUBLE_EQ(time(9), 5 * block);  // and one block more
  EXPECT_DOUBLE_EQ(time(17), 9 * block);
  EXPECT_DOUBLE_EQ(time(18), 9 * block);
}

TEST(GpuModel, PartialTilesCostWholeOnes) {
  hw::GpuTarget target = device();
  target.rates.f32 = 128;
  EXPECT_DOUBLE_EQ(predict(product(36, 68, 64), target).compute,
                   predict(product(64, 128, 64), target).compute);
  // A step beyond the last term is tested.
  const double whole = 128.0 * 16 * (16 + 8), copies = 10 * (512 + 1024) / 4.0;
  EXPECT_DOUBLE_EQ(
      predict(product(64, 64, 60), target).compute / predict(product(64, 64, 64), target).compute,
      (whole + 128 * 16 * 2 + copies) / (whole + copies));
}

TEST(GpuModel, SharedMemoryIsReadInRowsOfAWarp) {
  hw::GpuTarget target = device();
  target.rates.shared = 2;  // of each unit: one byte per ns
  // A warp is a patch of 4 x 8 threads: both loads take a row of 32 words, 4 warps in a block.
  const double staged = (32 * 16 + 16 * 64) * 4;
  const double round = 16 * 4 * (4 + 4) * 128.0 + staged;
  EXPECT_DOUBLE_EQ(predict(product(32, 64, 64), target).shared, 4 * round);
  // Loads of 4 elements side by side: 8 x 4 are one row.
  GpuBlocking wide = blocking();
  wide.axes[1].vector = 4;
  EXPECT_DOUBLE_EQ(predict(product(32, 64, 64), target, wide).shared,
                   4 * (16 * 4 * (4 * 128.0 + 1 * 128.0) + staged));
  // In a block of 4 x 32 threads a warp lies in a row: 32 x 4 elements take four turns.
  wide.axes[0] = {4, 8, 1};
  wide.axes[1] = {32, 4, 4};
  EXPECT_DOUBLE_EQ(predict(product(32, 128, 64), target, wide).shared,
                   4 * (16 * 4 * (8 * 128.0 + 1 * 512.0) + (32 * 16 + 16 * 128) * 4));
}

TEST(GpuModel, RoundsWaitForMemoryUnlessSeveralAreInFlight) {
  hw::GpuTarget target = device();
  target.rates.latency_ns = 600;
  target.rates.sync_ns = 20;
  target.shared_bytes = 32 << 10;
  const Contraction c = product(32, 64, 16 * 10);
  const double steps = 16 * 24 * 0.6;  // instructions of one thread, one after the other
  EXPECT_DOUBLE_EQ(predict(c, target).latency, 10 * (600 + 2 * 20 + steps));
  GpuBlocking deep = blocking();
  deep.depth = 3;
  EXPECT_DOUBLE_EQ(predict(c, target, deep).latency, 600 + 10 * 300.0);
  EXPECT_EQ(predict(c, target, deep).shared_bytes, 3 * predict(c, target).shared_bytes);
  // What a block fetches alone does not hide either.
  target.rates.l2 = 2;
  EXPECT_DOUBLE_EQ(predict(c, target).latency, 10 * (600 + 6144 + 2 * 20 + steps));
  EXPECT_DOUBLE_EQ(predict(c, target, deep).latency, 600 + 6144 + 10 * 300.0);
  target.rates.l2 = 1e30;
  // Blocks beside each other wait together.
  EXPECT_DOUBLE_EQ(predict(product(64, 256, 160), target).latency, predict(c, target).latency);
}

TEST(GpuModel, FewThreadsWaitLongerForTheirCopies) {
  hw::GpuTarget target = device();
  target.rates.latency_ns = 500;
  target.shared_bytes = 32 << 10;
  GpuBlocking few;
  few.axes = {{1, 8, 1}, {8, 8, 1}, {1, 64, 1}};
  // 8 x 64 + 64 x 64 elements in vectors of 4, by a warp of 32 threads, 8 at once.
  const double waits = std::ceil((8 * 64 + 64 * 64) / 4.0 / 32 / 8);
  EXPECT_DOUBLE_EQ(predict(product(8, 64, 64), target, few).latency,
                   waits * 500 + 64 * (64 + 16) * 0.6);
}

TEST(GpuModel, EachLimitOfAUnitBinds) {
  const Contraction c = product(1024, 1024, 1024);
  const auto resident = [&](auto change) {
    hw::GpuTarget target = device();
    change(target);
    const auto p = GpuModel(c, target).predict(blocking());
    return p ? p->resident : 0;
  };
  EXPECT_EQ(resident([](auto& t) { t.unit_blocks = 2; }), 2);
  EXPECT_EQ(resident([](auto& t) { t.unit_threads = 400; }), 3);
  EXPECT_EQ(resident([](auto& t) { t.unit_shared_bytes = 13000; }), 2);
  EXPECT_EQ(resident([](auto& t) { t.unit_registers = 48 * 128 * 3 + 1; }), 3);
  EXPECT_EQ(resident([](auto& t) { t.max_threads = 127; }), 0);
  EXPECT_EQ(resident([](auto& t) { t.shared_bytes = 6143; }), 0);
  EXPECT_EQ(resident([](auto& t) { t.registers = 47; }), 0);
  EXPECT_EQ(resident([](auto& t) { t.unit_registers = 48 * 128 - 1; }), 0);
}

/// Y[o, h, w] += X[c, 2 h + r, w + s] * W[o, c, r, s].
Contraction convolution() {
  Contraction c;
  c.axes = {{"o", 32, false}, {"h", 8, false}, {"w", 16, false},
            {"c", 12, true},  {"r", 3, true},  {"s", 3, true}};
  c.operands = {
      {{plain(3, 12), {{{1, 2, 1, 0}, {4, 1, 1, 0}}, 17}, {{{2, 1, 1, 0}, {5, 1, 1, 0}}, 18}},
       4,
       false},
      {{plain(0, 32), plain(3, 12), plain(4, 3), plain(5, 3)}, 4, false},
      {{plain(0, 32), plain(1, 8), plain(2, 16)}, 4, false}};
  return c;
}

TEST(GpuModel, StagesWhatATileOfAConvolutionTouches) {
  GpuBlocking b;
  b.axes = {{8, 2, 1}, {2, 1, 1}, {8, 1, 1}, {1, 4, 1}, {1, 3, 1}, {1, 3, 1}};
  // Counted: rows and columns that 2 x 8 results read through a 3 x 3 window.
  std::set<std::pair<int, int>> places;
  for (int h = 0; h < 2; ++h)
    for (int w = 0; w < 8; ++w)
      for (int r = 0; r < 3; ++r)
        for (int s = 0; s < 3; ++s) places.emplace(2 * h + r, w + s);
  const auto image = static_cast<int64_t>(4 * places.size()), weights = int64_t{16} * 4 * 9;
  const GpuPrediction p = predict(convolution(), device(), b);
  EXPECT_EQ(p.shared_bytes, 4 * (image + weights));
  EXPECT_EQ(p.blocks, 2 * 4 * 2);
  // Fetched in sectors of 32 bytes: 10 of 18 columns are 2 sectors; weights are read whole rows.
  hw::GpuTarget target = device();
  target.rates.l2 = 1;
  const double round = 4.0 * 5 * 2 * 32 + static_cast<double>(weights) * 4;
  EXPECT_DOUBLE_EQ(predict(convolution(), target, b).l2, 16 * 3 * round + 32 * 8 * 16 * 4);
}

TEST(GpuModel, WhatFitsTheCacheIsFetchedOnce) {
  hw::GpuTarget target = device();
  target.rates.dram = 1;
  const double once = 4.0 * (256 * 1024 + 1024 * 512 + 256 * 512);
  EXPECT_DOUBLE_EQ(predict(product(256, 512, 1024), target).dram, once);
}

TEST(GpuModel, WavesFetchAgainWhatDoesNotFit) {
  hw::GpuTarget target = device();
  target.rates.dram = 1;
  target.l2_bytes = 1 << 20;
  const int64_t m = 256, n = 512, k = 1024;
  // Counted: 8 x 8 blocks, n moving first, in waves of 8: panels that each wave reads.
  double bytes = 4.0 * static_cast<double>(m * n);
  for (int wave = 0; wave < 8; ++wave) {
    std::set<int> rows, columns;
    for (int block = wave * 8; block < wave * 8 + 8; ++block)
      rows.insert(block / 8), columns.insert(block % 8);
    bytes +=
        4.0 * static_cast<double>(k) * static_cast<double>(rows.size() * 32 + columns.size() * 64);
  }
  EXPECT_DOUBLE_EQ(predict(product(m, n, k), target).dram, bytes);
}

TEST(GpuModel, PartsFillADeviceAndCostASecondKernel) {
  hw::GpuTarget target = device();
  target.rates.f32 = 128;
  target.rates.launch_ns = 100;
  target.rates.l2 = 10;
  const Contraction c = product(32, 64, 4096);
  const GpuPrediction whole = predict(c, target);
  GpuBlocking b = blocking();
  b.splits = 8;
  const GpuPrediction parts = predict(c, target, b);
  EXPECT_EQ(whole.blocks, 1);
  EXPECT_EQ(parts.blocks, 8);
  EXPECT_DOUBLE_EQ(parts.compute, whole.compute / 2);  // 2 units
  EXPECT_DOUBLE_EQ(whole.launch, 100);
  EXPECT_DOUBLE_EQ(parts.launch, 200 + 9 * 32 * 64 * 4 / 10.0);
}

TEST(GpuModel, FasterDevicesAreNeverSlower) {
  for (const hw::GpuTarget& target : hw::all_gpu_targets()) {
    const Contraction c = product(1000, 700, 333);
    const auto base = GpuModel(c, target).predict(blocking());
    if (!base) continue;
    for (double hw::GpuRates::* rate :
         {&hw::GpuRates::f32, &hw::GpuRates::shared, &hw::GpuRates::l2, &hw::GpuRates::dram}) {
      hw::GpuTarget faster = target;
      faster.rates.*rate *= 2;
      EXPECT_LE(GpuModel(c, faster).predict(blocking())->total, base->total) << target.name;
    }
    EXPECT_GE(base->total,
              std::max({base->compute, base->shared, base->l2, base->dram, base->latency}) * 0.999);
  }
}

TEST(GpuSum, ThreadsThatShareTermsShortenLongSums) {
  hw::GpuTarget target = device();
  target.rates.latency_ns = 400;
  GpuSum sum;
  sum.results = 4;
  sum.terms = 1 << 16;
  sum.bytes = 4 * 4 * 65536.0;
  sum.loads = 1;
  const double alone = *predict_gpu_sum(sum, 1, 0, target);
  const double shared = *predict_gpu_sum(sum, 128, 1, target);
  EXPECT_DOUBLE_EQ(alone, 65536 / 4.0 * 400);
  EXPECT_LT(shared, alone / 50);
  EXPECT_FALSE(predict_gpu_sum(sum, 256, 2, target));  // threads of a block
  target.rates.launch_ns = 5000;
  EXPECT_DOUBLE_EQ(*predict_gpu_sum(sum, 1, 0, target), alone + 5000);
}

}  // namespace
}  // namespace tilewright::cost
