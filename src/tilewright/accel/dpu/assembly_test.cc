// Whole programs as text: what is printed is read back, and every bad line is named.
#include "tilewright/accel/dpu/assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/sim/tsim.h"
#include "tilewright/accel/dpu/testing/example_layer.h"
#include "tilewright/accel/dpu/testing/random_program.h"

namespace tilewright::dpu {
namespace {

using ::testing::HasSubstr;

/// What is read prints the same text, with the same instructions and layers.
void expect_read_back(const Config& config, const std::vector<dpu::Run>& runs) {
  const std::string text = assembly(runs);
  const Result<Program> read = parse_assembly(text, config, "F.asm");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(assembly(read->runs), text);
  ASSERT_EQ(read->runs.size(), runs.size());
  for (size_t r = 0; r < runs.size(); ++r) {
    EXPECT_EQ(read->runs[r].insns, runs[r].insns);
    ASSERT_EQ(read->runs[r].spans.size(), runs[r].spans.size());
    for (size_t s = 0; s < runs[r].spans.size(); ++s) {
      EXPECT_EQ(read->runs[r].spans[s].name, runs[r].spans[s].name);
      EXPECT_EQ(read->runs[r].spans[s].begin, runs[r].spans[s].begin);
      EXPECT_EQ(read->runs[r].spans[s].end, runs[r].spans[s].end);
    }
  }
}

TEST(Assembly, ProgramsAreReadBack) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const Config config = testing::small_config(rng);
    std::vector<dpu::Run> runs;
    for (int64_t n = rng.between(1, 3); n > 0; --n) {
      const std::vector<Op> ops = testing::RandomOps(config, rng).make(20);
      runs.push_back(
          testing::program_of(testing::empty_program(config, rng), ops, testing::Scheme::Addresses)
              .runs[0]);
    }
    // A second layer from some instruction on, and one of nothing.
    std::vector<Span>& spans = runs[0].spans;
    const size_t all = spans[0].end, cut = all / 2;
    spans = {{"conv #1 # = x", 0, cut}, {" nothing", cut, cut}, {"END", cut, all}};
    expect_read_back(config, runs);
  }
}

TEST(Assembly, NamesOfLayersStayInTheirLine) {
  dpu::Run run;
  run.insns = parse_asm("NOP\nEND", "").value();
  run.spans = {{"two\nlines\r", 0, 1}};
  const std::string text = assembly({run});
  EXPECT_EQ(text, "# layer two?lines?\nNOP queue=0\nEND\n");
  EXPECT_EQ(assembly(parse_assembly(text, {}, "F.asm")->runs), text);
}

TEST(AssemblySlow, ATextByItselfTakesTheSameTime) {
  const Program program = testing::example_layer(3, true, true);
  const Result<Program> read = parse_assembly(assembly(program.runs), program.config, "F.asm");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_TRUE(check_program(*read).empty()) << check_program(*read)[0].text;
  const auto device = make_tsim(read->config, read->end());
  const Result<LaunchReport> report = execute(*device, *read);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->cycles, simulate_time(program.config, program.runs[0].insns, {})->cycles);
}

/// Lines and words of all errors.
std::vector<std::string> errors_of(const std::string& text) {
  const Result<Program> read = parse_assembly(text, {}, "F.asm");
  if (read) return {};
  EXPECT_EQ(read.error().kind, ErrorKind::Parse);
  std::vector<std::string> errors = {read.error().place + ": " + read.error().what};
  for (const Error& other : read.error().others) errors.push_back(other.place + ": " + other.what);
  return errors;
}

TEST(Assembly, EveryBadLineIsNamed) {
  const std::vector<std::string> errors =
      errors_of("# a comment\nLOAD length=0 channel=16\nLAOD\nNOP queue=4\n\nNOP dpon=L\nNOP x=1");
  ASSERT_EQ(errors.size(), 6u);
  EXPECT_THAT(errors[0], HasSubstr("F.asm:2"));
  EXPECT_THAT(errors[0], HasSubstr("`length` is 0"));
  EXPECT_THAT(errors[1], HasSubstr("F.asm:3: no instruction is called `LAOD`"));
  EXPECT_THAT(errors[2], HasSubstr("F.asm:4"));
  EXPECT_THAT(errors[3], HasSubstr("F.asm:6"));
  EXPECT_THAT(errors[3], HasSubstr("own unit"));
  EXPECT_THAT(errors[4], HasSubstr("F.asm:7: NOP has no field `x`"));
  EXPECT_THAT(errors[5], HasSubstr("does not end with END"));
  EXPECT_THAT(errors_of("")[0], HasSubstr("F.asm:1: the stream does not end with END"));
  EXPECT_THAT(errors_of("END\nNOP\n")[0], HasSubstr("F.asm:2: the stream does not end with END"));
  EXPECT_THAT(errors_of("END\n# layer x\n")[0], HasSubstr("F.asm:2"));
}

TEST(Assembly, DdrIsLimited) {
  const Result<Program> read = parse_assembly(
      "LOAD length=1023 channel=16 jump_read=65535 ddr_addr=536870848\n"
      "LOAD mode=1 length=1023 channel=16 jump_read=65535 ddr_addr=536870656 reg_id=3\nEND\n",
      {}, "F.asm");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::Capacity);
}

}  // namespace
}  // namespace tilewright::dpu
