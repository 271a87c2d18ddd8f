#include "tilewright/lower/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/lower/testing/dataflow_programs.h"

namespace tilewright::lower {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Func parsed_program(std::string_view text) {
  auto f = parse_func(text);
  if (!f) throw std::runtime_error(to_string(f.error()));
  const Status ok = verify(*f, Stage::Scheduled);
  if (!ok) throw std::runtime_error(to_string(ok.error()));
  return *f;
}

ProcessProgram cut(std::string_view text) {
  auto p = processes_of(parsed_program(text));
  if (!p) throw std::runtime_error(to_string(p.error()));
  return *p;
}

std::string names_of(const std::vector<Buffer>& buffers) {
  std::string all;
  for (const Buffer& b : buffers) all += " " + b.name();
  return all;
}

/// `read_X: X -> ` per process, `T*2: read_X -> write_Y` per channel; `+` if accumulated.
std::vector<std::string> summary(const DataflowRegion& region) {
  std::vector<std::string> lines;
  for (const Process& p : region.processes)
    lines.push_back(std::string(name(p.kind)) + " " + p.name + ":" + names_of(p.reads) + " ->" +
                    names_of(p.writes));
  for (const Channel& c : region.channels)
    lines.push_back(c.buffer.name() + "*" + std::to_string(c.slots) + (c.accumulated ? "+" : "") +
                    ": " + region.processes[c.writer].name + " -> " +
                    region.processes[c.reader].name);
  return lines;
}

/// A slice as text, without the parameters.
std::string slice(const ProcessProgram& program, size_t region, size_t process) {
  Func f;
  f.name = "f";
  f.body = program.regions[region].processes[process].body;
  const std::string text = print(f);
  return text.substr(text.find('\n') + 1);
}

TEST(Processes, SlicesKeepAllocationsAndLoopsInPlace) {
  const ProcessProgram p = cut(testing::kTwice);
  ASSERT_EQ(p.regions.size(), 1U);
  EXPECT_THAT(summary(p.regions[0]),
              ElementsAre("read read_X: X ->", "write write_Y: -> Y", "T*2: read_X -> write_Y"));
  EXPECT_EQ(slice(p, 0, 0),
            "  for t in 4 @(pipeline=dataflow) {\n"
            "    alloc T: f32[16] fpga.bram @(slots=2)\n"
            "    for i in 16 {\n"
            "      block T(a: space 64 = t * 16 + i, b: space 16 = i) {\n"
            "        T[b] = X[a]\n      }\n    }\n  }\n}\n");
  EXPECT_EQ(slice(p, 0, 1),
            "  for t in 4 @(pipeline=dataflow) {\n"
            "    alloc T: f32[16] fpga.bram @(slots=2)\n"
            "    for j in 16 {\n"
            "      block Y(a: space 64 = t * 16 + j, b: space 16 = j) {\n"
            "        Y[a] = T[b] * 2.0\n      }\n    }\n  }\n}\n");
}

TEST(Processes, AConvolutionReadsComputesAndWrites) {
  const ProcessProgram p = cut(testing::kTiledConv);
  ASSERT_EQ(p.regions.size(), 1U);
  EXPECT_THAT(summary(p.regions[0]),
              ElementsAre("read read_X: X ->", "read read_W: W ->", "compute compute: ->",
                          "write write_Y: bias -> Y", "C*2+: compute -> write_Y",
                          "X.t*2: read_X -> compute", "W.t*2: read_W -> compute"));
  // The write has no part in the loop over channels, nor the reads in what is outside of it.
  EXPECT_THAT(slice(p, 0, 3), ::testing::Not(HasSubstr("for c in")));
  EXPECT_THAT(slice(p, 0, 0), ::testing::Not(HasSubstr("alloc C")));
}

TEST(Processes, StagesThatFollowAreProcessesOfTheirOwn) {
  EXPECT_THAT(summary(cut(testing::kTwoStages).regions[0]),
              ElementsAre("read read_A: A ->", "read read_B: B ->", "compute compute: ->",
                          "compute compute_2: ->", "write write_Y: -> Y",
                          "C*1+: compute -> compute_2", "At*2: read_A -> compute",
                          "Bt*3: read_B -> compute", "P*2+: compute_2 -> write_Y"));
}

TEST(Processes, WhatStaysLivesLonger) {
  EXPECT_THAT(summary(cut(testing::kStays).regions[0]),
              ElementsAre("read read_b: b ->", "read read_X: X ->", "read read_W: W ->",
                          "compute compute: ->", "write write_Y: -> Y", "B*1: read_b -> compute",
                          "Xt*2: read_X -> compute", "Wt*2: read_W -> compute",
                          "C*2+: compute -> write_Y"));
}

TEST(Processes, LocalBuffersKeepTheirUsersTogether) {
  const ProcessProgram p = cut(testing::kRows);
  EXPECT_THAT(summary(p.regions[0]), ElementsAre("read read_X: X ->", "compute compute: Y -> Y",
                                                 "T*2: read_X -> compute"));
  EXPECT_THAT(slice(p, 0, 0), HasSubstr("alloc R"));
  EXPECT_THAT(slice(p, 0, 1), ::testing::Not(HasSubstr("alloc R")));
}

TEST(Processes, NestsWithoutTheMarkRunOneAfterTheOther) {
  const ProcessProgram p = cut(R"(
func f(X: f32[4], out Y: f32[4]) {
  alloc S: f32[4]
  alloc T: f32[4] fpga.bram @(slots=2)
  alloc unused: f32[4]
  for a in 4 { block S(i: space 4 = a) { S[i] = X[i] } }
  for b in 1 {
    for b0 in 4 { block T(i: space 4 = b0) { T[i] = S[i] } }
    for b1 in 4 { block Y(i: space 4 = b1) { Y[i] = T[i] } }
  }
}
)");
  ASSERT_EQ(p.regions.size(), 2U);
  EXPECT_THAT(summary(p.regions[0]), ElementsAre("compute compute: X -> S"));
  EXPECT_THAT(summary(p.regions[1]), ElementsAre("compute compute_2: S -> Y"));
  EXPECT_EQ(names_of(p.scratch), " S");
  EXPECT_THAT(slice(p, 1, 0), HasSubstr("alloc T"));
}

TEST(Processes, PipelinesSideBySideAreALoopAroundTheRegion) {
  const ProcessProgram p = cut(R"(
func f(X: f32[4], out Y: f32[4]) {
  for p in 2 parallel, t in 2 @(pipeline=dataflow) {
    alloc T: f32[1] fpga.reg @(slots=1)
    block T(t: space 4 = p * 2 + t) { T[0] = X[t] }
    block Y(t: space 4 = p * 2 + t) { Y[t] = T[0] }
  }
}
)");
  EXPECT_EQ(p.regions[0].processes.size(), 2U);
  EXPECT_THAT(slice(p, 0, 0), HasSubstr("for p in 2 parallel, t in 2 @(pipeline=dataflow)"));
}

constexpr std::string_view kSameParameter = R"(
func f(X: f32[4,4], out Y: f32[4,4]) {
  for i in 4 @(pipeline=dataflow) {
    alloc A: f32[4] fpga.bram @(slots=2)
    for a in 4 { block A(i: space 4 = i, k: space 4 = a) { A[k] = X[i, k] } }
    for j in 4 {
      alloc B: f32[4] fpga.bram @(slots=2)
      for b in 4 { block B(j: space 4 = j, k: space 4 = b)@ { B[k] = X[j, k] } }
      alloc C: f32[] fpga.reg @(slots=2)
      block C.init() { C[] = 0.0 }
      for k in 4 { block C(k: reduce 4 = k) { C[] += A[k] * B[k] } }
      block Y(i: space 4 = i, j: space 4 = j) { Y[i, j] = C[] }
    }
  }
}
)";

