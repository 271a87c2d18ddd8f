// Whole programs as text: what is printed is read back, and every bad line is named.
#include "tilewright/accel/spatial/assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/spatial/testing/random_program.h"

namespace tilewright::spatial {
namespace {

using ::testing::HasSubstr;

TEST(SpatialAssembly, ProgramsAreReadBack) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = testing::random_program(seed, 12).program;
    spatial::Run run = program.runs[0];
    run.spans = {{"conv #1 = x", 0, 5}, {" nothing", 5, 5}, {"END", 5, run.insns.size()}};
    const std::string text = assembly({run, program.runs[0]});
    const Result<Program> read = parse_assembly(text, program.design, "F.asm");
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(assembly(read->runs), text);
    EXPECT_EQ(read->runs[0].insns, run.insns);
    EXPECT_EQ(read->runs[1].insns, run.insns);
    ASSERT_EQ(read->runs[0].spans.size(), 3);
    EXPECT_EQ(read->runs[0].spans[0].end, 5);
    EXPECT_EQ(read->runs[0].spans[2].end, run.insns.size());
    EXPECT_LE(read->base, program.base + 8192);
    EXPECT_LE(read->end(), program.end());
  }
}

TEST(SpatialAssembly, OneLineSaysWhatIsNotUsual) {
  Load load;
  load.dram = 4096;
  load.axes[4] = {16, 1, 2, 1, 1};
  EXPECT_EQ(to_string({0, 6, load}), "LOAD gives=CS dram=4096 axis4=16,1,2,1,1");
  Store store;
  store.low = 0;
  store.axes[4].dram_step = 1;
  EXPECT_EQ(to_string({2, 0, store}), "STORE takes=C clip=0,127 axis4=1,1,1,0,0");
  Compute compute;
  compute.loops[0] = {3, true, {64, 256}, 0};
  compute.k = {0, 40};
  EXPECT_EQ(to_string({1, 0, compute}), "COMPUTE takes=L k=40,0 loop0=3,1,64,256,0");
}

TEST(SpatialAssembly, BadLinesAreNamed) {
  const auto expect = [](const std::string& text, const std::string& part) {
    const auto read = parse_assembly(text, {}, "F.asm");
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(to_string(read.error()), HasSubstr(part));
  };
  expect("", "does not end with END");
  expect("LOAD dram=4096 axis4=1,0,0,1,1\n", "F.asm:1");
  expect("LOAF\nEND\n", "no instruction is called `LOAF`");
  expect("LOAF\nEND\n", "LOAD");
  expect("\n\nLOAD lane=3\nEND\n", "F.asm:3");
  expect("LOAD lanez=3\nEND\n", "LOAD has no field `lanez`");
  expect("LOAD lanes=3 lanes=3\nEND\n", "named twice");
  expect("LOAD lanes\nEND\n", "not FIELD=VALUE");
  expect("LOAD lanes=65536\nEND\n", "`lanes` cannot be `65536`");
  expect("LOAD lane_axis=-129\nEND\n", "`lane_axis` cannot be `-129`");
  expect("LOAD dram=-1\nEND\n", "`dram` cannot be `-1`");
  expect("LOAD dram=\nEND\n", "`dram` cannot be ``");
  expect("COMPUTE begins=2\nEND\n", "`begins` cannot be `2`");
  expect("LOAD axis4=1,2\nEND\n", "`axis4` has 5 numbers, not 2");
  expect("LOAD axis4=1,0,0,1,1,1\nEND\n", "`axis4` has 5 numbers, not 6");
  expect("LOAD takes=X\nEND\n", "no set of queues");
  expect("LOAD takes=CC\nEND\n", "no set of queues");
  expect("LOAD takes=L dram=4096 axis4=1,0,0,1,1\nEND\n", "tokens of its own queue");
  expect("LOAD dram=100 axis4=1,0,0,1,1\nEND\n", "images begin at 4096");
  expect("LOAD dram=4096 axis4=1,0,0,1,1\nLOAD dram=4000000000 axis4=1,0,0,1,1\nEND\n",
         "reach over");
}

TEST(SpatialAssembly, CommentsAndBlanksSayNothing) {
  const auto read = parse_assembly(
      "# only words\n\n  LOAD\tdram=4096  axis4=2,0,0,1,1 # two\r\nEND\n", {}, "F.asm");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->runs[0].insns.size(), 1);
  EXPECT_EQ(read->image.size(), 2);
}

}  // namespace
}  // namespace tilewright::spatial
