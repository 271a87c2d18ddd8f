// Processes run as threads: the same values as the program in order, for every number of blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/lower/testing/dataflow_programs.h"
#include "tilewright/lower/testing/meaning.h"
#include "tilewright/lower/testing/run_processes.h"

namespace tilewright::lower {
namespace {

using testing::Fault;
using ::testing::HasSubstr;

/// What is wrong with the processes of a program; empty if nothing is.
std::string wrong_with(const Func& func, const testing::RunOptions& options) {
  const interp::Arguments arguments = testing::arguments_of(func, options.seed);
  const auto expected = interp::run(func, arguments);
  if (!expected) return "in order: " + to_string(expected.error());
  const auto program = processes_of(func);
  if (!program) return to_string(program.error());
  const auto got = testing::run_processes(func, *program, arguments, options);
  return got ? testing::difference(*expected, *got, 0) : got.error().what;
}

TEST(RunProcesses, EqualTheProgramInOrder) {
  for (const std::string_view text : testing::dataflow_programs()) {
    const Func func = *parse_func(text);
    const Func lowered = run_pipeline(func, "fpga").value();
    for (const int slots : {1, 2, 3})
      for (const uint64_t seed : {1, 2, 3}) {
        EXPECT_EQ(wrong_with(func, {slots, seed}), "") << text;
        EXPECT_EQ(wrong_with(lowered, {slots, seed}), "") << print(lowered);
      }
  }
}

TEST(RunProcesses, FaultsOfChannelsAreNoticed) {
  for (const std::string_view text : testing::dataflow_programs()) {
    const Func func = *parse_func(text);
    EXPECT_THAT(wrong_with(func, {1, 1, 30, Fault::ReaderKeeps}), HasSubstr("all processes wait"))
        << text;
    EXPECT_THAT(wrong_with(func, {2, 1, 30, Fault::WriterKeeps}), HasSubstr("all processes wait"))
        << text;
    EXPECT_THAT(wrong_with(func, {2, 1, 30, Fault::HandedOverEmpty}), HasSubstr("after")) << text;
  }
}

/// What requirement 7 is for: these slices end if there are as many blocks as lives.
TEST(RunProcesses, AReaderThatDoesNotEmptyStopsItsWriter) {
  for (const testing::Refused& bad : testing::refused_programs()) {
    if (bad.requirement != 7) continue;
    const Func func = *parse_func(bad.text);
    const auto* tiles = func.body.as<For>();
    const auto* body = tiles->body.as<Seq>();
    const Alloc* a = body->stmts[0].as<Alloc>();
    const Alloc* b = body->stmts[4].as<For>()->body.as<Seq>()->stmts[0].as<Alloc>();
    ASSERT_TRUE(a != nullptr && b != nullptr);
    auto slice = [&](bool reads) {
      return rewrite(func.body, [&](const Stmt& s) {
        if (s.as<Block>()) {
          const bool of_read = s.as<Block>()->name == "A" || s.as<Block>()->name == "B";
          return of_read == reads ? s : seq({});
        }
        const auto* alloc = s.as<Alloc>();
        return reads && alloc && alloc->buffer.name() == "P" ? seq({}) : s;
      });
    };
    DataflowRegion region;
    region.processes = {{"read", ProcessKind::Read, slice(true), {}, {}},
                        {"write", ProcessKind::Compute, slice(false), {}, {}}};
    region.channels = {{a->buffer, 2, 0, 1, false}, {b->buffer, 2, 0, 1, false}};
    const ProcessProgram program{{region}, {}};
    const interp::Arguments arguments = testing::arguments_of(func, 1);
    const auto one = testing::run_processes(func, program, arguments, {1});
    ASSERT_FALSE(one);
    EXPECT_THAT(one.error().what, HasSubstr("all processes wait"));
    const auto two = testing::run_processes(func, program, arguments, {2});
    ASSERT_TRUE(two) << two.error().what;
    EXPECT_EQ(testing::difference(interp::run(func, arguments).value(), *two, 0), "");
  }
}

TEST(RunProcesses, TheFpgaPipelineHoldsTiles) {
  const auto func = parse_func(R"(
func f(X: f32[8,8], out Y: f32[8,8]) {
  for t in 2 @(pipeline=dataflow), u in 4 {
    alloc T: f32[8,8] fpga.bram @(slots=2, partition=c2_f)
    for a in 4, b in 2 {
      block T(i: space 8 = t * 4 + a, j: space 8 = u * 2 + b) @(port=3) { T[i, j] = X[i, j] }
    }
    for c in 4, d in 2 {
      block Y(i: space 8 = t * 4 + c, j: space 8 = u * 2 + d) { Y[i, j] = T[i, j] }
    }
  }
}
)");
  const Func lowered = run_pipeline(*func, "fpga").value();
  EXPECT_THAT(print(lowered), HasSubstr("alloc T: f32[4,2] fpga.bram @(slots=2, partition=c2_f)"));
  EXPECT_THAT(print(lowered), HasSubstr("T.port in 1 @(port=3)"));
  EXPECT_EQ(wrong_with(lowered, {1, 1}), "");
}

}  // namespace
}  // namespace tilewright::lower
