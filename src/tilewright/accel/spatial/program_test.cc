#include "tilewright/accel/spatial/program.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/testing/random_insn.h"

namespace tilewright::spatial {
namespace {

Program random_program(uint64_t seed) {
  Rng rng(seed);
  Program program;
  program.design = testing::small_design(rng);
  program.image = std::string(testing::kRandomDram, '\3');
  testing::RandomInsns random(program.design, static_cast<int64_t>(program.base), rng);
  Run run;
  for (int n = 0; n < 20; ++n) run.insns.push_back(random.next());
  run.spans = {{"first", 0, 7}, {"second", 7, 20}};
  run.patches = {{program.base + 5, "patch"}};
  program.runs = {run, run};
  program.inputs = {{"in", program.base, 100}};
  program.outputs = {{"out", program.base + 200, 100}};
  program.producer = "test";
  program.info = "{}";
  return program;
}

TEST(SpatialProgram, BytesReadBack) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Program program = random_program(seed);
    const std::string bytes = serialise(program);
    const Result<Program> again = parse_program(bytes);
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(again->design, program.design);
    EXPECT_EQ(again->image, program.image);
    EXPECT_EQ(again->runs[1].insns, program.runs[1].insns);
    EXPECT_EQ(again->runs[0].spans[1].name, "second");
    EXPECT_EQ(again->outputs[0].address, program.base + 200);
    EXPECT_EQ(serialise(*again), bytes);
  }
}

TEST(SpatialProgram, BytesThatLackSomethingAreErrors) {
  const std::string bytes = serialise(random_program(1));
  for (size_t size = 0; size < bytes.size(); size += size < 2000 ? 1 : 997)
    EXPECT_FALSE(parse_program(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(parse_program(bytes + "x"));
}

TEST(SpatialProgram, ValidateFindsAllProblems) {
  Program program = random_program(2);
  ASSERT_TRUE(validate(program));
  program.outputs[0].bytes = 1 << 20;
  program.runs[1].insns[3].takes = 8;
  program.runs[1].spans[1].end = 21;
  program.design.clock_mhz = 0;
  const Status found = validate(program);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().others.size(), 2);
  program.design.clock_mhz = 1;
  const Status others = validate(program);
  ASSERT_FALSE(others);
  EXPECT_NE(to_string(others.error()).find("run 1: instruction 3"), std::string::npos);
  program = random_program(2);
  program.runs.clear();
  EXPECT_FALSE(validate(program));
}

}  // namespace
}  // namespace tilewright::spatial
