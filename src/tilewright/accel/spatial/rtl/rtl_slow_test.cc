// The Verilog under Verilator against the functional simulator (what is computed) and the cycle
// simulator (when each instruction begins and ends).
#include <gtest/gtest.h>

#include <cstdlib>

#include "tilewright/accel/common/rtl/lint.h"
#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/rtl/rtl.h"
#include "tilewright/accel/spatial/sim/fsim.h"
#include "tilewright/accel/spatial/sim/tsim.h"
#include "tilewright/accel/spatial/testing/naive_machine.h"
#include "tilewright/accel/spatial/testing/random_insn.h"

namespace tilewright::spatial {
namespace {

constexpr int64_t kBase = 4096;

struct Outcome {
  std::string dram;
  LaunchReport report;
};
Result<Outcome> run_on(Device& device, const std::string& image, const std::vector<Insn>& insns) {
  TW_TRY_STATUS(device.write(kBase, image));
  Outcome out{std::string(image.size(), '\0'), {}};
  LaunchOptions options;
  options.record_times = true;
  options.max_cycles = 1'000'000;
  out.report = TW_TRY(device.launch(insns, options));
  TW_TRY_STATUS(device.read(kBase, out.dram.data(), out.dram.size()));
  return out;
}

std::string random_bytes(Rng& rng, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.next());
  return bytes;
}

/// Every instruction waits for the one before, by tokens.
std::vector<Insn> in_order(std::vector<Insn> insns) {
  for (size_t i = 1; i < insns.size(); ++i) {
    const auto before = static_cast<int>(insns[i - 1].queue()),
               own = static_cast<int>(insns[i].queue());
    if (before == own) continue;
    insns[i - 1].gives = static_cast<uint8_t>(insns[i - 1].gives | 1u << own);
    insns[i].takes = static_cast<uint8_t>(insns[i].takes | 1u << before);
  }
  return insns;
}

void expect_same(Device& rtl, const std::string& image, const std::vector<Insn>& insns) {
  const auto fsim = make_fsim(rtl.design()), tsim = make_tsim(rtl.design());
  const auto values = run_on(*fsim, image, insns), times = run_on(*tsim, image, insns),
             hardware = run_on(rtl, image, insns);
  ASSERT_TRUE(values) << to_string(values.error());
  ASSERT_TRUE(times) << to_string(times.error());
  ASSERT_TRUE(hardware) << to_string(hardware.error());
  ASSERT_EQ(times->report.times.size(), insns.size());
  for (size_t i = 0; i < insns.size(); ++i) {
    const InsnTime &a = times->report.times[i], &b = hardware->report.times[i];
    ASSERT_EQ(a.begin, b.begin) << "instruction " << i << ": " << to_string(insns[i]);
    ASSERT_EQ(a.end, b.end) << "instruction " << i << ": " << to_string(insns[i]);
  }
  EXPECT_EQ(times->report.cycles, hardware->report.cycles);
  EXPECT_TRUE(times->dram == values->dram);
  for (size_t i = 0; i < image.size(); ++i)
    ASSERT_EQ(int(hardware->dram[i]), int(values->dram[i])) << "byte " << i;
}

/// Instructions that read nothing undefined when they run one after the other.
std::vector<Insn> random_program(const Design& design, const std::string& image, Rng& rng) {
  testing::NaiveMachine naive(design, kBase, image);
  testing::RandomInsns random(design, kBase, rng);
  std::vector<Insn> insns = random.prologue();
  for (const Insn& insn : insns) EXPECT_TRUE(naive.run(insn)) << to_string(insn);
  while (insns.size() < 40) {
    const Insn insn = random.next();
    testing::NaiveMachine after = naive;
    if (!after.run(insn)) continue;
    naive = std::move(after);
    insns.push_back(insn);
  }
  return insns;
}

/// Only some instructions wait for others: modules run beside each other. What they compute depends
/// on who is first, when they do it must not.
void expect_same_times(Device& rtl, const std::string& image, std::vector<Insn> insns, Rng& rng) {
  for (size_t i = 1; i < insns.size(); ++i) {
    const size_t from = i - 1 - size_t(rng.below(int64_t(std::min<size_t>(i, 3))));
    const auto before = static_cast<int>(insns[from].queue()),
               own = static_cast<int>(insns[i].queue());
    if (before == own || rng.chance(0.7) || (insns[from].gives >> own & 1)) continue;
    insns[from].gives = static_cast<uint8_t>(insns[from].gives | 1u << own);
    insns[i].takes = static_cast<uint8_t>(insns[i].takes | 1u << before);
  }
  LaunchOptions options;
  options.record_times = true;
  const auto times = simulate_time(rtl.design(), insns, options);
  ASSERT_TRUE(times) << to_string(times.error());
  const auto hardware = run_on(rtl, image, insns);
  ASSERT_TRUE(hardware) << to_string(hardware.error());
  for (size_t i = 0; i < insns.size(); ++i) {
    const InsnTime &a = times->times[i], &b = hardware->report.times[i];
    ASSERT_EQ(a.begin, b.begin) << "instruction " << i << ": " << to_string(insns[i]);
    ASSERT_EQ(a.end, b.end) << "instruction " << i << ": " << to_string(insns[i]);
  }
}

void expect_random_programs_same(const Design& design, uint64_t seed, int programs) {
  const auto rtl = make_rtl(design);
  ASSERT_TRUE(rtl) << to_string(rtl.error());
  Rng rng(seed);
  for (int program = 0; program < programs; ++program) {
    SCOPED_TRACE(program);
    const std::string image = random_bytes(rng, testing::kRandomDram);
    const std::vector<Insn> insns = random_program(design, image, rng);
    expect_same(**rtl, image, in_order(insns));
    if (::testing::Test::HasFatalFailure()) return;
    const auto beside = with_tokens(design, insns);
    ASSERT_TRUE(beside) << to_string(beside.error());
    expect_same(**rtl, image, *beside);
    if (::testing::Test::HasFatalFailure()) return;
    expect_same_times(**rtl, image, insns, rng);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void draw_timing(Design& design, Rng& rng) {
  const auto between = [&rng](int low, int high) {
    return static_cast<int>(rng.between(low, high));
  };
  design.timing = {.read_latency = between(1, 20),
                   .burst_gap = between(0, 3),
                   .load_overhead = between(0, 12),
                   .store_row_overhead = between(1, 12),
                   .store_element_extra = between(0, 2),
                   .compute_overhead = between(0, 10),
                   .token_latency = between(1, 4),
                   .command_queue = between(1, 8)};
}

/// One design of each array.
std::vector<Design> all_arrays() {
  std::vector<Design> designs;
  for (const Unit unit : {Unit::Dot, Unit::Gemv, Unit::Gemm, Unit::Conv2d})
    for (const Dataflow flow : {Dataflow::WeightStationary, Dataflow::OutputStationary})
      for (const Links links : {Links::None, Links::Systolic, Links::Full}) {
        if (!has_links(unit, links)) continue;
        if (unit != Unit::Gemm && flow != Dataflow::WeightStationary) continue;
        Design design;
        design.unit = unit;
        design.dataflow = flow;
        design.links = links;
        design.rows = 4;
        design.cols = unit == Unit::Conv2d ? 3 : 4;
        design.spad_kb = 8;
        design.local_kb = 2;
        design.bank_bytes = 8;
        design.burst_bytes = 64;
        designs.push_back(design);
      }
  return designs;
}

TEST(SpatialRtlSlow, AllArraysAreLintClean) {
  for (const Design& design : all_arrays()) {
    const Status status = accel::lint_clean(kTop, verilog(design));
    EXPECT_TRUE(status) << to_toml(design) << to_string(status.error());
  }
}

void expect_arrays_same(const std::vector<Design>& designs) {
  uint64_t seed = 1000;
  for (const Design& design : designs) {
    SCOPED_TRACE(to_toml(design));
    expect_random_programs_same(design, ++seed, 8);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// One array of each unit and dataflow; all of them, and random designs, are tests of label `full`.
TEST(SpatialRtlSlow, EachUnitEqualsTheSimulators) {
  std::vector<Design> designs;
  for (const Design& design : all_arrays())
    if (design.links == usual_links(design.unit)) designs.push_back(design);
  expect_arrays_same(designs);
}

TEST(SpatialRtlFull, AllArraysEqualTheSimulators) { expect_arrays_same(all_arrays()); }

TEST(SpatialRtlFull, RandomDesignsEqualTheSimulators) {
  const char* from = std::getenv("TW_SEED");
  const char* count = std::getenv("TW_CASES");
  const uint64_t first = from ? std::strtoull(from, nullptr, 10) : 0;
  const uint64_t last = first + (count ? std::strtoull(count, nullptr, 10) : 4);
  for (uint64_t seed = first; seed < last; ++seed) {
    Rng rng(seed);
    Design design = testing::small_design(rng);
    if (seed % 2 == 1) draw_timing(design, rng);
    SCOPED_TRACE(to_toml(design) + " seed " + std::to_string(seed));
    expect_random_programs_same(design, seed, 20);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tilewright::spatial
