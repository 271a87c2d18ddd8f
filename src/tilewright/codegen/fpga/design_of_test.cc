// Values of designs that were made from programs, against the interpreter.
#include "tilewright/codegen/fpga/design_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/fpga/testing/run_design.h"
#include "tilewright/lower/testing/dataflow_programs.h"
#include "tilewright/schedule/testing/fpga_traces.h"

namespace tilewright::codegen {
namespace {

using testing::design_for;
using ::testing::HasSubstr;

/// What differs between the program in order and the design in the simulator; empty if nothing.
std::string wrong_with(const Func& func, uint64_t seed) {
  const interp::Arguments arguments = lower::testing::arguments_of(func, seed);
  const auto expected = interp::run(func, arguments);
  if (!expected) return "in order: " + to_string(expected.error());
  const auto design = design_for(func);
  if (!design) return to_string(design.error());
  std::vector<std::string> bytes = testing::bytes_of(func, arguments);
  const auto report = fpga::simulate(*design, {}, bytes);
  const std::string wrong =
      report ? testing::difference(func, *expected, bytes) : to_string(report.error());
  return wrong.empty() ? "" : wrong + "\n" + to_text(*design);
}

std::string refusal(std::string_view text) {
  const auto design = design_for(parse_func(text).value());
  return design ? "" : to_string(design.error());
}

TEST(DesignOf, ValuesAreThoseOfTheProgramInOrder) {
  for (const std::string_view text : lower::testing::dataflow_programs()) {
    const Func func = *parse_func(text);
    if (func.name == "rows") continue;  // refused, see below
    EXPECT_EQ(wrong_with(func, 1), "") << print(*lower::run_pipeline(func, "fpga"));
  }
}

TEST(DesignOf, SchedulesOfConvolutions) {
  int ran = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Rng rng(seed);
    const schedule::testing::FpgaConv d = schedule::testing::random_conv(rng);
    const std::string trace = schedule::testing::conv_trace(d);
    const Func func = schedule::testing::scheduled(schedule::testing::kFpgaConv, trace);
    if (d.us > 1) {
      // Which bank a pixel lies in depends on the tap of the window.
      EXPECT_THAT(wrong_with(func, seed), HasSubstr("which bank of P an access goes to")) << trace;
      continue;
    }
    EXPECT_EQ(wrong_with(func, seed), "") << trace;
    ++ran;
  }
  EXPECT_GE(ran, 8);
}

TEST(DesignOf, SchedulesOfProducts) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Rng rng(seed);
    const std::string trace =
        schedule::testing::product_trace(schedule::testing::random_product(rng));
    const Func func = schedule::testing::scheduled(schedule::testing::kFpgaProduct, trace);
    EXPECT_EQ(wrong_with(func, seed), "") << trace;
  }
}

/// `sum` between a tile of X in T, which is filled first, and Y, which gets S.
Func summed(const std::string& sum) {
  return *parse_func(
      "func f(X: i8[3,4], out Y: i32[4]) { for t in 2 @(pipeline=dataflow) { alloc T: i8[3,4] "
      "fpga.bram @(slots=2) for a in 3, b in 4 { T[a, b] = X[a, b] } alloc S: i32[4] fpga.bram "
      "@(slots=2) for i in 4 { S[i] = 7i32 } " +
      sum + " for j in 4 { Y[j] = S[j] } } }");
}

/// The nests of the process that computes.
std::vector<fpga::Nest> computing(const fpga::Design& design) {
  std::vector<fpga::Nest> nests;
  for (const fpga::Process& process : design.processes)
    for (const fpga::Item& item : process.items)
      if (const auto* nest = std::get_if<fpga::Nest>(&item); nest && process.name == "compute")
        nests.push_back(*nest);
  return nests;
}

TEST(DesignOf, SumsBeginWithTheirFirstTerm) {
  const auto nests = [](const std::string& sum) {
    const Func func = summed(sum);
    EXPECT_EQ(wrong_with(func, 3), "") << sum;
    const auto design = design_for(func);
    return design ? computing(*design).size() : 0;
  };
  EXPECT_EQ(nests("for k in 3, i in 4 { S[i] += i32(T[k, i]) }"), 1);
  EXPECT_EQ(nests("for u in 2 { for k in 3, i in 4 { S[i] += i32(T[k, i]) } }"), 1);
  EXPECT_EQ(nests("for i in 4, k in 3 { S[3 - i] += i32(T[k, i]) }"), 1);
  // One sum keeps what it was set to; terms that a condition leaves out; another order of nests.
  EXPECT_EQ(nests("for k in 3, i in 3 { S[i] += i32(T[k, i]) }"), 2);
  EXPECT_EQ(nests("for k in 3, i in 4 { if k + i >= 1 { S[i] += i32(T[k, i]) } }"), 2);
  EXPECT_EQ(nests("for k in 3, i in 4 { S[i] += i32(T[k, i]) } for i in 4 { S[i] += 5i32 }"), 2);
}

