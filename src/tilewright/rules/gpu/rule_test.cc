// Kernels for GPUs by rule: they mean what their tensor form does, in every order of threads.
#include "tilewright/rules/gpu/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/testing/meaning.h"

namespace tilewright::rules {
namespace {

/// Few threads and little shared memory, so that small sizes have blocks and tails.
hw::GpuTarget gpu_rule_small_target() {
  hw::GpuTarget target;
  target.name = "small";
  target.shared_bytes = 16 << 10;
  return target;
}

struct GpuRuleCase {
  std::string name;
  OpCase op;
  bool shares = false;  ///< uses shared memory
};

std::vector<GpuRuleCase> gpu_rule_cases() {
  using Ints = std::vector<int64_t>;
  return {
      {"product", {"", "MatMul", {{70, 37}, {37, 90}}, {}}, true},
      {"dot", {"", "Gemm", {{1, 500}, {20, 500}, {20}}, {{"transB", int64_t{1}}}}, true},
      {"small", {"", "MatMul", {{20, 24}, {24, 34}}, {}}, true},
      {"batched", {"", "MatMul", {{3, 20, 17}, {3, 17, 33}}, {}}, true},
      {"vector", {"", "MatMul", {{1, 300}, {300, 70}}, {}}, true},
      {"conv",
       {"",
        "Conv",
        {{1, 5, 19, 21}, {70, 5, 3, 3}},
        {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}}},
       true},
      {"pointwise", {"", "Conv", {{1, 40, 9, 9}, {33, 40, 1, 1}}, {}}, true},
      {"depthwise",
       {"",
        "Conv",
        {{1, 12, 11, 11}, {12, 1, 3, 3}},
        {{"group", int64_t{12}}, {"pads", Ints{1, 1, 1, 1}}}},
       false},
      {"grouped", {"", "Conv", {{1, 12, 11, 11}, {24, 4, 3, 3}}, {{"group", int64_t{3}}}}, true},
      {"transposed",
       {"", "ConvTranspose", {{1, 6, 7, 7}, {6, 10, 3, 3}}, {{"strides", Ints{2, 2}}}},
       false},
      {"pool",
       {"", "MaxPool", {{1, 6, 15, 15}}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}}},
       false},
      {"softmax", {"", "Softmax", {{7, 150}}, {}}, true},
      {"softmax_of_one_row", {"", "Softmax", {{1, 10}}, {}}, true},
      {"mean", {"", "GlobalAveragePool", {{2, 9, 12, 12}}, {}}, true},
      // The product of all inputs, which steps read one after the other.
      {"lstm",
       {"", "LSTM", {{3, 2, 5}, {1, 24, 5}, {1, 24, 6}}, {{"hidden_size", int64_t{6}}}},
       true},
      {"relu", {"", "Relu", {{3, 1001}}, {}}, false},
      {"transpose", {"", "Transpose", {{5, 6, 7}}, {{"perm", Ints{2, 0, 1}}}}, false},
  };
}

bool uses_shared(const lower::GpuLaunches& plan) {
  bool shared = false;
  for (const lower::GpuKernel& kernel : plan.kernels)
    walk(kernel.func.body, [&](const Stmt& s) {
      const auto* alloc = s.as<Alloc>();
      shared |= alloc != nullptr && alloc->buffer.scope() == "shared";
    });
  return shared;
}

class GpuRule : public ::testing::TestWithParam<GpuRuleCase> {};

TEST_P(GpuRule, KeepsTheMeaning) {
  const GpuRuleCase& c = GetParam();
  const hw::GpuTarget target = gpu_rule_small_target();
  const Func func = func_of(c.op);
  const auto scheduled = schedule::replay(func, gpu_trace(func, target));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  EXPECT_EQ(uses_shared(*plan), c.shares) << print(*scheduled);
  for (const lower::GpuKernel& kernel : plan->kernels)
    EXPECT_GT(kernel.block[0] * kernel.block[1] * kernel.block[2], 1) << print(kernel.func);
  const interp::Arguments arguments = quarters(func);
  expect_plan_meaning(func, *plan, arguments, 1e-4);
}

bool copies_vectors(const OpCase& op) {
  const schedule::Trace trace = gpu_trace(func_of(op), gpu_rule_small_target());
  return std::any_of(trace.begin(), trace.end(), [](const schedule::Step& step) {
    const auto* vectorize = std::get_if<schedule::Vectorize>(&step);
    return vectorize != nullptr && vectorize->loop.find(".shared") != std::string::npos;
  });
}

TEST(GpuRuleCopies, WholeVectorsWhereRowsAreWholeVectors) {
  EXPECT_TRUE(copies_vectors({"", "MatMul", {{64, 64}, {64, 128}}, {}}));
  EXPECT_TRUE(copies_vectors({"", "MatMul", {{64, 37}, {37, 128}}, {}}));  // one factor
  EXPECT_FALSE(copies_vectors({"", "MatMul", {{64, 37}, {37, 90}}, {}}));
}

INSTANTIATE_TEST_SUITE_P(Operators, GpuRule, ::testing::ValuesIn(gpu_rule_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tilewright::rules