std::string with_mark(std::string_view mark) {
  std::string text(kSameParameter);
  const size_t at = text.find(")@ {");
  return text.replace(at, 2, ")" + std::string(mark));
}

TEST(Processes, ReadsOfOneParameterAreOneProcessUnlessTheyHavePorts) {
  // One process would have to fill all of B before it hands A over.
  const auto one = processes_of(parsed_program(with_mark("")));
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().what, "requirement 7 does not hold");
  const auto two = processes_of(parsed_program(with_mark(" @(port=1)")));
  ASSERT_TRUE(two) << to_string(two.error());
  EXPECT_THAT(summary(two->regions[0]),
              ElementsAre("read read_X: X ->", "read read_X_2: X ->", "compute compute: ->",
                          "write write_Y: -> Y", "A*2: read_X -> compute",
                          "B*2: read_X_2 -> compute", "C*2+: compute -> write_Y"));
}

TEST(Processes, RequirementsAreNamed) {
  for (const testing::Refused& bad : testing::refused_programs()) {
    const auto p = processes_of(parsed_program(bad.text));
    ASSERT_FALSE(p) << bad.text;
    EXPECT_EQ(p.error().kind, ErrorKind::Unsupported);
    EXPECT_EQ(p.error().what, "requirement " + std::to_string(bad.requirement) + " does not hold")
        << bad.text << to_string(p.error());
    EXPECT_THAT(p.error().why, HasSubstr(bad.words));
  }
}

