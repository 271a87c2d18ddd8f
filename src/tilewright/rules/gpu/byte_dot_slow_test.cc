// Products of bytes by instructions of threads: in OpenCL they run on the first device and must
// agree with the interpreter; for CUDA they become machine code with those instructions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/rules/gpu/testing/byte_cases.h"
#include "tilewright/rules/gpu/testing/sass.h"

namespace tilewright::rules {
namespace {

using codegen::count;
using Ints = std::vector<int64_t>;

TEST(GpuWordsSlow, OpenClAgreesWithTheInterpreter) {
  const auto device = runtime::open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  const hw::GpuTarget target = *hw::find_gpu_target("opencl");
  codegen::testing::GpuBatch batch(target);
  std::vector<Func> funcs;
  for (const MmaCase& c : word_cases()) {
    funcs.push_back(func_of(c));
    const auto scheduled = schedule::replay(funcs.back(), gpu_trace(funcs.back(), target));
    ASSERT_TRUE(scheduled) << c.name << to_string(scheduled.error());
    const Status added = batch.add(funcs.back(), *scheduled, whole_bytes(funcs.back()));
    ASSERT_TRUE(added) << c.name << to_string(added.error());
  }
  EXPECT_THAT(*batch.source(), ::testing::HasSubstr("dot_4x8packed_us_int"));
  const auto got = batch.run(**device);
  ASSERT_TRUE(got) << to_string(got.error());
  for (size_t i = 0; i < funcs.size(); ++i) {
    const auto expected = interp::run(funcs[i], whole_bytes(funcs[i]));
    ASSERT_TRUE(expected) << to_string(expected.error());
    const Status same = codegen::testing::compare(expected->outputs, (*got)[i], 0);
    EXPECT_TRUE(same) << word_cases()[i].name << "\n" << to_string(same.error());
  }
}

struct Code {
  MmaCase c;
  std::string arch;
};

class GpuWordsCode : public ::testing::TestWithParam<Code> {};

TEST_P(GpuWordsCode, MultipliesWords) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  hw::GpuTarget target = *hw::find_gpu_target("cuda-sm_80");
  target.arch = GetParam().arch;
  const auto code = machine_code(func_of(GetParam().c), target);
  ASSERT_TRUE(code) << to_string(code.error());
  for (const codegen::CudaKernelUse& use : code->uses) {
    EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
    EXPECT_EQ(use.stack_bytes, 0) << use.symbol;
  }
  int64_t words = 0, bytes = 0;
  for (const codegen::SassKernel& kernel : code->kernels) {
    words += count(kernel.all, "IDP", "4A");
    bytes += count(kernel.all, "IMAD", "U8");
    EXPECT_EQ(count(kernel.all, "LDL"), 0) << code->source;
  }
  EXPECT_GT(words, 0) << code->source;
  EXPECT_EQ(bytes, 0) << code->source;
}

INSTANTIATE_TEST_SUITE_P(
    Products, GpuWordsCode,
    ::testing::Values(
        Code{{"vector", "MatMulInteger", {{1000, 4096}, {4096, 1}}, {}, DType::U8, true, DType::I8},
             "sm_90a"},
        Code{{"groups",
              "ConvInteger",
              {{1, 128, 28, 28}, {128, 4, 3, 3}},
              {{"group", int64_t{32}}, {"pads", Ints{1, 1, 1, 1}}},
              DType::U8,
              true,
              DType::I8},
             "sm_90a"},
        Code{{"few_rows", "MatMulInteger", {{4, 1024}, {1024, 1024}}, {}, DType::I8}, "sm_90a"},
        Code{
            {"matrices", "MatMulInteger", {{512, 512}, {512, 512}}, {}, DType::I8, true, DType::U8},
            "sm_75"}),
    [](const auto& test) { return test.param.c.name; });

}  // namespace
}  // namespace tilewright::rules
