// The Verilog against fsim (data) and tsim (cycles), and under the other tools.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/vta/builder.h"
#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/testing/random_stream.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/accel/vta/testing/random_config.h"
#include "tilewright/accel/vta/testing/random_program.h"

namespace tilewright::vta {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kDram = 1 << 20;

#define SKIP_WITHOUT_TOOL(result)                                       \
  if (!(result) && (result).error().kind == ErrorKind::Tool &&          \
      (result).error().what.find("not installed") != std::string::npos) \
  GTEST_SKIP() << (result).error().what

Config small() {
  Config config;
  config.log_block_in = config.log_block_out = 2;
  config.log_uop_buff = config.log_inp_buff = config.log_wgt_buff = 12;
  config.log_acc_buff = 13;
  return config;
}

/// Everything off its default that the Verilog can do.
Config odd() {
  Config config = small();
  config.has_mul = config.has_acc8 = true;
  config.extensions.fused_reset = config.extensions.pipelined_alu = true;
  Timing& t = config.timing;
  t.max_burst_beats = 4, t.read_latency = 3, t.burst_gap = 0, t.load_overhead = 2;
  t.store_element_extra = 0, t.store_row_overhead = 2, t.gemm_overhead = 8, t.alu_overhead = 11;
  t.alu_reg_ii = 1, t.token_latency = 3, t.fetch_batch = 5, t.command_queue = 3;
  return config;
}

/// Blocks of 32, all three extensions and a 512-bit port.
Config big() {
  Config config;
  config.log_block_in = config.log_block_out = 5;
  config.log_wgt_buff = 19, config.log_acc_buff = 18, config.log_inp_buff = 16;
  config.extensions = {true, true, true};
  config.timing.preset = "custom";
  config.timing.alu_reg_ii = 1;
  config.timing.bus_bytes = 64;
  return config;
}

struct Trio {
  std::unique_ptr<Device> fsim, tsim, rtl;
};
Result<Trio> make_trio(const Config& config, uint64_t dram = kDram) {
  return Trio{make_fsim(config, dram), make_tsim(config, dram), TW_TRY(make_rtl(config, dram))};
}

std::string dram_of(const Device& device, uint64_t bytes) {
  std::string out(bytes, 0);
  EXPECT_TRUE(device.read(0, out.data(), bytes));
  return out;
}

/// Begin and end of every instruction are the same.
void expect_same_times(const Config& config, const std::vector<Insn>& insns,
                       const LaunchReport& tsim, const LaunchReport& rtl) {
  EXPECT_EQ(tsim.cycles, rtl.cycles);
  ASSERT_EQ(tsim.times.size(), rtl.times.size());
  for (size_t i = 0; i < tsim.times.size(); ++i) {
    const InsnTime &a = tsim.times[i], &b = rtl.times[i];
    ASSERT_TRUE(a.insn == b.insn && a.begin == b.begin && a.end == b.end)
        << "instruction " << a.insn << ": " << disassemble(config, insns[a.insn]) << ": tsim "
        << a.begin << ".." << a.end << ", rtl " << b.begin << ".." << b.end;
  }
}

/// Streams ordered by tokens: data as fsim, every cycle as tsim.
void compare_streams(const Config& config, Trio& devices, int count, uint64_t seed) {
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(fmt::format("{} seed {} stream {}", label(config), seed, i));
    Rng rng(seed + static_cast<uint64_t>(i));
    testing::RandomStream stream = testing::StreamMaker(rng, config).make(5 + i % 30);
    LaunchOptions options;
    options.record_times = true;
    LaunchReport reports[3];
    Device* const all[] = {devices.fsim.get(), devices.tsim.get(), devices.rtl.get()};
    for (size_t d = 0; d < 3; ++d) {
      ASSERT_TRUE(all[d]->write(0, stream.dram));
      auto report = all[d]->launch(stream.insns, options);
      ASSERT_TRUE(report) << all[d]->name() << ": " << to_string(report.error());
      reports[d] = *report;
    }
    ASSERT_EQ(dram_of(*devices.fsim, stream.dram.size()),
              dram_of(*devices.rtl, stream.dram.size()));
    expect_same_times(config, stream.insns, reports[1], reports[2]);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Streams without tokens but the last ones: all modules compete for the port. Only time is
/// defined.
void compare_contention(const Config& config, Device& device, int count, uint64_t seed) {
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(fmt::format("{} seed {} stream {}", label(config), seed, i));
    Rng rng(seed + static_cast<uint64_t>(i));
    std::vector<Insn> insns = testing::StreamMaker(rng, config).make(10 + i % 30).insns;
    for (Insn& insn : insns) insn.deps = {};
    insns.back().deps.pop_next = true;
    for (size_t at = insns.size(); at-- > 0;)
      if (module_of(config, insns[at]) == Module::Store) {
        insns[at].deps.push_prev = true;
        break;
      }
    LaunchOptions options;
    options.record_times = true;
    const auto tsim = simulate_time(config, insns, options);
    if (!tsim && tsim.error().what.find("FINISH") != std::string::npos) continue;
    ASSERT_TRUE(tsim) << to_string(tsim.error());
    const auto rtl = device.launch(insns, options);
    ASSERT_TRUE(rtl) << to_string(rtl.error());
    expect_same_times(config, insns, *tsim, *rtl);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Portable programs of several launches, through the interface that every tool uses.
void compare_programs(const Config& config, Trio& devices, int count, uint64_t seed) {
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(fmt::format("{} seed {} program {}", label(config), seed, i));
    Rng rng(seed + static_cast<uint64_t>(i));
    testing::RandomProgramOptions options;
    options.insns = 10 + i % 30;
    options.runs = 1 + i % 3;
    const Program program = testing::random_program(rng, config, options);
    const auto fsim = execute(*devices.fsim, program);
    ASSERT_TRUE(fsim) << to_string(fsim.error());
    const auto tsim = execute(*devices.tsim, program);
    ASSERT_TRUE(tsim) << to_string(tsim.error());
    const auto rtl = execute(*devices.rtl, program);
    ASSERT_TRUE(rtl) << to_string(rtl.error());
    EXPECT_EQ(tsim->cycles, rtl->cycles);
    EXPECT_EQ(fsim->counters.gemm_steps, rtl->counters.gemm_steps);
    EXPECT_EQ(fsim->counters.inp_load_bytes, rtl->counters.inp_load_bytes);
    ASSERT_EQ(dram_of(*devices.fsim, program.end()), dram_of(*devices.rtl, program.end()));
    if (::testing::Test::HasFailure()) return;
  }
}

/// A random design, with timing that the Verilog can do.
Config random_design(Rng& rng, int max_log_block = 3) {
  testing::RandomConfigOptions options;
  options.max_log_block = max_log_block;
  options.extensions = options.features = options.timing = true;
  Config config = testing::random_config(rng, options);
  config.timing.loop_fill = 0;
  config.timing.alu_imm_ii = 1;
  config.timing.alu_reg_ii = config.extensions.pipelined_alu ? 1 : 2;
  return config;
}

class RandomDesigns : public ::testing::TestWithParam<int> {};
TEST_P(RandomDesigns, EqualFsimOnDataAndTsimOnCycles) {
  Rng rng(static_cast<uint64_t>(100 + GetParam()));
  const Config config = GetParam() == 0    ? Config{}
                        : GetParam() == 1  ? small()
                        : GetParam() == 2  ? odd()
                        : GetParam() == 14 ? big()
                                           : random_design(rng, GetParam() >= 12 ? 4 : 3);
  auto trio = make_trio(config, uint64_t{1} << 24);
  SKIP_WITHOUT_TOOL(trio);
  ASSERT_TRUE(trio) << to_string(trio.error());
  compare_programs(config, *trio, 70, 1000);
  if (GetParam() <= 2) compare_streams(config, *trio, 150, 2000);
  if (GetParam() <= 2) compare_contention(config, *trio->rtl, 100, 3000);
}
INSTANTIATE_TEST_SUITE_P(First, RandomDesigns, ::testing::Range(0, 4));
INSTANTIATE_TEST_SUITE_P(OthersFull, RandomDesigns, ::testing::Range(4, 15));

// --- The worked examples of docs/vta-timing.md 9, 1 to 3. ---

TEST(WorkedExamples, HaveTheCyclesOfTheText) {
  auto device = make_rtl(Config{}, kDram);
  SKIP_WITHOUT_TOOL(device);
  ASSERT_TRUE(device) << to_string(device.error());
  Gemm gemm;
  gemm.loops.uop_end = 16;
  Transfer load;
  load.x_size = 4, load.y_size = 1, load.dram = 256;
  const Insn finish{{}, Finish{}};
  const auto cycles = [&](const std::vector<Insn>& insns) -> uint64_t {
    const auto report = (*device)->launch(insns);
    EXPECT_TRUE(report) << to_string(report.error());
    return report ? report->cycles : 0;
  };
  EXPECT_EQ(cycles({Insn{{}, gemm}, finish}), 48u);
  const Insn waits{{true, false, false, false}, gemm};
  EXPECT_EQ(cycles({Insn{{false, false, false, true}, load}, waits, finish}), 83u);
  load.y_size = 2, load.x_stride = 8;
  load.y_pad_top = load.y_pad_bottom = load.x_pad_left = load.x_pad_right = 1;
  EXPECT_EQ(cycles({Insn{{false, false, false, true}, load}, waits, finish}), 83u + (74 - 58));
}

// --- One long program. ---

constexpr uint64_t kGemmStepsPerBlock = 64 * 16 * 16;

/// 256 x 256 x 256 in blocks of 64 rows, inputs and weights double-buffered, on the default design.
Program blocked_gemm(const Config& config) {
  constexpr uint32_t kTiles = 16, kRows = 64;
  Builder builder(config);
  const auto bytes = [&config](Mem mem, uint32_t elements) {
    return elements * static_cast<uint64_t>(config.element_bytes(mem));
  };
  const auto area = [&](const char* name, Mem mem, uint32_t elements) {
    return static_cast<uint32_t>(*builder.allocate(name, bytes(mem, elements)) /
                                 static_cast<uint64_t>(config.element_bytes(mem)));
  };
  const uint32_t inp = area("inp", Mem::Inp, 4 * kRows * kTiles);
  const uint32_t wgt = area("wgt", Mem::Wgt, kTiles * kTiles);
  const uint32_t out = area("out", Mem::Out, 4 * kRows * kTiles);
  Rng rng(5);
  for (const auto& [base, mem, count] :
       {std::tuple{inp, Mem::Inp, 4 * kRows * kTiles}, {wgt, Mem::Wgt, kTiles * kTiles}}) {
    std::string data(bytes(mem, count), 0);
    for (char& c : data) c = static_cast<char>(rng.next());
    builder.write(bytes(mem, base), data);
  }
  const auto move = [&](Mem mem, uint32_t sram, uint32_t dram, uint32_t y, uint32_t x,
                        uint32_t stride) {
    Transfer t;
    t.store = mem == Mem::Out;
    t.mem = mem;
    t.sram = sram, t.dram = dram, t.y_size = y, t.x_size = x, t.x_stride = stride;
    EXPECT_TRUE(builder.transfer(t));
  };
  // inp[row][k], wgt[n][k], out[row][n]; 4 output tiles at a time.
  uint32_t turn = 0;
  for (uint32_t block = 0; block < 4; ++block)
    for (uint32_t n = 0; n < kTiles; n += 4) {
      for (uint32_t k = 0; k < kTiles; k += 4, ++turn) {
        const uint32_t half = turn % 2;
        move(Mem::Inp, half * 256, inp + block * kRows * kTiles + k, kRows, 4, kTiles);
        move(Mem::Wgt, half * 16, wgt + n * kTiles + k, 4, 4, kTiles);
        std::vector<Uop> uops;
        for (uint32_t j = 0; j < 4; ++j)
          for (uint32_t i = 0; i < 4; ++i)
            uops.push_back({j, half * 256 + i, half * 16 + j * 4 + i});
        // The row loop is innermost in time, so that equal accumulators are far apart.
        for (const Uop& uop : uops) {
          Loops loops;
          loops.inner = kRows, loops.dst_inner = 4, loops.src_inner = 4;
          if (k == 0 && uop.src % 4 == 0) {
            EXPECT_TRUE(builder.gemm({uop}, loops, true));
          }
          EXPECT_TRUE(builder.gemm({uop}, loops, false));
        }
      }
      Loops loops;
      loops.inner = kRows * 4, loops.dst_inner = loops.src_inner = 1;
      EXPECT_TRUE(builder.alu(AluOp::Shr, {{0, 0, 0}}, loops, int16_t{8}));
      EXPECT_TRUE(builder.alu(AluOp::Max, {{0, 0, 0}}, loops, int16_t{0}));
      move(Mem::Out, 0, out + block * kRows * kTiles + n, kRows, 4, kTiles);
    }
  return *builder.finish();
}

TEST(LongProgramFull, BlockedGemm) {
  const Config config;
  auto trio = make_trio(config, uint64_t{1} << 24);
  SKIP_WITHOUT_TOOL(trio);
  ASSERT_TRUE(trio) << to_string(trio.error());
  const Program program = blocked_gemm(config);
  const auto fsim = execute(*trio->fsim, program);
  ASSERT_TRUE(fsim) << to_string(fsim.error());
  const auto tsim = execute(*trio->tsim, program);
  ASSERT_TRUE(tsim) << to_string(tsim.error());
  const auto rtl = execute(*trio->rtl, program);
  ASSERT_TRUE(rtl) << to_string(rtl.error());
  fmt::print("blocked GEMM: {} cycles on tsim, {} on rtl, {} GEMM steps\n", tsim->cycles,
             rtl->cycles, rtl->counters.gemm_steps);
  EXPECT_EQ(tsim->cycles, rtl->cycles);
  EXPECT_EQ(rtl->counters.gemm_steps, 4u * kGemmStepsPerBlock);
  EXPECT_EQ(dram_of(*trio->fsim, program.end()), dram_of(*trio->rtl, program.end()));
}

// --- Errors. ---

Insn finish(bool pop_next = false) { return {{false, pop_next, false, false}, Finish{}}; }
Insn load(Mem mem, uint32_t dram, uint32_t x) {
  Transfer t;
  t.mem = mem;
  t.dram = dram;
  t.y_size = 1;
  t.x_size = x;
  return {{}, t};
}

class Errors : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = make_rtl(small(), 1 << 16);
    SKIP_WITHOUT_TOOL(device);
    ASSERT_TRUE(device) << to_string(device.error());
    device_ = std::move(*device);
  }
  Error error_of(const std::vector<Insn>& insns, const LaunchOptions& options = {}) {
    const auto report = device_->launch(insns, options);
    EXPECT_FALSE(report);
    return report ? Error{} : report.error();
  }
  std::unique_ptr<Device> device_;
};