TEST(Processes, ChipMemoryLivesInOneNest) {
  const auto p = processes_of(parsed_program(R"(
func f(X: f32[4], out Y: f32[4]) {
  alloc T: f32[4] fpga.bram
  for a in 4 { block T(i: space 4 = a) { T[i] = X[i] } }
  for b in 4 { block Y(i: space 4 = b) { Y[i] = T[i] } }
}
)"));
  ASSERT_FALSE(p);
  EXPECT_THAT(p.error().what, HasSubstr("T of scope fpga.bram is used by 2 nests"));
}

std::string banking(const std::string& shape, const std::string& mark) {
  const Func f = parsed_program("func f(out Y: f32[1]) {\nalloc T: f32[" + shape + "] fpga.bram" +
                                mark + "\nfor i in 1 { block Y(i: space 1 = i) { Y[i] = 1.0 } } }");
  const auto banks = banking_of(*f.body.as<Seq>()->stmts[0].as<Alloc>());
  if (!banks) return banks.error().what + ": " + banks.error().why;
  std::string text;
  for (const Banking& b : *banks) text += "CBF"[static_cast<int>(b.kind)] + std::to_string(b.banks);
  return text;
}

TEST(Processes, BanksPerAxis) {
  EXPECT_EQ(banking("32,8,3", ""), "C1C1C1");
  EXPECT_EQ(banking("32,8,3", " @(partition=c16_b2_f)"), "C16B2F3");
  EXPECT_EQ(banking("", " @(partition=4)").substr(0, 13), "requirement 2");
  EXPECT_THAT(banking("32,8", " @(partition=c16)"), HasSubstr("1 parts for 2 axes"));
  EXPECT_THAT(banking("32", " @(partition=d16)"), HasSubstr("`d16` is no part"));
  EXPECT_THAT(banking("32", " @(partition=c)"), HasSubstr("`c` is no part"));
  EXPECT_THAT(banking("32", " @(partition=c16x)"), HasSubstr("`c16x` is no part"));
  EXPECT_THAT(banking("32", " @(partition=c33)"),
              HasSubstr("requirement 3 does not hold: `c33` makes 33 banks of axis 0"));
  EXPECT_THAT(banking("32", " @(partition=b0)"), HasSubstr("requirement 3"));
  EXPECT_EQ(banking("64,64", " @(partition=f_f)"), "F64F64");
  EXPECT_THAT(banking("64,64,2", " @(partition=f_f_f)"),
              HasSubstr("requirement 4 does not hold: `f_f_f` makes more than 4096 banks"));
}

}  // namespace
}  // namespace tilewright::lower
