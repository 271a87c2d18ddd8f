#include "tilewright/accel/dpu/program.h"

#include <gtest/gtest.h>

#include "tilewright/accel/dpu/testing/random_insn.h"

namespace tilewright::dpu {
namespace {

/// One run of some instructions, a format job and a patch; what they compute does not matter.
Program example() {
  Program program;
  program.config.pe = 2;
  program.image.resize(8192);
  program.regions[0] = {"input", 4096, 1024};
  program.regions[1] = {"output", 5120, 1024};
  program.regions[3] = {"params", 6144, 2048};
  program.regions[4] = {"format", 8192, 512};
  FormatJob job;
  job.name = "x";
  job.channels = 3;
  job.height = 4;
  job.width = 5;
  job.kernel_w = 3;
  job.stride_w = 2;
  job.pad_left = 1;
  program.formats = {job};
  program.input_tensors = {{"x", Reg::Format, 0, 3, 4, 5, 6}};
  program.inputs = {{"x", 8192, 2 * 3 * 4 * 5}};
  program.output_tensors = {{"y", Reg::Output, 32, 17, 2, 3, -1}};
  program.outputs = {{"y", 5120 + 32, 2 * 32 * 2 * 3}};
  Rng rng(1);
  Run run;
  for (int i = 0; i < 20; ++i) run.insns.push_back(testing::random_insn(rng));
  run.insns.push_back({0, 0, End{}});
  run.spans = {{"layer", 0, 20}};
  run.patches = {{6144, "weights"}};
  program.runs = {run};
  program.producer = "hand";
  program.info = "{}";
  return program;
}

TEST(Program, RoundTripsAsBytes) {
  const Program program = example();
  ASSERT_TRUE(validate(program)) << to_string(validate(program).error());
  const std::string bytes = serialise(program);
  const Result<Program> again = parse_program(bytes);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(serialise(*again), bytes);
  EXPECT_EQ(again->formats[0].kernel_w, 3);
  EXPECT_EQ(again->output_tensors[0].fix_point, -1);
  EXPECT_TRUE(again->runs[0].insns == program.runs[0].insns);
}

TEST(Program, FormattedIsWhatTheFirstConvolutionReads) {
  const DdrTensor tensor = formatted(example().formats[0]);
  EXPECT_EQ(tensor.channels, 9);
  EXPECT_EQ(tensor.height, 4);
  EXPECT_EQ(tensor.width, 2);
  EXPECT_EQ(bytes_of(example().config, tensor), 2u * 4 * 2 * 16);
}

TEST(Program, EverythingMustLieInside) {
  const auto problem = [](void (*change)(Program&)) {
    Program program = example();
    change(program);
    const Status status = validate(program);
    return status ? std::string() : to_string(status.error());
  };
  const std::pair<void (*)(Program&), const char*> cases[] = {
      {[](Program& p) { p.regions[1].address = 4097; }, "region `output`"},
      {[](Program& p) { p.regions[4].bytes = 5000; }, "region `format`"},
      {[](Program& p) { p.regions[5] = {"", 12288, 1}; }, "`instructions` is not empty"},
      {[](Program& p) { p.output_tensors[0].addr = 1000; }, "output 'y'"},
      {[](Program& p) { p.output_tensors[0].addr = 0; }, "not where the image says"},
      {[](Program& p) { p.output_tensors[0].height = 0; }, "cannot be"},
      {[](Program& p) { p.input_tensors.clear(); }, "0 tensors"},
      {[](Program& p) { p.formats[0].source = 500; }, "reads beyond"},
      {[](Program& p) { p.formats[0].target = 1000; }, "writes beyond"},
      {[](Program& p) { p.formats[0].channels = 9; }, "cannot do"},
      {[](Program& p) { p.runs[0].patches[0].address = 12285; }, "patch"},
      {[](Program& p) { p.runs[0].spans[0].end = 99; }, "span"},
      {[](Program& p) { p.runs[0].insns[3].op = Pool{}; }, "instruction 3"},
      {[](Program& p) { p.config.pe = 0; }, "`pe`"},
      {[](Program& p) { p.runs.clear(); }, "no run"},
  };
  for (const auto& [change, part] : cases)
    EXPECT_NE(problem(change).find(part), std::string::npos) << part << "\n" << problem(change);
}

TEST(Program, MutatedBytesNeverCrash) {
  const std::string bytes = serialise(example());
  Rng rng(2);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string changed = bytes;
    // Most of it is the image, where any byte is right.
    const auto size = std::ssize(changed);
    for (int64_t n = rng.below(3); n >= 0; --n) {
      int64_t at = rng.below(size);
      if (rng.chance(0.9)) at = rng.chance(0.5) ? rng.below(800) : size - 1 - rng.below(900);
      changed[static_cast<size_t>(at)] = static_cast<char>(rng.next());
    }
    if (rng.chance(0.1)) changed.resize(static_cast<size_t>(rng.below(size)));
    if (const Result<Program> program = parse_program(changed)) {
      ++accepted;
      EXPECT_TRUE(parse_program(serialise(*program)));
    }
  }
  EXPECT_GT(accepted, 50);
}

}  // namespace
}  // namespace tilewright::dpu
