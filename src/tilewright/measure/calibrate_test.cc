#include "tilewright/measure/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/interp/interp.h"
#include "tilewright/measure/probes.h"

namespace tilewright::measure {
namespace {

using ::testing::HasSubstr;

/// A machine at 2.78 GHz with 64-byte vectors, by clocks that may err; bursts of 43 us.
struct CalibrateFakeMachine {
  double wall_now = 100, own_now = 1;
  int64_t bursts = 0;
  int lose_every = 0;       ///< the thread's clock loses 30 us in one of so many bursts
  int interrupt_every = 0;  ///< another program has the core for 3 ms in one of so many
  double seconds = 0.2;     ///< of a reading
  double l3_all = 160;
  double tile_peak = 177.9;  ///< what tiles are a share of

  Clocks clocks() {
    return {[this] { return wall_now; }, [this] { return own_now; }};
  }
  BurstReading read(double rate) {
    constexpr double kBurstSeconds = 43e-6;
    const Clocks mine = clocks();
    return read_bursts(mine, 1e9 * kBurstSeconds * rate, seconds, [&] {
      return timed(mine, [&] {
        wall_now += kBurstSeconds, own_now += kBurstSeconds;
        if (lose_every > 0 && ++bursts % lose_every == 0) own_now -= 30e-6;
        if (interrupt_every > 0 && ++bursts % interrupt_every == 0) wall_now += 3e-3;
      });
    });
  }
  Probes probes() {
    Probes probes;
    probes.now = [this] { return wall_now; };
    probes.peak = [this](DType dtype) {
      return read(dtype == DType::F32 ? 177.9 : dtype == DType::BF16 ? 355.8 : 711.6);
    };
    probes.clock = [this] { return read(2.78); };
    probes.fork_join = [this] { return read(1.0 / 400); };
    probes.memory = [this](int cores, int64_t bytes) {
      if (bytes <= 16 << 10) return read(340.0 * cores);
      if (bytes <= 512 << 10) return read(150.0 * cores);
      if (bytes <= 8 << 20) return read(cores == 1 ? 80 : l3_all);
      return read(cores == 1 ? 30 : 40);
    };
    probes.tiles = {{1, 1, DType::F32}, {14, 2, DType::F32}};
    probes.tile = [this](const ProbeTile& tile) -> Result<TileReading> {
      wall_now += 0.05;
      const double share = tile.rows == 1 ? 0.12 : 0.99;
      return TileReading{share, share * tile_peak};
    };
    return probes;
  }
};

hw::CpuTarget fake_target() {
  hw::CpuTarget target = *hw::find_target("x86-64-v4");
  target.features.insert(target.features.end(), {"+avx512bf16", "+avx512vnni"});
  std::sort(target.features.begin(), target.features.end());
  target.cores = 2;
  target.l1_bytes = 32 << 10, target.l2_bytes = 1 << 20, target.l3_bytes = 32 << 20;
  return target;
}

TEST(CalibrateSlow, AClockThatLosesTimeDoesNotChangeWhatIsKept) {
  const hw::CpuTarget target = fake_target();
  CalibrateFakeMachine machine;
  machine.lose_every = 1000;
  machine.seconds = 0.03;  // some 9000 bursts in all
  for (int i = 0; i < 200; ++i) {
    const auto rates = calibrate(target, machine.probes(), {});
    ASSERT_TRUE(rates);
    ASSERT_NEAR(rates->f32, 177.9, 0.02 * 177.9);
    ASSERT_NEAR(rates->int8, 711.6, 0.02 * 711.6);
    ASSERT_TRUE(rates->assumed.empty());
  }
}

TEST(Calibrate, WhatABusyMachineLeavesIsKeptInTime) {
  CalibrateFakeMachine machine;
  machine.interrupt_every = 2;
  const double start = machine.wall_now;
  const auto rates = calibrate(fake_target(), machine.probes(), {});
  ASSERT_TRUE(rates);
  EXPECT_TRUE(rates->measured);
  EXPECT_NEAR(rates->f32, 177.9, 0.05 * 177.9);
  EXPECT_LT(machine.wall_now - start, 20);

  machine.interrupt_every = 1;
  const auto none = calibrate(fake_target(), machine.probes(), {});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->measured);
  EXPECT_GT(none->f32, 0) << "typical";
}

TEST(Calibrate, ContradictionsAreAssumedAndNotKept) {
  CalibrateFakeMachine machine;
  machine.l3_all = 40;
  const auto rates = calibrate(fake_target(), machine.probes(), {});
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->assumed, std::vector<std::string>{"l3"});
  EXPECT_EQ(hw::contradiction(*rates, 64, 2, 2).text, "");
  EXPECT_NEAR(rates->f32, 177.9, 0.01);

