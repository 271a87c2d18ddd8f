#include "tilewright/accel/vta/sim/tsim.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/vta/sim/testing/cycle_reference.h"
#include "tilewright/accel/vta/sim/testing/random_stream.h"

namespace tilewright::vta {
namespace {

using testing::CycleReference;
using ::testing::HasSubstr;
using testing::no_op;
using testing::serialise;

Insn gemm(uint32_t steps) {
  Gemm g;
  g.loops.uop_end = 1;
  g.loops.outer = steps;
  return {{}, g};
}
Insn alu(bool imm, uint32_t steps) {
  Alu a;
  a.use_imm = imm;
  a.loops.uop_end = 1;
  a.loops.inner = steps;
  return {{}, a};
}
Insn load(Mem mem, uint32_t dram, uint32_t x, uint32_t y = 1, uint32_t stride = 0) {
  Transfer t;
  t.mem = mem, t.dram = dram, t.x_size = x, t.y_size = y, t.x_stride = stride;
  return {{}, t};
}
Insn store(uint32_t dram, uint32_t x, uint32_t y = 1, uint32_t stride = 0) {
  Insn insn = load(Mem::Out, dram, x, y, stride);
  std::get<Transfer>(insn.op).store = true;
  return insn;
}
Insn finish() { return {{}, Finish{}}; }

LaunchReport timed(const Config& config, const std::vector<Insn>& insns) {
  LaunchOptions options;
  options.record_times = true;
  auto report = simulate_time(config, insns, options);
  EXPECT_TRUE(report) << to_string(report.error());
  return report ? *report : LaunchReport{};
}

/// Duration of one instruction with the machine to itself.
uint64_t duration(const Config& config, const Insn& insn) {
  const LaunchReport report = timed(config, serialise(config, {insn, finish()}));
  return report.times[0].end - report.times[0].begin;
}

// The cases of docs/vta-timing.md 9, with its figures.
TEST(TsimTest, GemmAlone) {
  const LaunchReport report = timed({}, {gemm(16), finish()});
  EXPECT_EQ(report.times[0].begin, 23u);
  EXPECT_EQ(report.times[0].end, 46u);
  EXPECT_EQ(report.times[0].stall, Stall::Queue);
  EXPECT_EQ(report.times[1].begin, 46u);
  EXPECT_EQ(report.times[1].stall, Stall::None);
  EXPECT_EQ(report.cycles, 48u);
}

TEST(TsimTest, GemmWaitsForLoad) {
  const LaunchReport report =
      timed({}, serialise({}, {load(Mem::Inp, 256, 4), gemm(16), finish()}));
  EXPECT_EQ(report.times[0].begin, 25u);
  EXPECT_EQ(report.times[0].end, 58u);
  EXPECT_EQ(report.times[1].begin, 58u);
  EXPECT_EQ(report.times[1].stall, Stall::Token);
  EXPECT_EQ(report.times[1].token_from, 0);
  EXPECT_EQ(report.cycles, 83u);
}

TEST(TsimTest, PaddedLoad) {
  Insn padded = load(Mem::Inp, 256, 4, 2, 8);
  auto& t = std::get<Transfer>(padded.op);
  t.y_pad_top = t.y_pad_bottom = t.x_pad_left = t.x_pad_right = 1;
  EXPECT_EQ(duration({}, padded), 74u - 25u);
  t.y_pad_top = 15;  // more padding than free cycles: 6 * 16 + 4 + 16 beats
  EXPECT_EQ(duration({}, padded), 8 + 100 + 16 - 1 + 2u);
  t.y_size = 0;
  EXPECT_EQ(duration({}, padded), 8 + 96 + 1u);
  t.y_pad_top = t.y_pad_bottom = 0;
  EXPECT_EQ(duration({}, padded), 2u);
}

TEST(TsimTest, Bursts) {
  EXPECT_EQ(duration({}, load(Mem::Inp, 320, 64)), 25 + 128u);
  EXPECT_EQ(duration({}, load(Mem::Inp, 336, 64)), 154u);
  EXPECT_EQ(duration({}, load(Mem::Uop, 1, 3)), 25 + 2u);  // an odd word: two beats
  EXPECT_EQ(duration({}, load(Mem::Uop, 1, 4)), 25 + 3u);
  EXPECT_EQ(duration({}, load(Mem::Wgt, 0, 1)), 25 + 32u);
  EXPECT_EQ(duration({}, load(Mem::Wgt, 7, 2)), 25 + 64 + 1u);
  EXPECT_EQ(duration({}, load(Mem::Inp, 0, 1, 3, 2)), 25 + 2 + 2 * 16u);  // latency of each
  EXPECT_EQ(duration({}, load(Mem::Inp, 0, 20, 3, 32)), 25 + 120 + 2u);   // latency hidden
  Config wide;
  wide.timing.bus_bytes = 64;
  EXPECT_EQ(duration(wide, load(Mem::Inp, 3, 2)), 25 + 2u);  // straddles two words
  EXPECT_EQ(duration(wide, load(Mem::Wgt, 0, 1)), 25 + 4u);
}

TEST(TsimTest, FixedDurations) {
  EXPECT_EQ(duration({}, store(0, 3, 2, 8)), 38u);
  EXPECT_EQ(duration({}, store(126, 4)), 2 + 2 * 9 + 4 * 3u);  // cut at 2048
  EXPECT_EQ(duration({}, gemm(100)), 107u);
  EXPECT_EQ(duration({}, gemm(0)), 7u);
  EXPECT_EQ(duration({}, alu(true, 100)), 107u);
  EXPECT_EQ(duration({}, alu(false, 100)), 207u);
  EXPECT_EQ(duration({}, no_op(Module::Store)), 2u);
  EXPECT_EQ(duration({}, store(0, 3, 0)), 2u);
  Config config;
  config.extensions.pipelined_alu = true;
  EXPECT_EQ(duration(config, alu(false, 100)), 107u);
  config.timing.bus_bytes = 32;
  EXPECT_EQ(duration(config, store(0, 3, 2, 8)), 2 + 2 * (9 + 3 * 2u));
  config.timing.loop_fill = 6;
  EXPECT_EQ(duration(config, gemm(10)), 10 + 60 + 7u);
}

TEST(TsimTest, ReadPortIsSharedByBurst) {
  // Both begin in the cycle in which their command is there: WGT one cycle before ACC.
  const LaunchReport wgt_first = timed({}, {load(Mem::Wgt, 0, 1), load(Mem::Acc, 0, 1), finish()});
  const uint64_t t = wgt_first.times[0].begin + 8;
  EXPECT_EQ(wgt_first.times[1].begin + 8, t + 1);
  EXPECT_EQ(wgt_first.times[0].end, t + 47 + 2);
  EXPECT_EQ(wgt_first.times[1].end, t + 56 + 2);
  const LaunchReport acc_first = timed({}, {load(Mem::Acc, 0, 1), load(Mem::Wgt, 0, 1), finish()});
  const uint64_t u = acc_first.times[0].begin + 8;
  EXPECT_EQ(acc_first.times[0].end, u + 23 + 2);
  EXPECT_EQ(acc_first.times[1].end, u + 63 + 2);
}

TEST(TsimTest, LoadsOverlapCompute) {
  Config config;
  std::vector<Insn> insns;
  for (int i = 0; i < 20; ++i) {
    insns.push_back(load(Mem::Inp, 0, 64));
    insns.push_back(gemm(200));
    insns[2 * i].deps.push_next = insns[2 * i + 1].deps.pop_prev = true;
    if (i >= 2) insns[2 * i].deps.pop_next = insns[2 * i - 3].deps.push_prev = true;
  }
  insns.push_back(finish());
  const LaunchReport report = timed(config, insns);
  // Fetch of 41 instructions, the first load, then GEMMs of 207 cycles without a gap.
  EXPECT_EQ(report.cycles, 17 + 82 + 2 + (25 + 128) + 20 * 207 + 2u);
  const Utilisation use = utilisation(config, insns, report);
  EXPECT_NEAR(use.gemm, 4000.0 / report.cycles, 1e-12);
  for (const ModuleUse& m : use.modules)
    EXPECT_EQ(m.busy + m.token_prev + m.token_next + m.memory + m.idle, report.cycles);
  EXPECT_EQ(use.modules[1].busy, 20 * 207 + 2u);
  EXPECT_GT(use.modules[0].token_next, 0u);
  const Bound least = bound(config, insns);
  EXPECT_EQ(least.compute, 4000u);
  EXPECT_EQ(least.read, 20 * 128 + 41 * 2u);
  EXPECT_EQ(least.store, 0u);
}

TEST(TsimTest, FetchInBatchesAndFullQueues) {
  Config config;
  config.timing.fetch_batch = 4;
  config.timing.command_queue = 2;
  const std::vector<Insn> insns = {gemm(50), gemm(50), gemm(50), gemm(50), gemm(50), finish()};
  const LaunchReport report = timed(config, insns);
  // First batch: beats 17..24, commands written 26, 27 (the first is taken in 27, its place is free
  // from 28), 28, then one when the second begins.
  EXPECT_EQ(report.times[0].begin, 27u);
  EXPECT_EQ(report.times[1].begin, 27 + 57u);
  // Fourth written at 85; the next batch asks in 86: beats 102..105, first written 107, but two are
  // waiting then until the third begins in 141.
  EXPECT_EQ(report.times[4].begin, 27 + 4 * 57u);
  EXPECT_EQ(report.cycles, 27 + 5 * 57 + 2u);
  config.timing.fetch_batch = 1;
  const LaunchReport slow = timed(config, {gemm(0), gemm(0), finish()});
  // Each instruction: ask, 16 cycles, 2 beats, one cycle, written, next ask the cycle after.
  EXPECT_EQ(slow.times[0].begin, 1 + 16 + 1 + 2 + 1u);
  EXPECT_EQ(slow.times[1].begin, slow.times[0].begin + 20);
}

/// Any instructions with tokens that never block for good in stream order.
class RandomTokens {
 public:
  RandomTokens(Rng& rng, const Config& config)
      : rng_(rng), config_(config), chain_(modules(config)), tokens_(2 * chain_.size()) {}