TEST_F(Errors, DeadlockNamesTheWaitingInstruction) {
  Insn waits = load(Mem::Inp, 16, 1);
  waits.deps.pop_next = true;
  const Error error = error_of({waits, finish(true)});
  EXPECT_EQ(error.kind, ErrorKind::Invalid);
  EXPECT_THAT(error.what, HasSubstr("deadlock"));
  EXPECT_THAT(error.why, HasSubstr("instruction 0"));
  EXPECT_THAT(error.why, HasSubstr("instruction 1"));
  EXPECT_TRUE(device_->launch({load(Mem::Uop, 16, 1), finish()}));  // it starts anew
}

TEST_F(Errors, LeftoverTokens) {
  Insn pushes = load(Mem::Inp, 16, 0);
  pushes.deps.push_next = true;
  EXPECT_THAT(error_of({pushes, load(Mem::Uop, 16, 4), finish()}).what, HasSubstr("tokens"));
}

TEST_F(Errors, FinishBeforeTheLastStore) {
  Transfer t;
  t.store = true;
  t.mem = Mem::Out;
  t.dram = 64;
  t.y_size = t.x_size = 4;
  t.x_stride = 4;
  EXPECT_THAT(error_of({Insn{{}, t}, finish()}).what, HasSubstr("FINISH is not ordered"));
}

