// Initiation intervals worked out by hand.
#include "tilewright/lower/initiation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/testing/dataflow_programs.h"

namespace tilewright::lower {
namespace {

using ::testing::HasSubstr;

hw::FpgaDevice device() {
  hw::FpgaDevice d;
  d.name = "test";
  for (const char* dtype : {"f32", "i8"}) {
    const bool real = std::string_view(dtype) == "f32";
    hw::FpgaOperator mac{"mac", dtype, hw::FpgaPath::Rtl};
    mac.recurrence = real ? 12 : 4;
    d.operators.push_back(mac);
  }
  hw::FpgaOperator max{"max", "f32", hw::FpgaPath::Rtl};
  max.latency = 2;
  d.operators.push_back(max);
  return d;
}

/// `cycles = max(wanted, ports, recurrence)` and why, of the only marked loop of all processes.
std::string initiation(std::string_view text) {
  const auto func = parse_func(text);
  if (!func) return to_string(func.error());
  const auto program = processes_of(*func);
  if (!program) return to_string(program.error());
  std::string all;
  for (const Process& p : program->regions.at(0).processes) {
    const auto found = initiations_of(p, func->math, device(), hw::FpgaPath::Rtl);
    if (!found) return found.error().what + ": " + found.error().why;
    for (const Initiation& i : *found)
      all += i.loop + ": " + std::to_string(i.cycles()) + " = max(" + std::to_string(i.wanted) +
             ", " + std::to_string(i.ports) + ", " + std::to_string(i.recurrence) + ") " + i.why();
  }
  return all;
}

/// `text` with the first `from` replaced.
std::string with(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const size_t at = out.find(from);
  if (at == std::string::npos) throw std::runtime_error("no " + std::string(from));
  return out.replace(at, from.size(), to);
}

TEST(Initiation, AConvolution) {
  using testing::kTiledConv;
  // Inside of the reduction over s: 2 rows of 4 pixels between two updates of an element, 12 / 8.
  EXPECT_EQ(initiation(kTiledConv),
            "x: 2 = max(1, 1, 2) 12 cycles from one update of an element of C to the next, which "
            "comes after 8 iterations");
  // A reduction innermost.
  EXPECT_THAT(initiation(with(kTiledConv, "r in 3, s in 3, y in 2, x in 4",
                              "y in 2, x in 4, r in 3, s in 3")),
              HasSubstr("s: 12 = max(1, 1, 12) 12 cycles from one update of an element of C to the "
                        "next, which comes after 1 iteration"));
  // Four sums side by side in one bank.
  EXPECT_THAT(initiation(with(kTiledConv, "c4_c1_c1", "c1_c1_c1")),
              HasSubstr("x: 4 = max(1, 4, 2) 4 reads of one bank of C in an iteration"));
  EXPECT_THAT(initiation(with(kTiledConv, "c4_c1_c1", "c2_c1_c1")), HasSubstr("max(1, 2, 2)"));
  // Two channels of X.t in one bank; all sums share what is read of it.
  EXPECT_THAT(initiation(with(kTiledConv, "c2_c1_c1)\n      alloc W", "c1_c1_c1)\n      alloc W")),
              HasSubstr("x: 2 = max(1, 2, 2) 2 reads of one bank of X.t"));
  // 8 weights in the 4 banks of the first axis, in the 2 of the second, in one.
  EXPECT_THAT(initiation(with(kTiledConv, "f_c2_c1_c1", "f_c1_c1_c1")), HasSubstr("max(1, 2, 2)"));
  EXPECT_THAT(initiation(with(kTiledConv, "f_c2_c1_c1", "c1_c2_c1_c1")), HasSubstr("max(1, 4, 2)"));
  EXPECT_THAT(initiation(with(kTiledConv, "f_c2_c1_c1", "c1_c1_c1_c1")),
              HasSubstr("x: 8 = max(1, 8, 2) 8 reads of one bank of W.t in an iteration"));
  EXPECT_THAT(initiation(with(kTiledConv, "@(ii=1)", "@(ii=9)")),
              HasSubstr("x: 9 = max(9, 1, 2) 9 cycles are wanted"));
}

/// Sums of neighbours: X[i], X[i + 1], .. of one axis, unrolled by 4.
constexpr std::string_view kNeighbours = R"(
func f(X: i8[4,16], out Y: i32[4,8]) {
  for t in 4 @(pipeline=dataflow) {
    alloc T: i8[16] fpga.bram @(slots=2, partition=c8)
    for a in 16 { block T(t: space 4 = t, i: space 16 = a) { T[i] = X[t, i] } }
    alloc S: i32[8] fpga.bram @(slots=2, partition=c4)
    for b in 8 { block S.init(i: space 8 = b) { S[i] = 0i32 } }
    for r in 2, i in 2 @(ii=1), u in 4 unroll {
      block S(i: space 8 = i * 4 + u, r: reduce 2 = r) {
        S[i] += i32(T[i + r]) * i32(T[i + 7])
      }
    }
    for y in 8 { block Y(t: space 4 = t, i: space 8 = y) { Y[t, i] = S[i] } }
  }
}
)";

TEST(Initiation, SeveralAccessesOfOneBuffer) {
  // In 8 banks: 4i + r .. + 3 and 4i + 7 .. + 10, which is 4i - 1 .. + 2 again modulo 8; i8 needs 4
  // cycles, and an element is updated again after 2 iterations.
  EXPECT_EQ(initiation(kNeighbours),
            "i: 2 = max(1, 2, 2) 2 reads of one bank of T in an iteration");
  EXPECT_THAT(initiation(with(kNeighbours, "partition=c8", "partition=f")),
              HasSubstr("max(1, 1, 2) 4 cycles from one update of an element of S"));
  // Blocks of 4: 0..3 and 7..10 have the bank 4..7 once or more; at i = 1, r = 0: 4..7 and 11..14.
  EXPECT_THAT(initiation(with(kNeighbours, "partition=c8", "partition=b4")),
              HasSubstr("max(1, 4, 2)"));
  // Registers have as many ports as elements.
  EXPECT_THAT(
      initiation(with(kNeighbours, "fpga.bram @(slots=2, partition=c8)", "fpga.reg @(slots=2)")),
      HasSubstr("max(1, 1, 2)"));
}

TEST(Initiation, OtherReductionsTakeTheirOperatorAndABank) {
  const std::string text = with(with(testing::kTwoStages, "+= At[i, k]", "max= At[i, k]"),
                                "for k in 4, i in 2, j in 8", "for i in 2, j in 8, k in 4");
  EXPECT_THAT(initiation(text), HasSubstr("k: 5 = max(1, 1, 5) 5 cycles from one update"));
  const std::string min = with(text, "max=", "min=");
  EXPECT_THAT(initiation(min), HasSubstr("test has no operator min of f32"));
}

TEST(Initiation, WhatCannotBeCounted) {
  using testing::kTiledConv;
  EXPECT_THAT(initiation(with(kTiledConv, "out Y: f32[8,4,4])", "out Y: f32[8,4,4]) exact")),
              HasSubstr("the math is exact: several products of one reduction in one iteration "
                        "(loop v, of C) need fast math or integers"));
  EXPECT_THAT(initiation(with(kTiledConv, "v in 2 unroll", "v in 2")),
              HasSubstr("loop v, in a loop with mark ii, is not unrolled"));
  EXPECT_THAT(initiation(with(kTiledConv, "c4_c1_c1", "c5_c1_c1")),
              HasSubstr("`c5` makes 5 banks of axis 0"));
  EXPECT_THAT(initiation(with(kTiledConv, "C[a, b, d] += X.t", "C[a, b, d] += C[a, b, d] * X.t")),
              HasSubstr("computes elements of C from elements of C itself"));
}

}  // namespace
}  // namespace tilewright::lower
