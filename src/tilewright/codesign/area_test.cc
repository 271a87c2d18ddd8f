// Area, power and energies of designs, against published rows and sums by hand.
#include "tilewright/codesign/area.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/accel/spatial/needs.h"

namespace tilewright::codesign {
namespace {

using spatial::Dataflow;
using spatial::Design;
using spatial::Links;
using spatial::Unit;

Technology technology(const std::string& name) {
  Result<Technology> read = load_technology(name);
  EXPECT_TRUE(read) << to_string(read.error());
  return std::move(*read);
}

Design square(int side, int kb, int banks) {
  Design design;
  design.rows = design.cols = side;
  design.spad_kb = kb;
  design.banks = banks;
  return design;
}

// source: HASCO (ISCA 2021), Table II, its GEMM rows.
TEST(Area, MaestroGivesFiveRowsOfHascosTable) {
  const Technology maestro = technology("maestro28");
  struct Row {
    int banks;
    double power, area;
  };
  for (const Row& row : {Row{1, 3099.8, 7.005e7}, Row{2, 3293.5, 9.470e7}, Row{3, 3487.17, 1.193e8},
                         Row{5, 3874.18, 1.686e8}, Row{6, 4068.14, 1.933e8}}) {
    const Design design = square(16, 256, row.banks);
    EXPECT_NEAR(peak_power(design, maestro) / row.power, 1, 2e-4) << row.banks;
    EXPECT_NEAR(area(design, maestro).total() / row.area, 1, 5e-4) << row.banks;
    EXPECT_EQ(consumption(energies(design, maestro), 1e6, 0, 1e-3).power_mw,
              leakage(design, maestro));
  }
}

TEST(Area, MaestroCountsBlocksAndHasALeastArbiter) {
  const Technology maestro = technology("maestro28");
  const Area one = maestro_area({1, 1, 1, 1}, maestro);
  EXPECT_DOUBLE_EQ(one.control, 395.473);  // the polynomial is negative
  EXPECT_DOUBLE_EQ(one.local, 4505.1889);
  const Area two = maestro_area({1, 1, 65, 32769}, maestro);
  EXPECT_DOUBLE_EQ(two.local, 2 * one.local);
  EXPECT_DOUBLE_EQ(two.scratchpad, 2 * one.scratchpad);
  // lanes, L1, L2, bus and the least arbiter, by hand
  EXPECT_NEAR(maestro_power({1, 1, 1, 1}, maestro),
              9 * 1.2223 + 0.2208 + 4 + 0.8 * (14.662 + 28.895) / 1000 + 0.34, 1e-9);
}

// source: HASCO, Table III: every design that it chose keeps the limit that it was chosen under,
// and the next larger square array does not.
TEST(Area, FpgaPowerAdmitsHascosChoicesAndNoMore) {
  const Technology fpga = technology("hasco-fpga");
  const auto watts = [&](int rows, int cols, int kb) {
    Design design = square(rows, kb, 4);
    design.cols = cols;
    return peak_power(design, fpga) / 1000;
  };
  for (const auto& [side, kb] : {std::pair(8, 256), {8, 512}, {12, 320}, {11, 512}, {12, 512}})
    EXPECT_LT(watts(side, side, kb), 2) << side;
  EXPECT_GT(watts(16, 16, 256), 2);
  EXPECT_LT(watts(64, 64, 2048), 20);
  EXPECT_NEAR(watts(8, 8, 256), 1.24 + 0.0037 * 64 + 0.0002 * 256, 1e-12);
  const Energies e = energies(square(8, 256, 4), fpga);
  EXPECT_NEAR(consumption(e, 1e9, 1e9, 2).energy_pj, watts(8, 8, 256) * 2 * 1e12, 1);
}

TEST(Area, FpgaShareIsThatOfTheScarcestCells) {
  const Technology fpga = technology("hasco-fpga");
  const Design small = square(8, 512, 8), large = square(64, 512, 8);
  EXPECT_NEAR(area(small, fpga).total(), cells(small, fpga).total().brams / 4320, 1e-12);
  EXPECT_NEAR(area(large, fpga).total(), (4096.0 + 24) / 6840, 1e-12);  // multipliers, extents
  EXPECT_EQ(area(large, fpga).scratchpad, 0);                           // has none of them
  // By hand: 8 banks of 64 KiB in block RAMs of 2 KiB.
  EXPECT_EQ(cells(small, fpga).scratchpad.brams, 8 * 32);
  EXPECT_EQ(cells(square(8, 512, 3), fpga).scratchpad.brams, 3 * 88);  // 10 923 words: 22 times 512
  // Three queues of 1 024 bits, in blocks of 36.
  EXPECT_EQ(cells(small, fpga).control.brams, 3 * 29);
  // Private memory: parts of 256 bytes lie in LUTs, parts of 4 KiB in block RAMs.
  Design sums = square(16, 256, 4);
  EXPECT_EQ(cells(sums, fpga).local.brams, 16 * 2);
  const double adders = cells(sums, fpga).local.luts;
  sums.dataflow = Dataflow::OutputStationary;
  EXPECT_EQ(cells(sums, fpga).local.luts - adders, 256 * 64 + (256 - 16) * 32);
  EXPECT_EQ(cells(sums, fpga).local.brams, 0);
}

// source: Yosys 0.23 on the Verilog of these designs, module by module (bench/results/codesign.md).
TEST(Area, SmallDesignsHaveTheCellsThatYosysCounts) {
  const auto check = [](Design design, int banks, int bank_bytes, int local_kb, double luts,
                        double ffs, double dsps, double brams) {
    design.banks = banks;
    design.bank_bytes = bank_bytes;
    design.local_kb = local_kb;
    const CellCount count = cells(design, technology("hasco-fpga")).total();
    EXPECT_NEAR(count.luts / luts, 1, 0.04) << to_toml(design);
    EXPECT_NEAR(count.ffs / ffs, 1, 0.01);
    EXPECT_EQ(count.dsps, dsps);
    EXPECT_EQ(count.brams, brams);
  };
  Design design = square(2, 16, 1);
  design.links = Links::Full;
  design.unit = Unit::Conv2d;
  check(design, 1, 4, 8, 19131, 10572, 28, 107);
  design.unit = Unit::Dot;
  check(design, 1, 4, 16, 18092, 10105, 28, 103);
  design.unit = Unit::Gemv;
  design.cols = 3;
  check(design, 1, 8, 8, 21843, 10075, 32, 101);
  design.unit = Unit::Gemm;
  design.links = Links::Systolic;
  design.dataflow = Dataflow::OutputStationary;
  design.rows = 3;
  design.cols = 2;
  check(design, 2, 8, 8, 22937, 10750, 32, 101);
}

// Weights of taps are read a cycle before the step, so they are block RAMs: twice 256 words of 128
// bits for each output channel.
TEST(Area, WeightsOfTapsAreBlockRams) {
  const Technology fpga = technology("hasco-fpga");
  Design conv = square(16, 256, 4);
  conv.links = Links::Full;
  const CellCount without = cells(conv, fpga).local;
  conv.unit = Unit::Conv2d;
  EXPECT_EQ(cells(conv, fpga).local.brams - without.brams, 16 * 4);
  EXPECT_EQ(cells(conv, fpga).local.luts, without.luts);
  EXPECT_GT(area(conv, fpga).total(), 0);
}

TEST(Area, ComponentsAddUpByHand) {
  const Technology asic = technology("asic45");
  const Design design = square(16, 256, 4);
  const Area a = area(design, asic);
  EXPECT_NEAR(a.array, 256 * (282 + 137), 1e-6);
  EXPECT_NEAR(a.registers, 256 * (32 + 8 + 8 + 8) * 5.98, 1e-6);
  EXPECT_NEAR(a.wiring, 256 * 20, 1e-6);
  EXPECT_NEAR(a.bank, 65536 * 8 * 0.346 / 0.5 + 2000 + 1600, 1e-6);
  EXPECT_NEAR(a.scratchpad, 4 * a.bank, 1e-6);
  EXPECT_NEAR(a.local, 65536 * 8 * 0.692 + 16 * 200, 1e-6);
  EXPECT_NEAR(a.dma, 15000 + 8 * 500 + 2048 * 8 * 0.692, 1e-6);
  EXPECT_NEAR(a.control, 30000 + 3 * 512 * 16 * 8 * 0.692, 1e-6);
}

TEST(Area, ComponentEnergiesByHand) {
  const Technology asic = technology("asic45");
  Design design = square(16, 32, 4);  // banks of 8 KiB
  const Energies e = energies(design, asic);
  EXPECT_NEAR(e.spad_byte, 10.0 / 8, 1e-12);
  EXPECT_NEAR(e.mac, 0.2 + 0.1 + 40 * 0.009 + 0.05, 1e-12);
  EXPECT_NEAR(e.dram_byte, 1950.0 / 8, 1e-12);
  EXPECT_NEAR(e.local_byte, 10.0 / 8 * std::sqrt(4.0 / 8), 1e-12);  // 16 parts of 4 KiB
  design.spad_kb = 128;
  EXPECT_NEAR(energies(design, asic).spad_byte, 20.0 / 8, 1e-12);
  design.spad_kb = 4096;
  EXPECT_NEAR(energies(design, asic).spad_byte * 8, 113.1, 0.1);
  design.links = Links::Full;
  EXPECT_NEAR(energies(design, asic).mac, 0.2 + 0.1 + 40 * 0.009 + 8 * 0.01, 1e-12);

  // 1 us with 1 nJ on the chip and 3 nJ at the DRAM: mean power is that of the chip.
  const Consumption used = consumption(e, 1000, 3000, 1e-6);
  EXPECT_NEAR(used.power_mw, 1 + e.static_mw, 1e-9);
  EXPECT_NEAR(used.energy_pj, 4000 + e.static_mw * 1000, 1e-6);
}

TEST(Area, EveryPrimitiveHasAPrice) {
  const Technology asic = technology("asic45");
  const Design base = square(16, 256, 4);
  const auto total = [&](auto change) {
    Design design = base;
    change(design);
    EXPECT_TRUE(spatial::problems(design).empty());
    return area(design, asic).total() / area(base, asic).total();
  };
  EXPECT_GT(total([](Design& d) { d.rows = 17; }), 1);
  EXPECT_GT(total([](Design& d) { d.links = Links::Full; }), 1);
  EXPECT_GT(total([](Design& d) { d.spad_kb = 257; }), 1);
  EXPECT_GT(total([](Design& d) { d.banks = 5; }), 1);
  EXPECT_GT(total([](Design& d) { d.bank_bytes = 32; }), 1);
  EXPECT_GT(total([](Design& d) { d.local_kb = 65; }), 1);
  EXPECT_GT(total([](Design& d) { d.bus_bytes = 16; }), 1);
  EXPECT_GT(total([](Design& d) { d.burst_bytes = 4096; }), 1);
  EXPECT_LT(energies(square(16, 256, 8), asic).spad_byte, energies(base, asic).spad_byte);
}

TEST(Area, IsFiniteAndPositiveForAllUnitsAndTechnologies) {
  for (const std::string& name : builtin_technologies()) {
    const Technology t = technology(name);
    for (const Unit unit : {Unit::Dot, Unit::Gemv, Unit::Gemm, Unit::Conv2d})
      for (const Links links : {Links::None, Links::Systolic, Links::Full})
        for (const int side : {1, 7, 64}) {
          Design design = square(side, 4096, 3);
          design.local_kb = 1024;
          design.unit = unit;
          design.links = links;
          if (!spatial::problems(design).empty()) continue;
          const double total = area(design, t).total();
          EXPECT_TRUE(std::isfinite(total) && total > 0) << name;
          EXPECT_GE(peak_power(design, t), leakage(design, t));
          EXPECT_GT(leakage(design, t), 0);
        }
  }
}

}  // namespace
}  // namespace tilewright::codesign