TEST_F(Errors, OutsideOfDram) {
  EXPECT_THAT(error_of({load(Mem::Uop, 0x3fffffff, 4), finish()}).what, HasSubstr("outside"));
}

TEST_F(Errors, UndefinedInThisDesign) {
  Alu mul;
  mul.op = AluOp::Mul;
  mul.use_imm = true;
  const Error error = error_of({Insn{{}, mul}, finish()});
  EXPECT_THAT(error.what, HasSubstr("error bit"));
}

TEST_F(Errors, CycleLimit) {
  LaunchOptions options;
  options.max_cycles = 20;
  EXPECT_EQ(error_of({load(Mem::Uop, 16, 100), finish()}, options).kind, ErrorKind::Limit);
}

TEST_F(Errors, TooManyTokens) {
  std::vector<Insn> insns;
  for (int i = 0; i < 256; ++i) {
    insns.push_back(load(Mem::Inp, 16, 0));
    insns.back().deps.push_next = true;
  }
  insns.push_back(load(Mem::Uop, 16, 900));
  insns.push_back(finish());
  EXPECT_THAT(error_of(insns).why, HasSubstr("overflow"));
}

TEST_F(Errors, StreamWithoutFinish) {
  EXPECT_THAT(error_of({load(Mem::Uop, 16, 1)}).what, HasSubstr("FINISH"));
}