TEST(DesignOf, LoopsOfOneIterationMoveNothing) {
  // Around the tile of sums, as a batch of one is.
  const Func func = *parse_func(
      "func f(X: i8[1,3,4], out Y: i32[1,4]) { for t in 1 @(pipeline=dataflow) { alloc S: i32[1,4] "
      "fpga.bram @(slots=2) for i in 4 { S[t, i] = 7i32 } for u in 1 { alloc T: i8[1,3,4] "
      "fpga.bram @(slots=2) for a in 3, b in 4 { T[u, a, b] = X[t, a, b] } for k in 3, i in 4 { "
      "S[t, i] += i32(T[u, k, i]) } } for j in 4 { Y[t, j] = S[t, j] } } }");
  EXPECT_EQ(wrong_with(func, 3), "");
  const auto design = design_for(func);
  ASSERT_TRUE(design) << to_string(design.error());
  EXPECT_EQ(computing(*design).size(), 1);
}

TEST(DesignOf, IntegersAreAsWideAsTheyCanGet) {
  const Func func = *parse_func(
      "func f(X: i8[3,4], out Y: i32[4]) { for t in 2 @(pipeline=dataflow) { alloc T: i8[3,4] "
      "fpga.bram @(slots=2, partition=f_c1) for a in 3, b in 4 { T[a, b] = X[a, b] } alloc S: "
      "i32[4] fpga.bram @(slots=2) for i in 4 { for k in 3 unroll { S[i] += i32(T[k, i]) * "
      "i32(T[k, i]) } } for j in 4 { Y[j] = S[j] } } }");
  const auto design = design_for(func);
  ASSERT_TRUE(design) << to_string(design.error());
  const std::vector<fpga::Nest> nests = computing(*design);
  std::vector<std::string> types;
  for (const fpga::Node& node : nests.at(0).nodes)
    if (node.op == fpga::Op::Mul || node.op == fpga::Op::Add) types.push_back(name(node.type));
  EXPECT_THAT(types, ::testing::ElementsAre("i16", "i16", "i16", "i17", "i18", "i32"));
}

TEST(DesignOf, WhatTheVerilogLacksIsRefused) {
  for (const std::string_view text : lower::testing::dataflow_programs()) {
    const Func func = *parse_func(text);
    if (func.name != "rows") continue;
    EXPECT_THAT(wrong_with(func, 1), HasSubstr("`t == 0 || r0 >= 2` is no comparison of loops"));
  }
  const auto of = [](const std::string& value, const std::string& marks = "") {
    return refusal(
        "func f(X: f32[8], out Y: f32[8]) { for t in 2 @(pipeline=dataflow) { alloc T: f32[4] "
        "fpga.bram @(slots=2) for i in 4 { T[i] = X[t * 4 + i] } for j in 4 " +
        marks + "{ Y[t * 4 + j] = " + value + " } } }");
  };
  EXPECT_EQ(of("T[j] * 2.0"), "");
  EXPECT_THAT(of("exp(T[j])"), HasSubstr("the Verilog has no function `exp`"));
  EXPECT_THAT(of("T[j] / 3.0"), HasSubstr("the Verilog has no operator `/`"));
  EXPECT_THAT(of("T[j] + f32(j)"), HasSubstr("the Verilog has no cast from i64 to f32"));
  EXPECT_THAT(of("T[j]", "parallel "), HasSubstr("one pipeline"));
  // A running sum in registers: what is read was stored one iteration before.
  EXPECT_THAT(
      refusal("func f(X: f32[6], out Y: f32[6]) { for t in 2 @(pipeline=dataflow) { alloc T: "
              "f32[4] fpga.reg @(slots=2) T[0] = 0.0 for i in 3 { T[i + 1] = T[i] + X[t * 3 "
              "+ i] } for j in 3 { Y[t * 3 + j] = T[j + 1] } } }"),
      HasSubstr("T is read where an earlier iteration may have stored it"));
  EXPECT_THAT(refusal("func f(X: f32[8], inout S: f32[1]) { for i in 8 { S[0] += X[i] } }"),
              HasSubstr("S is summed up in memory outside of the chip"));
}

}  // namespace
}  // namespace tilewright::codegen