  std::vector<Insn> make(int length) {
    for (int i = 0; i < length; ++i) add(any());
    for (size_t q = 0; q + 2 < tokens_.size(); ++q)
      while (tokens_[q] > 0) drain(q);
    // FINISH after all modules are done: a token from load to store, and back.
    for (size_t m = 0; m < chain_.size(); ++m) {
      insns_.push_back(no_op(chain_[m]));
      insns_.back().deps.pop_prev = m > 0;
      insns_.back().deps.push_next = m + 1 < chain_.size();
    }
    insns_.back().deps.push_prev = true;
    insns_.push_back(finish());
    insns_.back().deps.pop_next = true;
    return insns_;
  }

 private:
  uint32_t below(int64_t n) { return static_cast<uint32_t>(rng_.below(n)); }

  Insn any() {
    switch (below(9)) {
      case 0:
        return gemm(below(60));
      case 1:
        return alu(rng_.chance(0.5), below(60));
      case 2:
        return store(below(1000), below(8), below(4), below(20));
      case 3:
        return no_op(chain_[below(static_cast<int64_t>(chain_.size()))]);
      default:
        break;
    }
    const Mem mems[] = {Mem::Uop, Mem::Wgt, Mem::Inp, Mem::Acc};
    Insn insn = load(mems[below(4)], below(1000), below(12), below(4), below(20));
    auto& t = std::get<Transfer>(insn.op);
    if (rng_.chance(0.4)) {
      t.y_pad_top = below(4), t.y_pad_bottom = below(4);
      t.x_pad_left = below(4), t.x_pad_right = below(4);
    }
    return insn;
  }
  void add(Insn insn) {
    size_t m = 0;
    while (chain_[m] != module_of(config_, insn)) ++m;
    const auto pop = [&](size_t q, bool& flag) {
      if (tokens_[q] > 0 && rng_.chance(0.6)) flag = true, --tokens_[q];
    };
    const auto push = [&](size_t q, bool& flag) {
      if (rng_.chance(0.3)) flag = true, ++tokens_[q];
    };
    if (m > 0) pop(2 * m - 2, insn.deps.pop_prev);
    if (m + 1 < chain_.size()) pop(2 * m + 1, insn.deps.pop_next);
    if (m > 0) push(2 * m - 1, insn.deps.push_prev);
    if (m + 1 < chain_.size()) push(2 * m, insn.deps.push_next);
    insns_.push_back(insn);
  }
  void drain(size_t q) {
    Insn insn = no_op(chain_[q % 2 == 0 ? q / 2 + 1 : q / 2]);
    (q % 2 == 0 ? insn.deps.pop_prev : insn.deps.pop_next) = true;
    --tokens_[q];
    insns_.push_back(insn);
  }