// --- Icarus. ---

struct BenchCase {
  Bench bench;
  const char *from, *to;  ///< a defect that the bench must find
};
constexpr BenchCase kBenches[] = {
    {Bench::Queue, "fresh ? written : read", "read"},
    {Bench::Tokens, "count + 8'h1", "count + 8'h2"},
    {Bench::Gemm, "hit ? written[", "1'b0 ? written["},
    {Bench::Gemm, "drain <= OVERHEAD - 3", "drain <= OVERHEAD - 4"},
    {Bench::Alu, "hit ? written :", "1'b0 ? written :"},
    {Bench::Alu, "shifted_left : shifted_right", "shifted_right : shifted_right"},
    {Bench::Dma, "d_pos <= d_row_pos + pitch_bytes", "d_pos <= d_row_pos + row_bytes"},
    {Bench::Dma, "run_addr + skip", "run_addr + 16'h1"},
};

TEST(Icarus, BenchesPassAndFindDefects) {
  for (const Config& config : {small(), odd()})
    for (const BenchCase& c : kBenches) {
      SCOPED_TRACE(fmt::format("bench {} {}", static_cast<int>(c.bench), c.from));
      bool found = false;
      for (uint64_t seed = 0; seed < 4; ++seed) {
        std::string text = testbench(config, c.bench, seed);
        const Status passes = run_testbench(text);
        SKIP_WITHOUT_TOOL(passes);
        ASSERT_TRUE(passes) << to_string(passes.error());
        const size_t at = text.find(c.from);
        ASSERT_NE(at, std::string::npos);
        text.replace(at, std::string_view(c.from).size(), c.to);
        const Status fails = run_testbench(text);
        found = found || (!fails && fails.error().kind == ErrorKind::Mismatch);
        if (found) break;
      }
      EXPECT_TRUE(found) << "the defect is not found";
    }
}

