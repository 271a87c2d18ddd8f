#include "tilewright/accel/spatial/check.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/assembly.h"
#include "tilewright/accel/spatial/testing/random_program.h"

namespace tilewright::spatial {
namespace {

/// What the checker says about a text, one finding a line.
std::string check_text(const std::string& text) {
  std::string out;
  const Result<Program> program = parse_assembly(text, {}, "F.asm");
  if (!program) return to_string(program.error());
  for (const Finding& f : check_program(*program))
    out += std::string(name(f.rule)) + " " + std::to_string(f.run) + ":" + std::to_string(f.insn) +
           " " + f.text + "\n";
  return out;
}

const std::string kLoad = "dram=4096 axis4=64,0,0,1,1\n";
const std::string kCompute = "begins=1 j=16,-1 k=4,-1 row_step=16\n";
const std::string kStore = "dram=4096 axis4=16,1,16,1,0\n";

TEST(SpatialCheck, RightProgramsHaveNoFindings) {
  EXPECT_EQ(check_text("LOAD gives=C " + kLoad + "COMPUTE takes=L gives=S " + kCompute +
                       "STORE takes=C " + kStore + "END\n"),
            "");
}

TEST(SpatialCheck, EachRule) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(check_text(text).find(part), std::string::npos) << check_text(text);
  };
  expect("LOAD takes=C " + kLoad + "END\n", "deadlock 0:0 waits for token 1 of compute, but 0");
  expect("END\nLOAD gives=S " + kLoad + "END\n",
         "leftover-token 1:0 1 of 1 tokens from load to store are left");
  expect("LOAD " + kLoad + "COMPUTE " + kCompute + "END\n",
         "race 0:1 compute and instruction 0 (load) meet in scratchpad, 0..4");
  expect("COMPUTE " + kCompute + "STORE " + kStore + "END\n",
         "race 0:1 store and instruction 0 (compute) meet in sums, 0..16");
  expect("STORE " + kStore + "LOAD " + kLoad + "END\n",
         "race 0:1 load and instruction 0 (store) meet in DRAM, 4096..4112");
  // The block takes the end of each part, where sums of another COMPUTE were.
  expect("STORE sum=1023 " + kStore + "COMPUTE " + kCompute + "END\n",
         "meet in sums, 16368..16384");
  std::string many;
  for (int n = 0; n < 255; ++n) many += "LOAD gives=S " + kLoad;
  expect(many + "END\n", "token-overflow 0:254 255 tokens from load to store");
}

TEST(SpatialCheck, FieldsAndDramOfAProgram) {
  Program program = testing::random_program(3, 10).program;
  EXPECT_TRUE(check_program(program).empty());
  program.image.resize(program.image.size() / 4);
  program.outputs.clear();
  const std::vector<Finding> short_image = check_program(program);
  ASSERT_FALSE(short_image.empty());
  EXPECT_EQ(short_image[0].rule, Rule::Range);
  std::get<Load>(program.runs[0].insns[0].work).axes[0].count = 0;
  EXPECT_EQ(check_program(program)[0].rule, Rule::Field);
}

TEST(SpatialCheck, FindsEveryTokenThatIsTaken) {
  size_t taken = 0, found = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Program program = testing::random_program(seed, 15).program;
    for (size_t i = 0; i < program.runs[0].insns.size(); ++i) {
      Program less = program;
      Insn& insn = less.runs[0].insns[i];
      if (insn.gives == 0) continue;
      insn.gives &= static_cast<uint8_t>(insn.gives - 1);
      ++taken;
      found += !check_program(less).empty();
    }
  }
  EXPECT_GT(taken, 60);
  EXPECT_EQ(found, taken);
}

}  // namespace
}  // namespace tilewright::spatial
