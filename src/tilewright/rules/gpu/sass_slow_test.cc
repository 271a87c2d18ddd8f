// What the rule's kernels for CUDA become in machine code: registers suffice, products are fused
// multiply-adds on operands from shared memory, copies are wide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/testing/sass.h"

namespace tilewright::rules {
namespace {

using codegen::count;
using Ints = std::vector<int64_t>;

struct SassCase {
  std::string name;
  OpCase op;
  int64_t reuse = 0;  ///< products per load from shared memory, at least; 0: not staged there
  bool wide = false;  ///< copied and read by 16 bytes at a time
};

std::vector<SassCase> sass_cases() {
  const std::map<std::string, tensor::AttrValue> same = {{"pads", Ints{1, 1, 1, 1}}};
  return {
      {"product", {"", "MatMul", {{1024, 512}, {512, 1024}}, {}}, 4, true},
      {"odd_product", {"", "MatMul", {{1000, 511}, {511, 999}}, {}}, 1},
      {"batch", {"", "MatMul", {{12, 128, 64}, {12, 64, 128}}, {}}, 2, true},
      {"conv", {"", "Conv", {{1, 64, 56, 56}, {64, 64, 3, 3}}, same}, 2},
      {"pointwise", {"", "Conv", {{1, 64, 56, 56}, {128, 64, 1, 1}}, {}}, 2},
      {"depthwise",
       {"",
        "Conv",
        {{1, 64, 56, 56}, {64, 1, 3, 3}},
        {{"group", int64_t{64}}, {"pads", Ints{1, 1, 1, 1}}}}},
      {"softmax", {"", "Softmax", {{512, 1000}}, {}}},
      {"vector", {"", "MatMul", {{1, 4096}, {4096, 1000}}, {}}},
      {"mean", {"", "GlobalAveragePool", {{1, 512, 14, 14}}, {}}},
  };
}

class GpuSass : public ::testing::TestWithParam<SassCase> {};

TEST_P(GpuSass, RegistersSuffice) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const SassCase& c = GetParam();
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const auto code = machine_code(func_of(c.op), target);
  ASSERT_TRUE(code) << to_string(code.error());
  ASSERT_FALSE(code->kernels.empty());
  for (const codegen::SassKernel& kernel : code->kernels) {
    EXPECT_EQ(count(kernel.all, "STL"), 0) << kernel.symbol << code->source;
    EXPECT_EQ(count(kernel.all, "LDL"), 0) << kernel.symbol;
  }
  for (const codegen::CudaKernelUse& use : code->uses) {
    EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
    EXPECT_EQ(use.stack_bytes, 0) << use.symbol;
    EXPECT_LE(use.registers, target.registers) << use.symbol;
    EXPECT_LE(use.shared_bytes, target.shared_bytes) << use.symbol;
  }
  if (c.reuse == 0) return;
  const auto kernel = std::max_element(
      code->kernels.begin(), code->kernels.end(),
      [](const auto& a, const auto& b) { return count(a.all, "FFMA") < count(b.all, "FFMA"); });
  const codegen::SassLoop* loop = kernel->loop_with("FFMA");
  // Few rounds are written out.
  const codegen::SassCounts& counts = loop != nullptr ? loop->counts : kernel->all;
  const int64_t products = count(counts, "FFMA");
  EXPECT_GT(products, 0) << code->source;
  EXPECT_GE(products, c.reuse * count(counts, "LDS")) << code->source;
  EXPECT_GE((c.reuse > 1 ? 3 : 4) * products, codegen::total(counts))
      << "few of the loop's instructions multiply";
  EXPECT_GT(count(kernel->all, "BAR"), 0);
  if (!c.wide) return;
  EXPECT_GT(count(counts, "LDS", "128"), 0);
  EXPECT_GT(count(kernel->all, "LDG", "128") + count(kernel->all, "LDGSTS", "128"), 0);
}

INSTANTIATE_TEST_SUITE_P(Rules, GpuSass, ::testing::ValuesIn(sass_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tilewright::rules
