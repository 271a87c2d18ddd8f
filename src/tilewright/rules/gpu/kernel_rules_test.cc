// Which rule takes which kernel on GPUs, and why those before it decline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/rules/common/testing/rule_cases.h"
#include "tilewright/rules/gpu/row_kernel.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/testing/attention.h"
#include "tilewright/rules/gpu/testing/mma_cases.h"

namespace tilewright::rules {
namespace {

using testing::HasSubstr;

RuleReport gpu_report(const Func& func) {
  return choose_gpu_schedule(func, *hw::find_gpu_target("cuda")).rules;
}

OpCase winograd_of_tiles() {
  return {"tilewright",
          "WinogradConv",
          {{1, 40, 16, 16}, {1, 4, 4, 40, 48}},
          {{"m", int64_t{2}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}}};
}

Func softmax_rows_on_gpu() { return func_of(OpCase{"", "Softmax", {{7, 150}}, {}}); }

std::vector<TakenKernel> gpu_kernels() {
  const auto plain = [](OpCase op) { return gpu_report(func_of(op)); };
  return {
      {"recurrence",
       plain({"", "LSTM", {{3, 2, 5}, {1, 24, 5}, {1, 24, 6}}, {{"hidden_size", int64_t{6}}}})},
      {"winograd", plain(winograd_of_tiles())},
      {"attention", gpu_report(func_of(attention_cases()[0]))},
      {"matrix-instructions",
       gpu_report(func_of(MmaCase{"", "MatMul", {{64, 64}, {64, 64}}, {}, DType::BF16}))},
      {"row-kernel", gpu_report(softmax_rows_on_gpu())},
      {"shared-tile", plain({"", "MatMul", {{70, 37}, {37, 90}}, {}})},
      {"shared-terms", plain({"", "Gemm", {{1, 500}, {20, 500}}, {{"transB", int64_t{1}}}})},
      {"thread-per-result",
       plain({"", "MaxPool", {{1, 6, 15, 15}}, {{"kernel_shape", std::vector<int64_t>{3, 3}}}})},
      {"element-wise", plain({"", "Relu", {{3, 1001}}, {}})},
  };
}

TEST(GpuRules, StandInThisOrder) {
  EXPECT_THAT(names_of(gpu_rules()),
              testing::ElementsAre("recurrence", "winograd", "attention", "matrix-instructions",
                                   "row-kernel", "shared-tile", "shared-terms", "thread-per-result",
                                   "element-wise"));
}

TEST(GpuRules, EachTakesAKernelAndDeclinesAnother) {
  expect_rules(gpu_rules(), gpu_kernels(), {"element-wise"});
}

TEST(GpuRules, SayTheFactThatDecided) {
  const std::vector<TakenKernel> kernels = gpu_kernels();
  EXPECT_THAT(reason_of(kernels[5].report, "matrix-instructions"), HasSubstr("--tf32"));
  EXPECT_THAT(reason_of(kernels[6].report, "shared-tile"), HasSubstr("share no element"));
  EXPECT_THAT(reason_of(kernels[7].report, "shared-terms"), HasSubstr("9 terms for 1014 results"));
  const RuleReport narrow =
      gpu_report(func_of(MmaCase{"", "MatMul", {{64, 64}, {64, 4}}, {}, DType::BF16}));
  EXPECT_EQ(reason_of(narrow, "matrix-instructions"),
            "64 x 4 results of 64 terms fill little of 8 x 8 and 8");
}

/// The products between transforms are a sum like others.
TEST(GpuRules, SumsThatAKernelsRuleLeavesHaveTheirOwn) {
  const RuleReport report = gpu_report(func_of(winograd_of_tiles()));
  ASSERT_EQ(report.sums.size(), 1u);
  EXPECT_EQ(report.sums[0].block.substr(0, 8), "wino_sum");
  EXPECT_FALSE(report.sums[0].rule.empty());
  EXPECT_EQ(report.sums[0].declined.at(0).rule, "matrix-instructions");
}

/// Both the rule for rows and the one that shares out terms would take the sums of a softmax.
TEST(GpuRules, OrderDecidesWhereTwoWouldTakeIt) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const Func func = softmax_rows_on_gpu();
  const schedule::Trace without_rows =
      gpu_trace(func, target, [](const BlockFacts& block, const hw::GpuTarget& t) {
        GpuPlan plan = plan_gpu(block, t);
        plan.rows = false;
        return plan;
      });
  EXPECT_NE(schedule::print(without_rows), schedule::print(gpu_trace(func, target)));
  EXPECT_EQ(gpu_report(func).kernel.rule, "row-kernel");
}

}  // namespace
}  // namespace tilewright::rules
