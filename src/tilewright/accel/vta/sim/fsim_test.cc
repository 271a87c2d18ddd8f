#include "tilewright/accel/vta/sim/fsim.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tilewright/accel/vta/sim/testing/random_stream.h"
#include "tilewright/accel/vta/sim/tsim.h"

namespace tilewright::vta {
namespace {

using ::testing::HasSubstr;
using testing::RandomStream;
using testing::serialise;
using testing::StreamMaker;

/// The meaning of a stream in stream order, scalar by scalar; OUT is written beside ACC, as in
/// hardware.
class Reference {
 public:
  Reference(const Config& config, std::string dram) : c_(config), dram_(std::move(dram)) {
    for (const Mem mem : {Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out})
      sram_[mem].assign(c_.depth(mem) * c_.element_scalars(mem), 0);
    uop_.assign(c_.depth(Mem::Uop), 0);
  }

  void run(const Insn& insn) {
    if (const auto* t = std::get_if<Transfer>(&insn.op)) t->store ? store(*t) : load(*t);
    if (const auto* g = std::get_if<Gemm>(&insn.op)) gemm(*g);
    if (const auto* a = std::get_if<Alu>(&insn.op)) alu(*a);
  }
  const std::string& dram() const { return dram_; }

 private:
  int bits(Mem mem) const {
    if (mem == Mem::Acc8) return 8;
    return mem == Mem::Inp   ? c_.inp_bits()
           : mem == Mem::Wgt ? c_.wgt_bits()
           : mem == Mem::Acc ? 32
           : mem == Mem::Out ? c_.out_bits()
                             : 32;
  }
  int64_t get(uint64_t bit, int width) const {
    uint64_t value = 0;
    for (int i = 0; i < width; ++i) {
      const uint64_t at = bit + i;
      value |= uint64_t{static_cast<uint8_t>(dram_[at / 8]) >> (at % 8) & 1u} << i;
    }
    return static_cast<int64_t>(value << (64 - width)) >> (64 - width);
  }
  void put(uint64_t bit, int width, int64_t value) {
    for (int i = 0; i < width; ++i) {
      const uint64_t at = bit + i;
      const char mask = static_cast<char>(1 << at % 8);
      dram_[at / 8] =
          static_cast<char>(value >> i & 1 ? dram_[at / 8] | mask : dram_[at / 8] & ~mask);
    }
  }

  void load(const Transfer& t) {
    if (t.x_size == 0) return;
    const uint64_t n = c_.element_scalars(t.mem);
    const int width = bits(t.mem);
    uint64_t to = t.sram;
    for (int64_t y = -int64_t{t.y_pad_top}; y < int64_t{t.y_size} + t.y_pad_bottom; ++y)
      for (int64_t x = -int64_t{t.x_pad_left}; x < int64_t{t.x_size} + t.x_pad_right; ++x, ++to) {
        const bool pad = y < 0 || y >= t.y_size || x < 0 || x >= t.x_size;
        const uint64_t from = (t.dram + y * t.x_stride + x) * n * width;
        for (uint64_t i = 0; i < n; ++i) {
          const int64_t value = pad ? 0 : get(from + i * width, width);
          if (t.mem == Mem::Uop)
            uop_[to] = static_cast<uint32_t>(value);
          else
            sram_[t.mem == Mem::Acc8 ? Mem::Acc : t.mem][to * n + i] = static_cast<int32_t>(value);
        }
      }
  }
  void store(const Transfer& t) {
    const uint64_t n = c_.element_scalars(Mem::Out);
    for (uint64_t y = 0; y < t.y_size; ++y)
      for (uint64_t x = 0; x < t.x_size; ++x)
        for (uint64_t i = 0; i < n; ++i)
          put(((t.dram + y * t.x_stride + x) * n + i) * c_.out_bits(), c_.out_bits(),
              sram_[Mem::Out][(t.sram + y * t.x_size + x) * n + i]);
  }