  Rng& rng_;
  const Config& config_;
  std::vector<Module> chain_;
  std::vector<int> tokens_;
  std::vector<Insn> insns_;
};

Config random_timing(Rng& rng) {
  Config config;
  Timing& t = config.timing;
  t.bus_bytes = 8 << rng.below(4);
  t.max_burst_beats = 4 << rng.below(7);
  t.read_latency = static_cast<int>(rng.between(1, 30));
  t.burst_gap = static_cast<int>(rng.below(4));
  t.load_overhead = static_cast<int>(rng.between(2, 12));
  t.store_element_extra = static_cast<int>(rng.below(3));
  t.alu_imm_ii = static_cast<int>(rng.between(1, 2));
  t.loop_fill = static_cast<int>(rng.below(3));
  t.empty = static_cast<int>(rng.between(2, 3));
  t.token_latency = static_cast<int>(rng.between(1, 3));
  t.fetch_batch = static_cast<int>(rng.between(1, 20));
  t.command_queue = static_cast<int>(rng.between(1, 6));
  config.extensions.pipeline4 = rng.chance(0.5);
  config.extensions.pipelined_alu = rng.chance(0.5);
  return config;
}

TEST(TsimTest, EqualsTheContractCycleByCycle) {
  Rng rng(11);
  for (int round = 0; round < 400; ++round) {
    Config config = round < 40 ? Config{} : random_timing(rng);
    config.extensions.pipeline4 = round % 2 == 1;
    const std::vector<Insn> insns = RandomTokens(rng, config).make(60);
    const LaunchReport report = timed(config, insns);
    CycleReference reference(config, insns);
    ASSERT_TRUE(reference.run(1'000'000));
    for (size_t i = 0; i < insns.size(); ++i) {
      ASSERT_EQ(report.times[i].begin, reference.begin(i)) << "round " << round << " insn " << i;
      ASSERT_EQ(report.times[i].end, reference.end(i)) << "round " << round << " insn " << i;
    }
    EXPECT_EQ(report.cycles, reference.end(insns.size() - 1));
    const Utilisation use = utilisation(config, insns, report);
    for (const ModuleUse& m : use.modules)
      EXPECT_LE(m.busy + m.token_prev + m.token_next + m.memory, report.cycles);
    EXPECT_LE(bound(config, insns).cycles(), report.cycles);
  }
}

TEST(TsimTest, ReportsDeadlockOfTheQueuesAndLostTokens) {
  Config config;
  config.timing.command_queue = 2;
  Insn waits = gemm(1);
  waits.deps.pop_prev = true;
  Insn push = load(Mem::Inp, 0, 1);
  push.deps.push_next = true;
  // The LOAD sits behind three GEMMs that wait for it.
  auto stuck = simulate_time(config, {waits, gemm(1), gemm(1), push, finish()});
  ASSERT_FALSE(stuck);
  EXPECT_THAT(to_string(stuck.error()), HasSubstr("no token in load -> compute"));
  EXPECT_THAT(to_string(stuck.error()), HasSubstr("instruction 3 (load.inp"));
  EXPECT_THAT(to_string(stuck.error()), HasSubstr("full command queue"));

  std::vector<Insn> many = {gemm(16000)};
  for (int i = 0; i < 256; ++i) {
    many.push_back(no_op(Module::Load));
    many.back().deps.push_next = true;
  }
  for (int i = 0; i < 256; ++i) {
    many.push_back(no_op(Module::Compute));
    many.back().deps.pop_prev = true;
  }
  many.push_back(finish());
  auto lost = simulate_time({}, many);
  ASSERT_FALSE(lost);
  EXPECT_THAT(to_string(lost.error()), HasSubstr("256 are outstanding"));
  many.erase(many.begin() + 256);
  many.erase(many.begin() + 256);
  EXPECT_TRUE(simulate_time({}, many));

  auto early = simulate_time({}, {store(0, 100), finish()});
  ASSERT_FALSE(early);
  EXPECT_THAT(to_string(early.error()), HasSubstr("FINISH is not ordered after instruction 0"));
}

TEST(TsimTest, StopsAtTheLimit) {
  LaunchOptions options;
  options.max_cycles = 47;
  auto report = simulate_time({}, {gemm(16), finish()}, options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Limit);
  options.max_cycles = 48;
  EXPECT_TRUE(simulate_time({}, {gemm(16), finish()}, options));
}

TEST(TsimTest, AMissingTokenChangesData) {
  const Config config;
  Insn acc = load(Mem::Acc, 16, 1);
  Insn add = alu(true, 1);
  std::get<Alu>(add.op).op = AluOp::Add;
  std::vector<Insn> insns =
      serialise(config, {load(Mem::Uop, 2000, 1), acc, add, store(512, 1), finish()});
  const auto result = [&] {
    const std::unique_ptr<Device> device = make_tsim(config, 1 << 16);
    EXPECT_TRUE(device->write(1024, std::string(64, 1)));
    EXPECT_TRUE(device->launch(insns));
    char byte = 0;
    EXPECT_TRUE(device->read(512 * 16, &byte, 1));
    return int{byte};
  };
  EXPECT_EQ(result(), 1);
  for (size_t i = 0; i < insns.size(); ++i)
    if (module_of(config, insns[i]) == Module::Store) {
      ASSERT_TRUE(insns[i].deps.pop_prev);
      insns[i].deps.pop_prev = false;
      insns[i - 1].deps.push_next = false;
    }
  EXPECT_EQ(result(), 0);
}

TEST(TsimTest, E2_LayersTableAndTrace) {
  const Config config;
  vta::Run run;
  run.insns = serialise(config, {load(Mem::Inp, 0, 64), gemm(200), store(0, 8), alu(false, 10),
                                 store(0, 8), finish()});
  size_t second = 0;
  while (!std::holds_alternative<Alu>(run.insns[second].op)) ++second;
  run.spans = {{"conv \"1\"", 0, second}, {"relu", second, run.insns.size()}};
  const LaunchReport report = timed(config, run.insns);
  const std::vector<LayerUse> layers = per_layer(config, run, report);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].counters.gemm_steps, 200u);
  EXPECT_EQ(layers[1].counters.alu_reg_steps, 10u);
  EXPECT_EQ(layers[0].bound.compute, 200u);
  EXPECT_EQ(layers[1].bound.compute, 20u);
  EXPECT_EQ(layers[1].bound.store, 9 + 8 * 3u);
  EXPECT_EQ(layers[1].end, report.cycles);
  // Cycles add up, and what is done in them fits.
  EXPECT_EQ(layers[0].from, 0u);
  EXPECT_EQ(layers[1].from, layers[0].end);
  EXPECT_NEAR(layers[0].gemm_within + layers[1].gemm_within, 200, 1e-9);
  for (const LayerUse& layer : layers) {
    EXPECT_GT(layer.within.cycles(), 0u);
    EXPECT_LE(layer.within.cycles(), layer.end - layer.from);
  }
  EXPECT_NEAR(gemm_utilisation(layers[0]), 200.0 / double(layers[0].end - layers[0].begin), 1e-12);
  EXPECT_EQ(layers[1].bound.cycles(), 33u);

  const accel::RunTrace trace = run_trace(config, run, report);
  size_t insns = 0, stalls = 0, layer_rows = 0;
  for (const accel::RunTrace::Slice& slice : trace.slices) {
    EXPECT_LE(slice.end, report.cycles);
    insns += slice.kind == "insn";
    stalls += slice.kind == "stall";
    layer_rows += slice.kind == "layer";
  }
  EXPECT_EQ(trace.rows.size(), 4u);
  EXPECT_EQ(insns, run.insns.size());
  EXPECT_EQ(layer_rows, 2u);
  EXPECT_GT(stalls, 2u);
}

}  // namespace
}  // namespace tilewright::vta
