#include "tilewright/tune/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/interp/interp.h"
#include "tilewright/tune/probes.h"

namespace tilewright::tune {
namespace {

using testing::HasSubstr;

hw::CpuRates quiet_machine() {
  hw::CpuRates rates;
  rates.f32 = 100;
  rates.l1 = {200, 400};
  rates.l2 = {100, 200};
  rates.l3 = {80, 160};
  rates.dram = {30, 40};
  return rates;
}

TEST(Calibrate, PlausibleRatesPass) {
  EXPECT_EQ(implausible(quiet_machine(), 2), "");
  hw::CpuRates rates = quiet_machine();
  rates.l3.one = 105;  // noise
  EXPECT_EQ(implausible(rates, 2), "");
}

TEST(Calibrate, ContradictionsAreFound) {
  hw::CpuRates rates = quiet_machine();
  rates.l3 = {150, 300};
  EXPECT_THAT(implausible(rates, 2), HasSubstr("L3 gives 150.0 GB/s"));
  rates = quiet_machine();
  rates.dram.all = 20;
  EXPECT_THAT(implausible(rates, 2), HasSubstr("DRAM: one core reads 30.0 GB/s"));
  rates = quiet_machine();
  rates.l2.all = 300;
  EXPECT_THAT(implausible(rates, 2), HasSubstr("L2"));
  rates = quiet_machine();
  rates.f32 = 0;
  EXPECT_THAT(implausible(rates, 2), HasSubstr("multiply-adds"));
  rates = quiet_machine();
  rates.l1.one = 0;
  EXPECT_THAT(implausible(rates, 2), HasSubstr("L1 was not read"));
}

TEST(Calibrate, TilesBelowThePeakShowOtherWork) {
  hw::CpuRates rates = quiet_machine();
  EXPECT_EQ(disturbed(rates), "");  // no tiles, no witness
  rates.tiles = {{DType::F32, 1, 1, 0.12}, {DType::F32, 14, 2, 0.99}};
  EXPECT_EQ(disturbed(rates), "");
  rates.tiles = {{DType::F32, 1, 1, 0.12}, {DType::F32, 14, 2, 0.78}, {DType::I8, 14, 2, 1}};
  EXPECT_THAT(disturbed(rates), HasSubstr("78 %"));
}

TEST(Calibrate, AnInterruptionEndsIt) {
  CalibrateOptions options;
  options.progress = [](int, int, const std::string&) -> Status {
    return fail(ErrorKind::Interrupted, "stopped");
  };
  const auto rates = calibrate(hw::host(), options);
  ASSERT_FALSE(rates);
  EXPECT_EQ(rates.error().kind, ErrorKind::Interrupted);
}

TEST(Tiles, LegalOnesFitTheRegisters) {
  for (const hw::CpuTarget& target : hw::all_targets()) {
    bool fills = false;
    for (const TileShape& tile : legal_tiles(target)) {
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
    const TileShape shape{2, 3, dtype};
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
  EXPECT_GT(peak_burst(DType::F32, 0.001), 0);
  runtime::ThreadPool pool({.threads = 2});
  EXPECT_GT(read_burst(pool, 1, 4096, 0.001), 0);
  EXPECT_GT(read_burst(pool, 2, 1 << 20, 0.001), 0);
  EXPECT_GT(fork_join_burst(pool, 0.001), 0);
  EXPECT_EQ(peak_burst(DType::I64, 0.001), 0);
}

}  // namespace
}  // namespace tilewright::tune