  template <class Step>
  void steps(const Loops& l, Step step) {
    const int la = c_.log_depth(Mem::Acc), ls = std::max(la, c_.log_depth(Mem::Inp)),
              lw = c_.log_depth(Mem::Wgt);
    for (uint32_t o = 0; o < l.outer; ++o)
      for (uint32_t i = 0; i < l.inner; ++i)
        for (uint32_t k = l.uop_begin; k < l.uop_end; ++k) {
          const uint64_t u = uop_[k];
          step(o, (u & ((1u << la) - 1)) + o * l.dst_outer + i * l.dst_inner,
               (u >> la & ((1u << ls) - 1)) + o * l.src_outer + i * l.src_inner,
               (u >> (la + ls) & ((1u << lw) - 1)) + o * l.wgt_outer + i * l.wgt_inner);
        }
  }
  void put_acc(uint64_t at, uint32_t value) {
    sram_[Mem::Acc].at(at) = static_cast<int32_t>(value);
    sram_[Mem::Out].at(at) = static_cast<int32_t>(value);
  }
  void gemm(const Gemm& g) {
    const int rows = c_.batch(), in = c_.block_in(), out = c_.block_out();
    steps(g.loops, [&](uint32_t o, uint64_t d, uint64_t s, uint64_t w) {
      for (int b = 0; b < rows; ++b)
        for (int c = 0; c < out; ++c) {
          const uint64_t at = (d * rows + b) * out + c;
          int64_t sum = g.replace_first && o == 0 ? 0 : sram_[Mem::Acc].at(at);
          for (int j = 0; j < in && !g.reset; ++j)
            sum += int64_t{sram_[Mem::Inp].at((s * rows + b) * in + j)} *
                   sram_[Mem::Wgt].at((w * out + c) * in + j);
          put_acc(at, g.reset ? 0 : static_cast<uint32_t>(sum));
        }
    });
  }
  void alu(const Alu& a) {
    const int n = c_.batch() * c_.block_out();
    steps(a.loops, [&](uint32_t, uint64_t d, uint64_t s, uint64_t) {
      for (int i = 0; i < n; ++i) {
        const int64_t x = sram_[Mem::Acc].at(d * n + i);
        const int64_t y = a.use_imm ? a.imm : sram_[Mem::Acc].at(s * n + i);
        int64_t r = 0;
        switch (a.op) {
          case AluOp::Min:
            r = x < y ? x : y;
            break;
          case AluOp::Max:
            r = x > y ? x : y;
            break;
          case AluOp::Add:
            r = x + y;
            break;
          case AluOp::Mul:
            r = static_cast<int64_t>(uint64_t(x) * uint64_t(y));
            break;
          case AluOp::Shr:
            r = y >= 0 ? x >> y : x * (int64_t{1} << -y);
            break;
        }
        put_acc(d * n + i, static_cast<uint32_t>(r));
      }
    });
  }