  CalibrateFakeMachine other;
  other.tile_peak = 120;
  EXPECT_FALSE(calibrate(fake_target(), other.probes(), {})->measured);
}

TEST(Calibrate, TilesBelowThePeakShowOtherWork) {
  hw::CpuRates rates;
  EXPECT_EQ(disturbed(rates), "");  // no tiles, no witness
  rates.tiles = {{DType::F32, 1, 1, 0.12, 21}, {DType::F32, 14, 2, 0.99, 176}};
  EXPECT_EQ(disturbed(rates), "");
  rates.tiles = {
      {DType::F32, 1, 1, 0.12, 21}, {DType::F32, 14, 2, 0.78, 140}, {DType::I8, 14, 2, 1, 700}};
  EXPECT_THAT(disturbed(rates), HasSubstr("78 %"));
}

TEST(Calibrate, AnInterruptionEndsIt) {
  CalibrateFakeMachine machine;
  const auto rates =
      calibrate(fake_target(), machine.probes(), [](int, int, const std::string&) -> Status {
        return fail(ErrorKind::Interrupted, "stopped");
      });
  ASSERT_FALSE(rates);
  EXPECT_EQ(rates.error().kind, ErrorKind::Interrupted);
}

TEST(Tiles, LegalOnesFitTheRegisters) {
  for (const hw::CpuTarget& target : hw::all_targets()) {
    bool fills = false;
    for (const ProbeTile& tile : legal_tiles(target)) {
      const int used = tile.rows * tile.columns + tile.columns + 1;
      EXPECT_LE(used, target.vector_registers);
      fills |= used == target.vector_registers;
    }
    EXPECT_TRUE(fills) << target.name;
  }
}

/// Every type's tile is the product of its panels, as often as it reads them.
TEST(Tiles, ComputeTheProductOfTheirPanels) {
  hw::CpuTarget target = *hw::find_target("x86-64-v4");
  target.features.insert(target.features.end(), {"+avx512bf16", "+avx512vnni"});
  for (const DType dtype : {DType::F32, DType::BF16, DType::I8}) {
    const ProbeTile shape{2, 3, dtype};
    const Func func = tile_func(shape, target);
    interp::Arguments arguments;
    std::vector<Shape> shapes;
    for (const Param& param : func.params) {
      shapes.emplace_back();
      for (const Expr& extent : param.buffer.shape()) shapes.back().push_back(*as_int(extent));
      Array array(param.buffer.dtype(), shapes.back());
      for (int64_t i = 0; i < array.size(); ++i) array.set(i, static_cast<double>(i % 3));
      if (param.mode != ParamMode::Out) arguments.arrays[param.buffer.name()] = array;
    }
    const auto outcome = interp::run(func, arguments, {});
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    const Array &a = arguments.arrays["A"], &b = arguments.arrays["B"];
    const Array& y = outcome->outputs.at("Y");
    // A[k, r, g, d] and B[k, g, c, l, d]; f32 has no d.
    const int64_t groups = shapes[0][0], steps = shapes[0][2], lanes = shapes[2][2];
    const int64_t depth = shapes[0].size() > 3 ? shapes[0][3] : 1;
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t l = 0; l < lanes; ++l) {
          double sum = 0;
          for (int64_t k = 0; k < groups; ++k)
            for (int64_t g = 0; g < steps; ++g)
              for (int64_t d = 0; d < depth; ++d)
                sum += a.get(((k * 2 + r) * steps + g) * depth + d) *
                       b.get((((k * steps + g) * 3 + c) * lanes + l) * depth + d);
          EXPECT_EQ(y.get((r * 3 + c) * lanes + l), 16 * sum) << name(dtype);
        }
  }
}

TEST(Probes, ReadWhatTheMachineGives) {
  EXPECT_GT(read_peak(DType::F32, 0.01).rate, 0);
  EXPECT_GT(read_clock(0.01).rate, 0);
  EXPECT_EQ(read_peak(DType::I64, 0.01).all, 0);
  EXPECT_EQ(peak_now(DType::I64, 3), 0);
  runtime::ThreadPool pool({.threads = 2});
  EXPECT_GT(read_memory(pool, 1, 4096, 0.001).all, 0);
  EXPECT_GT(read_memory(pool, 2, 1 << 20, 0.001).all, 0);
  EXPECT_GT(read_fork_join(pool, 0.001).all, 0);
}

}  // namespace
}  // namespace tilewright::measure