TEST(Icarus, DefaultDesign) {
  for (Bench bench : {Bench::Queue, Bench::Tokens, Bench::Gemm, Bench::Alu, Bench::Dma}) {
    const Status passes = run_testbench(testbench(Config{}, bench, 7));
    SKIP_WITHOUT_TOOL(passes);
    EXPECT_TRUE(passes) << to_string(passes.error());
  }
}

// --- Lint and area. ---

TEST(Lint, BuiltinAndRandomDesignsAreClean) {
  std::vector<Config> configs = {odd()};
  for (const std::string& builtin : builtin_configs()) configs.push_back(*builtin_config(builtin));
  Rng rng(9);
  for (int i = 0; i < 20; ++i) configs.push_back(random_design(rng));
  for (const Config& config : configs) {
    const Status status = lint(config);
    SKIP_WITHOUT_TOOL(status);
    EXPECT_TRUE(status) << label(config) << "\n" << to_string(status.error());
  }
}

/// Memories are block RAM and products are DSPs.
void expect_area(const Config& config) {
  const auto area = synthesise(config);
  SKIP_WITHOUT_TOOL(area);
  ASSERT_TRUE(area) << to_string(area.error());
  fmt::print("{}: {} LUT, {} FF, {} DSP, {} BRAM18, {} CARRY4 in {:.0f} s\n", label(config),
             area->lut, area->ff, area->dsp, area->bram18, area->carry, area->seconds);
  const int64_t products = int64_t{1}
                           << (config.log_batch + config.log_block_in + config.log_block_out);
  EXPECT_GE(area->dsp, products);
  EXPECT_LE(area->dsp, products + 16);
  // Bits of the five memories over the bits of a block RAM.
  const int64_t bits =
      (int64_t{1} << (config.log_uop_buff + 3)) + (int64_t{1} << (config.log_inp_buff + 3)) +
      (int64_t{1} << (config.log_wgt_buff + 3)) + (int64_t{1} << (config.log_acc_buff + 3));
  EXPECT_GE(area->bram18 * 18 * 1024, bits);
  EXPECT_LE(area->ff, 20000);
}

TEST(Area, OfSmallDesigns) {
  expect_area(small());
  Config wider = small();
  wider.log_block_in = wider.log_block_out = 3;
  wider.log_wgt_buff = 14;
  expect_area(wider);
}

TEST(AreaFull, OfThePynqs) { expect_area(Config{}); }

}  // namespace
}  // namespace tilewright::vta