  Config c_;
  std::string dram_;
  std::map<Mem, std::vector<int32_t>> sram_;
  std::vector<uint32_t> uop_;
};

struct Sizes {
  const char* name;
  int batch, block_in, block_out, inp, wgt, out, uop_buff, inp_buff, wgt_buff, acc_buff;
  bool extras;
};

Config make(const Sizes& s) {
  Config c;
  c.name = s.name;
  c.log_batch = s.batch, c.log_block_in = s.block_in, c.log_block_out = s.block_out;
  c.log_inp_width = s.inp, c.log_wgt_width = s.wgt, c.log_out_width = s.out;
  c.log_uop_buff = s.uop_buff, c.log_inp_buff = s.inp_buff;
  c.log_wgt_buff = s.wgt_buff, c.log_acc_buff = s.acc_buff;
  c.has_mul = c.has_acc8 = s.extras;
  c.extensions = {s.extras, s.extras, s.extras};
  if (s.extras) c.timing.bus_bytes = 32;
  return c;
}

constexpr Sizes kSizes[] = {
    {"default", 0, 4, 4, 3, 3, 3, 15, 15, 18, 17, false},
    {"extended", 0, 4, 4, 3, 3, 3, 14, 14, 17, 16, true},
    {"batch 2", 1, 4, 4, 3, 3, 3, 15, 15, 18, 17, false},
    {"batch 4, 8x8", 2, 3, 3, 3, 3, 3, 15, 16, 16, 17, true},
    {"32x32", 0, 5, 5, 3, 3, 3, 15, 15, 19, 17, false},
    {"4x4, 16-bit out", 0, 2, 2, 3, 3, 4, 12, 12, 14, 14, true},
    {"8 in, 32 out", 0, 3, 5, 3, 3, 3, 12, 13, 16, 16, false},
    {"4-bit", 0, 4, 4, 2, 2, 3, 12, 13, 16, 16, true},
    {"2-bit weights", 0, 4, 4, 3, 1, 2, 12, 13, 14, 16, false},
    {"1-bit", 0, 4, 4, 0, 0, 0, 12, 10, 13, 16, true},
    {"16-bit", 1, 3, 3, 4, 4, 5, 12, 14, 16, 16, false},
    {"1 in, 2 out", 0, 0, 1, 3, 3, 3, 12, 8, 9, 12, true},
};

TEST(FsimTestSlow, RandomStreamsMeanWhatTheSpecSays) {
  Rng rng(7);
  for (const Sizes& sizes : kSizes) {
    const Config config = make(sizes);
    SCOPED_TRACE(sizes.name);
    ASSERT_TRUE(check(config)) << to_string(check(config).error());
    for (int round = 0; round < 30; ++round) {
      const RandomStream stream = StreamMaker(rng, config).make(24);
      Reference reference(config, stream.dram);
      for (const Insn& insn : stream.insns) reference.run(insn);
      LaunchReport reports[2];
      const std::unique_ptr<Device> devices[] = {make_fsim(config, stream.dram.size()),
                                                 make_tsim(config, stream.dram.size())};
      for (int d = 0; d < 2; ++d) {
        ASSERT_TRUE(devices[d]->write(0, stream.dram));
        auto report = devices[d]->launch(stream.insns);
        ASSERT_TRUE(report) << to_string(report.error());
        reports[d] = *report;
        std::string dram(stream.dram.size(), '\0');
        ASSERT_TRUE(devices[d]->read(0, dram.data(), dram.size()));
        ASSERT_TRUE(dram == reference.dram()) << devices[d]->name() << " round " << round;
      }
      EXPECT_EQ(reports[0].counters.gemm_steps, reports[1].counters.gemm_steps);
      EXPECT_EQ(reports[0].counters.out_store_bytes, reports[1].counters.out_store_bytes);
      EXPECT_EQ(reports[0].cycles, 0u);
      EXPECT_GT(reports[1].cycles, 0u);
    }
  }
}

// Small programs by hand on the default configuration. Addresses in elements of each memory.
class ByHand : public ::testing::Test {
 protected:
  static Insn load(Mem mem, uint32_t sram, uint32_t dram, uint32_t x, uint32_t y = 1) {
    Transfer t;
    t.mem = mem, t.sram = sram, t.dram = dram, t.x_size = x, t.y_size = y, t.x_stride = x;
    return {{}, t};
  }
  static Insn store(uint32_t sram, uint32_t dram, uint32_t x) {
    Insn insn = load(Mem::Out, sram, dram, x);
    std::get<Transfer>(insn.op).store = true;
    return insn;
  }
  static Loops loops(uint32_t begin, uint32_t end) {
    Loops l;
    l.uop_begin = begin, l.uop_end = end;
    return l;
  }
  static Insn imm(AluOp op, int16_t value) { return {{}, Alu{op, true, value, loops(0, 1)}}; }
  static Insn finish() { return {{}, Finish{}}; }

  void put_acc(uint32_t element, int32_t value) {
    std::string bytes;
    for (int i = 0; i < 16; ++i) bytes.append(reinterpret_cast<const char*>(&value), 4);
    ASSERT_TRUE(device_->write(element * 64, bytes));
  }
  void put_uop(uint32_t index, const Uop& uop) {
    const uint32_t word = encode(config_, uop);
    ASSERT_TRUE(device_->write(index * 4, {reinterpret_cast<const char*>(&word), 4}));
  }
  int8_t out(uint32_t element, int lane = 0) {
    char byte = 0;
    EXPECT_TRUE(device_->read(element * 16 + lane, &byte, 1));
    return static_cast<int8_t>(byte);
  }
  void run(const std::vector<Insn>& insns) {
    auto report = device_->launch(serialise(config_, insns));
    ASSERT_TRUE(report) << to_string(report.error());
  }
  std::string error(const std::vector<Insn>& insns) {
    auto report = device_->launch(insns);
    auto timed = make_tsim(config_, kDram);
    auto again = timed->launch(insns);
    EXPECT_EQ(report.has_value(), again.has_value());
    if (report) return "no error";
    EXPECT_EQ(report.error().kind, ErrorKind::Invalid);
    EXPECT_EQ(report.error().what, again.error().what);
    return to_string(report.error());
  }

