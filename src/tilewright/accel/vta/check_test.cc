#include "tilewright/accel/vta/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/vta/testing/findings.h"

namespace tilewright::vta {
namespace {

using namespace testing;  // NOLINT: the helpers of this layer
using ::testing::HasSubstr;
TEST(Check, TheHandProgramIsClean) {
  expect_clean(changed([](Insns&) {}));
}

TEST(Check, FieldRange) {
  expect_finding(changed([](Insns& p) { transfer(p[1]).x_stride = 65536; }), Rule::FieldRange, 1,
                 "`x_stride` = 65536");
  expect_clean(changed([](Insns& p) { transfer(p[1]).x_stride = 65535; }));
}

TEST(Check, IllegalFlag) {
  expect_finding(changed([](Insns& p) { p[0].deps.pop_prev = true; }), Rule::IllegalFlag, 0,
                 "load");
  expect_finding(changed([](Insns& p) { p[6].deps.push_next = true; }), Rule::IllegalFlag, 6,
                 "store");
}

TEST(Check, Deadlock) {
  const auto findings = changed([](Insns& p) { p[1].deps.push_next = false; });
  expect_finding(findings, Rule::Deadlock, 4, "token 1 from load");
  expect_finding(findings, Rule::Deadlock, 6, "token 1 from compute");
  // Each waits for the other, although the tokens add up.
  expect_finding(check_insns({with({false, true, false, true}, nothing(Mem::Inp)),
                              with({true, false, true, false}, nothing(Mem::Uop)),
                              {{}, Finish{}}}),
                 Rule::Deadlock, 0, "token 1 from compute");
  expect_clean(check_insns(
      {with(kPushNext, nothing(Mem::Inp)), with({true, false, true, false}, nothing(Mem::Uop)),
       with({false, true, false, true}, nothing(Mem::Inp)), with(kPopPrev, {{}, Finish{}})}));
}

TEST(Check, FetchBlocksBehindAFullCommandQueue) {
  const auto program = [](size_t loads) {
    Insns p = {with(kPopNext, nothing(Mem::Inp))};
    for (size_t i = 1; i < loads; ++i) p.push_back(nothing(Mem::Inp));
    p.push_back(with(kPushPrev, nothing(Mem::Uop)));
    p.push_back(with(kPushNext, nothing(Mem::Inp)));
    p.push_back(with(kPopPrev, {{}, Finish{}}));
    return p;
  };
  expect_clean(check_insns(program(512)));
  expect_finding(check_insns(program(513)), Rule::Deadlock, 512, "never fetched");
}

TEST(Check, LeftoverToken) {
  expect_finding(changed([](Insns& p) { p[5].deps.push_prev = true; }), Rule::LeftoverToken, 5,
                 "1 of 1 tokens from compute to load");
  expect_clean(changed([](Insns& p) {
    p[5].deps.push_prev = true;
    p.insert(p.begin() + 6, {with({false, true, false, true}, nothing(Mem::Inp)),
                             with(kPopPrev, nothing(Mem::Uop))});
  }));
}

TEST(Check, TokenOverflow) {
  const auto many = [](size_t count) {
    return [count](Insns& p) {
      const Insns pushes(count, with(kPushNext, nothing(Mem::Inp)));
      const Insns pops(count, with(kPopPrev, nothing(Mem::Uop)));
      p.insert(p.begin() + 2, pops.begin(), pops.end());
      p.insert(p.begin(), pushes.begin(), pushes.end());
    };
  };
  expect_clean(changed(many(253)));  // and the one of the program: 254
  expect_finding(changed(many(254)), Rule::TokenOverflow, 255, "255 tokens from load to compute");
}

TEST(Check, TokensThatThePusherKnowsTakenDoNotAddUp) {
  Insns p = {with(kPushNext, nothing(Mem::Inp))};
  for (int i = 0; i < 300; ++i) {
    p.push_back(with({true, false, true, false}, nothing(Mem::Uop)));
    p.push_back(with({false, true, false, true}, nothing(Mem::Inp)));
  }
  p.push_back(with(kPopPrev, {{}, Finish{}}));
  expect_clean(check_insns(p));
}

TEST(Check, SramRange) {
  expect_clean(changed([](Insns& p) { transfer(p[2]).sram = 0; }));
  expect_finding(changed([](Insns& p) { transfer(p[1]).sram = 2045; }), Rule::SramRange, 1,
                 "4 elements from 2045, but inp has 2048");
  expect_finding(
      changed([](Insns& p) { transfer(p[0]).y_pad_bottom = 15, transfer(p[0]).sram = 1020; }),
      Rule::SramRange, 0, "wgt has 1024");
  const auto loops = [](uint32_t outer, uint32_t Loops::* factor, uint32_t value) {
    return changed([&](Insns& p) {
      Loops& all = std::get<Gemm>(p[4].op).loops;
      all.outer = outer;
      all.*factor = value;
    });
  };
  expect_finding(loops(3, &Loops::dst_outer, 1023), Rule::SramRange, 4,
                 "destination index reaches 2049, but acc has 2048");
  expect_finding(loops(3, &Loops::src_outer, 2000), Rule::SramRange, 4, "input index reaches 4003");
  expect_finding(loops(3, &Loops::wgt_outer, 512), Rule::SramRange, 4, "weight index reaches 1024");
  expect_finding(changed([](Insns& p) { std::get<Gemm>(p[4].op).loops.uop_end = 8193; }),
                 Rule::SramRange, 4, "micro-ops 0..8193");
  expect_finding(changed([](Insns& p) { std::get<Gemm>(p[4].op).loops.uop_begin = 5; }),
                 Rule::SramRange, 4, "micro-ops 5..4");
  // The source of an immediate operation counts, too.
  expect_finding(changed([](Insns& p) {
                   Loops& all = std::get<Alu>(p[5].op).loops;
                   all.inner = 2;
                   all.src_inner = 2047;
                 }),
                 Rule::SramRange, 5, "source index reaches 2050");
}

TEST(Check, DramRange) {
  expect_finding(changed([](Insns& p) { transfer(p[1]).dram = 255; }), Rule::DramRange, 1,
                 "0xff0..0x1030, but the image is 0x1000..0x8000");
  expect_finding(changed([](Insns& p) { transfer(p[6]).dram = 0x8000 / 16 - 3; }), Rule::DramRange,
                 6, "0x8010");
  expect_clean(changed([](Insns& p) { transfer(p[6]).dram = 0x8000 / 16 - 4; }));
  expect_finding(changed([](Insns& p) {
                   transfer(p[6]).y_size = 2;
                   transfer(p[6]).x_size = 1;
                   transfer(p[6]).x_stride = 65535;
                 }),
                 Rule::DramRange, 6, "touches DRAM");
}

TEST(Check, RaceBetweenLoadAndGemm) {
  const auto findings = changed([](Insns& p) {
    p[1].deps.push_next = false;
    p[4].deps.pop_prev = false;
  });
  expect_finding(findings, Rule::Race, 4, "reads inp[0], and insn 1 (load) writes it");
  expect_finding(findings, Rule::Race, 4, "reads wgt[0], and insn 0 (load) writes it");
}

TEST(Check, RaceOnReuse) {
  // A second load into the same elements: needs a token back.
  const auto program = [](bool token) {
    return changed([=](Insns& p) {
      p[4].deps.push_prev = token;
      p.insert(p.begin() + 5, {with({false, token, false, true}, load(Mem::Inp, 2, kInpAt, 4)),
                               with(kPopPrev, gemm(over_uops(0, 4)))});
    });
  };
  expect_clean(program(true));
  expect_finding(program(false), Rule::Race, 4, "insn 5 (load) writes it");
}

TEST(Check, RaceIsExactAboutElements) {
  // The hull 0..3 of the GEMM's inputs holds 1, which only the load touches.
  const auto program = [](uint32_t sram) {
    return changed([=](Insns& p) {
      p[3] = gemm(over_uops(0, 1), true);
      Loops loops = over_uops(0, 1);
      loops.inner = 2;
      loops.src_inner = 3;
      loops.dst_inner = 1;
      std::get<Gemm>(p[3].op).loops = loops;
      p[4] = with(kPopPrev, gemm(loops));
      Loops two = over_uops(0, 2);
      p[5] = with(kPushNext, alu_imm(AluOp::Max, 0, two));
      transfer(p[6]).x_size = transfer(p[6]).x_stride = 2;
      p.insert(p.begin() + 2, load(Mem::Inp, sram, kInpAt, 1));
      p.insert(p.end() - 1, with(kPushNext, nothing(Mem::Inp)));
      p.insert(p.end() - 1, with(kPopPrev, nothing(Mem::Uop)));
    });
  };
  expect_clean(program(1));
  expect_clean(program(2));
  expect_finding(program(3), Rule::Race, 5, "inp[3]");
}

TEST(Check, RaceBetweenComputeAndStore) {
  const auto findings = changed([](Insns& p) {
    p[5].deps.push_next = false;
    p[6].deps.pop_prev = false;
  });
  expect_finding(findings, Rule::Race, 6, "reads out[0], and insn 5 (compute) writes it");
}

TEST(Check, RaceOnDram) {
  // What is stored is loaded again: store, compute, load need a chain of two tokens.
  const auto program = [](bool token, uint32_t dram) {
    return changed([=](Insns& p) {
      p.back().deps = {};
      p.insert(p.end() - 1, {with({false, true, token, false}, nothing(Mem::Uop)),
                             with({false, token, false, true}, load(Mem::Inp, 10, dram, 2)),
                             with(kPopPrev, nothing(Mem::Uop))});
    });
  };
  expect_clean(program(true, kOutAt + 3));
  expect_finding(program(false, kOutAt + 3), Rule::Race, 6, "DRAM 0x4030");
  expect_clean(program(false, kOutAt + 4));
  expect_clean(program(false, kOutAt - 2));
}

TEST(Check, RaceOnDramLooksAtRows) {
  // A store of two rows with a gap, and loads of what lies in and around the gap.
  const auto program = [](uint32_t dram) {
    return changed([=](Insns& p) {
      Transfer& move = transfer(p[6]);
      move.y_size = 2;
      move.x_size = 2;
      move.x_stride = 8;
      p.insert(p.begin() + 2, load(Mem::Inp, 10, dram, 1));
      p.insert(p.end() - 1, with(kPushNext, nothing(Mem::Inp)));
      p.insert(p.end() - 1, with(kPopPrev, nothing(Mem::Uop)));
    });
  };
  for (const uint32_t gap : {2u, 7u, 10u}) expect_clean(program(kOutAt + gap));
  for (const uint32_t row : {0u, 1u, 8u, 9u})
    expect_finding(program(kOutAt + row), Rule::Race, 7, "insn 2 (load) reads it");
}

TEST(Check, FinishOrder) {
  expect_finding(changed([](Insns& p) {
                   p[6].deps.push_prev = false;
                   p[7].deps.pop_next = false;
                 }),
                 Rule::FinishOrder, 7, "not ordered after the last STORE");
  expect_finding(changed([](Insns& p) { p.push_back(nothing(Mem::Uop)); }), Rule::FinishOrder, 7,
                 "not the last");
  expect_finding(changed([](Insns& p) { p.insert(p.begin(), {{}, Finish{}}); }), Rule::FinishOrder,
                 8, "2 FINISH");
  expect_finding(changed([](Insns& p) { p[7].op = Transfer{false, Mem::Uop}; }), Rule::FinishOrder,
                 7, "0 FINISH");
  expect_finding(changed([](Insns& p) { p.insert(p.begin() + 5, load(Mem::Inp, 9, kInpAt, 1)); }),
                 Rule::FinishOrder, 8, "last instruction of load", /*error=*/false);
  expect_finding(check_insns({}), Rule::FinishOrder, 0, "0 FINISH");
}

TEST(Check, Undefined) {
  expect_finding(changed([](Insns& p) { p.erase(p.begin() + 3); }), Rule::Undefined, 3,
                 "reads acc[0], which nothing wrote");
  expect_finding(changed([](Insns& p) { transfer(p[1]).x_size = 3; }), Rule::Undefined, 4,
                 "inp[3]");
  expect_finding(changed([](Insns& p) { transfer(p[0]) = {}; }), Rule::Undefined, 4, "wgt[0]");
  expect_finding(changed([](Insns& p) { transfer(p[2]).sram = 1; }), Rule::Undefined, 3, "uop[0]");
  expect_finding(changed([](Insns& p) { transfer(p[6]).sram = 1; }), Rule::Undefined, 6, "out[4]");
  // Loaded into ACC only: OUT holds nothing.
  expect_finding(changed([](Insns& p) {
                   p[5] = with(kPushNext, nothing(Mem::Uop)),
                   p[4] = with(kPopPrev, nothing(Mem::Uop)), p[3] = load(Mem::Acc, 0, kAccAt, 4);
                 }),
                 Rule::Undefined, 6, "out[0]");
}

TEST(Check, MicroOpsThatTheProgramItselfWrites) {
  const auto findings = changed([](Insns& p) {
    transfer(p[6]).dram = kUopAt / 4;
    p.back().deps = {};
    p.insert(p.end() - 1, with(kPopNext, load(Mem::Uop, 0, kUopAt, 8)));
  });
  expect_finding(findings, Rule::Undefined, 7, "not known before it runs");
}

TEST(Check, BadTransfer) {
  expect_finding(changed([](Insns& p) { transfer(p[6]).mem = Mem::Acc; }), Rule::BadTransfer, 6,
                 "stores acc");
  expect_finding(changed([](Insns& p) { transfer(p[6]).x_pad_left = 1; }), Rule::BadTransfer, 6,
                 "padding");
  expect_finding(changed([](Insns& p) { transfer(p[2]).mem = Mem::Out; }), Rule::BadTransfer, 2,
                 "loads out");
  expect_clean(changed([](Insns& p) { p.insert(p.begin() + 6, {{}, Transfer{true, Mem::Uop}}); }));
}

TEST(Check, ShiftRange) {
  const auto shift = [](int16_t amount) {
    return changed(
        [=](Insns& p) { p[5] = with(kPushNext, alu_imm(AluOp::Shr, amount, over_uops(0, 4))); });
  };
  for (const int16_t amount : {32, -32, 1000})
    expect_finding(shift(amount), Rule::ShiftRange, 5, "shifts by");
  for (const int16_t amount : {16, 31, -17, -31})
    expect_finding(shift(amount), Rule::NotPortable, 5, "-16..15", /*error=*/false);
  for (const int16_t amount : {-16, -1, 0, 15}) expect_clean(shift(amount));
}

TEST(Check, MemoriesKeepBetweenRunsButNotEverywhere) {
  Program program = hand_program();
  program.runs.push_back(program.runs[0]);
  expect_clean(check_program(program));
  program.runs[1].insns.erase(program.runs[1].insns.begin());  // the weights of run 0
  const auto findings = check_program(program);
  ASSERT_EQ(findings.size(), 1u) << print(findings);
  EXPECT_EQ(findings[0].run, 1u);
  expect_finding(findings, Rule::NotPortable, 3, "wgt[0], which only run 0 wrote", false);
}

TEST(Check, PatchesChangeMicroOps) {
  Program program = hand_program();
  program.runs.push_back(program.runs[0]);
  const uint32_t word = encode(program.config, Uop{2000, 0, 0});
  Patch patch = {12288, {}};
  for (uint32_t b = 0; b < 4; ++b) patch.data += static_cast<char>(word >> (8 * b) & 0xff);
  program.runs[1].patches = {patch};
  const auto findings = check_program(program);
  // Now element 2000 is computed in the place of element 0.
  expect_finding(findings, Rule::NotPortable, 6, "out[0], which only run 0 wrote", false);
  for (const Finding& f : findings) EXPECT_EQ(f.run, 1u);
  program.runs[1].patches[0].address = 28672 + 4096;
  expect_finding(check_program(program), Rule::DramRange, 0, "patch");
}

TEST(Check, FourModules) {
  Config config;
  config.extensions.pipeline4 = true;
  // GEMM and ALU are neighbours now; the ALU hands on to the store.
  const Insns good = {load(Mem::Wgt, 0, kWgtAt, 1),
                      with(kPushNext, load(Mem::Inp, 0, kInpAt, 4)),
                      load(Mem::Uop, 0, kUopAt, 8),
                      gemm(over_uops(0, 4), true),
                      with({true, false, false, true}, gemm(over_uops(0, 4))),
                      with({true, false, false, true}, alu_imm(AluOp::Max, 0, over_uops(0, 4))),
                      with({true, false, true, false}, store(0, kOutAt, 4)),
                      with(kPopNext, {{}, Finish{}})};
  expect_clean(check_insns(good, config));
  Insns racy = good;
  racy[4].deps.push_next = racy[5].deps.pop_prev = false;
  const auto findings = check_insns(racy, config);
  expect_finding(findings, Rule::Race, 5, "acc[0], and insn 4 (compute)");
  expect_finding(findings, Rule::Race, 5, "uop[0], and insn 2 (compute)");
  expect_finding(findings, Rule::FinishOrder, 7, "last instruction of compute", false);
}

TEST(Check, FusedResetNeedsNoReset) {
  Config config;
  config.extensions.fused_reset = true;
  const auto program = [&](bool first, uint32_t dst_outer) {
    return changed(
        [=](Insns& p) {
          Gemm fused = {false, first, over_uops(0, 4)};
          fused.loops.outer = 3;
          fused.loops.dst_outer = dst_outer;
          p[4] = with(kPopPrev, {{}, fused});
          p.erase(p.begin() + 3);
        },
        config);
  };
  expect_clean(program(true, 0));
  expect_finding(program(false, 0), Rule::Undefined, 3, "acc[0]");
  expect_finding(program(true, 2), Rule::Undefined, 3, "acc[4]");  // only replaced in step 0
}

TEST(Check, LongStreamsStaySmallReports) {
  Insns p;
  for (int i = 0; i < 5000; ++i) p.push_back(load(Mem::Inp, 2047, 0, 2));
  p.push_back({{}, Finish{}});
  EXPECT_EQ(check_insns(p).size(), 100u);
}

}  // namespace
}  // namespace tilewright::vta