  static constexpr uint64_t kDram = 1 << 16;
  Config config_;
  std::unique_ptr<Device> device_ = make_fsim(config_, kDram);
};

TEST_F(ByHand, ShiftsClipsAndNarrows) {
  put_uop(1024, {0, 0, 0});
  struct Case {
    int32_t value;
    AluOp op;
    int16_t operand;
    int8_t result;
  };
  const Case cases[] = {
      {-1000, AluOp::Shr, 3, -125},    {-1001, AluOp::Shr, 3, -126},   {3, AluOp::Shr, -5, 96},
      {0x40000000, AluOp::Shr, -1, 0}, {-1, AluOp::Shr, 31, -1},       {1, AluOp::Shr, -31, 0},
      {300, AluOp::Min, 127, 127},     {-300, AluOp::Max, -128, -128}, {300, AluOp::Add, 0, 44},
      {0x7fffffff, AluOp::Add, 1, 0},  {-1, AluOp::Min, -32768, 0},
  };
  for (const Case& c : cases) {
    put_acc(16, c.value);
    run({load(Mem::Uop, 0, 1024, 1), load(Mem::Acc, 0, 16, 1), imm(c.op, c.operand),
         store(0, 512, 1), finish()});
    EXPECT_EQ(out(512, 5), c.result) << c.value << " " << static_cast<int>(c.op);
  }
}

TEST_F(ByHand, StoresWhatGemmAndAluWroteNotWhatWasLoaded) {
  put_uop(1024, {0, 0, 0});
  put_acc(16, 11);
  put_acc(17, 22);
  run({load(Mem::Uop, 0, 1024, 1),
       load(Mem::Acc, 0, 16, 1),
       store(0, 512, 1),
       imm(AluOp::Add, 1),
       load(Mem::Acc, 0, 17, 1),
       store(0, 513, 1),
       imm(AluOp::Add, 1),
       store(0, 514, 1),
       {{}, Gemm{true, false, loops(0, 1)}},
       load(Mem::Acc, 0, 17, 1),
       store(0, 515, 1),
       finish()});
  EXPECT_EQ(out(512), 0);   // OUT as at power-up
  EXPECT_EQ(out(513), 12);  // the load did not touch OUT
  EXPECT_EQ(out(514), 23);
  EXPECT_EQ(out(515), 0);  // reset
}

TEST_F(ByHand, MemoriesPersistBetweenLaunches) {
  put_uop(1024, {0, 0, 0});
  put_acc(16, 7);
  run({load(Mem::Uop, 0, 1024, 1), load(Mem::Acc, 0, 16, 1), finish()});
  run({imm(AluOp::Add, 1), finish()});
  run({store(0, 512, 1), finish()});
  EXPECT_EQ(out(512), 8);
}

TEST_F(ByHand, YSizeZeroStillPads) {
  put_uop(1024, {0, 0, 0});
  put_acc(16, 7);
  Insn pad = load(Mem::Acc, 0, 16, 1, 0);
  std::get<Transfer>(pad.op).y_pad_top = 1;
  run({load(Mem::Uop, 0, 1024, 1), load(Mem::Acc, 0, 16, 1), pad, imm(AluOp::Add, 1),
       store(0, 512, 1), finish()});
  EXPECT_EQ(out(512), 1);
}

TEST_F(ByHand, ReportsRangesWithTheInstruction) {
  put_uop(1024, {2047, 0, 0});
  Insn far = load(Mem::Inp, 2040, 0, 9);
  EXPECT_THAT(error({far, finish()}), HasSubstr("instruction 0 (load.inp"));
  EXPECT_THAT(error({far, finish()}), HasSubstr("2049 of 2048"));
  EXPECT_THAT(error({load(Mem::Inp, 0, 4095, 2), finish()}), HasSubstr("beyond the end of DRAM"));
  EXPECT_THAT(
      error({load(Mem::Uop, 0, 1024, 1), {{}, Alu{AluOp::Add, true, 1, {0, 9000}}}, finish()}),
      HasSubstr("beyond the end of uop"));
  Insn alu{{}, Alu{AluOp::Add, true, 1, loops(0, 1)}};
  std::get<Alu>(alu.op).loops.outer = 3;
  std::get<Alu>(alu.op).loops.src_outer = 1024;
  EXPECT_THAT(error({alu, finish()}), HasSubstr("source index beyond the end of acc"));
  std::get<Alu>(alu.op).loops.outer = 0;
  EXPECT_EQ(error({alu, finish()}), "no error");
  auto report = device_->launch(
      {load(Mem::Uop, 0, 1024, 1), {{}, Gemm{true, false, {0, 1, 1, 2, 0, 1}}}, finish()});
  ASSERT_FALSE(report);
  EXPECT_THAT(to_string(report.error()), HasSubstr("instruction 1 (gemm.reset"));
  EXPECT_THAT(to_string(report.error()), HasSubstr("element 2048 of 2048"));
}

TEST_F(ByHand, ReportsShiftAmounts) {
  EXPECT_THAT(error({imm(AluOp::Shr, 32), finish()}), HasSubstr("shifts by 32"));
  EXPECT_THAT(error({imm(AluOp::Shr, -32), finish()}), HasSubstr("-31..31"));
  put_acc(16, 99);
  auto report = device_->launch(
      {load(Mem::Acc, 0, 16, 1), {{}, Alu{AluOp::Shr, false, 0, loops(0, 1)}}, finish()});
  ASSERT_FALSE(report);
  EXPECT_THAT(to_string(report.error()), HasSubstr("instruction 1 (alu.shr"));
  EXPECT_THAT(to_string(report.error()), HasSubstr("shifts by 99"));
}

TEST_F(ByHand, ReportsTokens) {
  Insn waits = imm(AluOp::Add, 1);
  waits.deps.pop_prev = true;
  EXPECT_THAT(error({waits, finish()}), HasSubstr("deadlock: instruction 0 (alu.add"));
  EXPECT_THAT(error({waits, finish()}), HasSubstr("no token in load -> compute"));
  Insn pushes = imm(AluOp::Add, 1);
  pushes.deps.push_next = true;
  EXPECT_THAT(error({pushes, finish()}), HasSubstr("1 in compute -> store"));
  EXPECT_EQ(error({finish()}), "no error");  // nothing is left of the launches above
  Insn illegal = load(Mem::Inp, 0, 0, 1);
  illegal.deps.pop_prev = true;
  EXPECT_THAT(error({illegal, finish()}), HasSubstr("module before load"));
  Insn last = store(0, 0, 1);
  last.deps.push_next = true;
  EXPECT_THAT(error({last, finish()}), HasSubstr("module after store"));
}

TEST_F(ByHand, ReportsWhatTheDesignLacks) {
  EXPECT_THAT(error({}), HasSubstr("does not end with FINISH"));
  EXPECT_THAT(error({finish(), finish()}), HasSubstr("instruction 0 (finish) is not the last"));
  EXPECT_THAT(error({imm(AluOp::Mul, 2), finish()}), HasSubstr("has_mul"));
  EXPECT_THAT(error({load(Mem::Acc8, 0, 0, 1), finish()}), HasSubstr("has_acc8"));
  EXPECT_THAT(error({load(Mem::Out, 0, 0, 1), finish()}), HasSubstr("loads into out"));
  EXPECT_THAT(error({{{}, Gemm{false, true, loops(0, 1)}}, finish()}), HasSubstr("fused_reset"));
  Insn padded = store(0, 0, 1);
  std::get<Transfer>(padded.op).x_pad_left = 1;
  EXPECT_THAT(error({padded, finish()}), HasSubstr("stores with padding"));
}

TEST_F(ByHand, HostRangesAreChecked) {
  EXPECT_FALSE(device_->write(kDram - 1, "ab"));
  char c = 0;
  EXPECT_FALSE(device_->read(kDram, &c, 1));
  EXPECT_TRUE(device_->write(kDram - 1, "a"));
  EXPECT_TRUE(device_->read(kDram - 1, &c, 1));
  EXPECT_EQ(c, 'a');
}

}  // namespace
}  // namespace tilewright::vta
