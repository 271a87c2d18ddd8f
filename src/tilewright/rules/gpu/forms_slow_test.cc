// Forms that the rule takes for larger shapes only, on the first device against the
// interpreter: split sums, rows, Winograd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/gpu/testing/runner.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {
namespace {

using codegen::testing::GpuBatch;
using Ints = std::vector<int64_t>;

GpuPlan in_parts(const BlockFacts& block, const hw::GpuTarget& target) {
  GpuPlan plan = plan_gpu(block, target);
  if (plan.tile) plan.tile->splits = 4;
  return plan;
}

struct Case {
  OpCase op;
  PlanGpu plan = plan_gpu;
  size_t kernels = 1;
};

std::vector<Case> cases() {
  const std::map<std::string, tensor::AttrValue> same = {{"pads", Ints{1, 1, 1, 1}}};
  const auto tiles = [&](int64_t m) {
    std::map<std::string, tensor::AttrValue> attrs = same;
    attrs["m"] = m;
    return attrs;
  };
  return {
      {{"", "MatMul", {{37, 512}, {512, 41}}, {}}, in_parts, 2},
      {{"", "MatMul", {{3, 17, 400}, {3, 400, 19}}, {}}, in_parts, 2},
      {{"", "Conv", {{1, 64, 9, 7}, {37, 64, 3, 3}}, same}, in_parts, 2},
      {{"tilewright", "WinogradConv", {{1, 19, 13, 15}, {1, 4, 4, 19, 23}, {23}}, tiles(2)},
       plan_gpu,
       3},
      {{"tilewright", "WinogradConv", {{2, 16, 16, 12}, {1, 6, 6, 16, 20}}, tiles(4)}, plan_gpu, 3},
      {{"", "Softmax", {{2, 3, 5, 333}}, {}}},
      {{"", "Softmax", {{1, 1000}}, {}}},
      {{"", "LogSoftmax", {{11, 1024}}, {}}},
      {{"", "LayerNormalization", {{2, 7, 768}, {768}, {768}}, {}}},
  };
}

void agree(const std::string& language) {
  const auto device = runtime::open_gpu(language);
  if (!device) GTEST_SKIP() << to_string(device.error());
  const hw::GpuTarget target = *hw::find_gpu_target(language);
  const std::vector<Case> all = cases();
  GpuBatch batch(target);
  std::vector<Func> funcs;
  for (size_t i = 0; i < all.size(); ++i) {
    funcs.push_back(func_of(all[i].op));
    funcs.back().name += std::to_string(i);
    const auto scheduled =
        schedule::replay(funcs.back(), gpu_trace(funcs.back(), target, all[i].plan));
    ASSERT_TRUE(scheduled) << i << to_string(scheduled.error());
    const auto plan = lower::lower_for_gpu(*scheduled, target);
    ASSERT_TRUE(plan) << i << to_string(plan.error());
    EXPECT_EQ(plan->kernels.size(), all[i].kernels) << i << " " << all[i].op.op;
    const Status added = batch.add(funcs.back(), *scheduled, quarters(funcs.back(), i));
    ASSERT_TRUE(added) << i << to_string(added.error());
  }
  const auto got = batch.run(**device);
  ASSERT_TRUE(got) << to_string(got.error());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto expected = interp::run(funcs[i], quarters(funcs[i], i));
    ASSERT_TRUE(expected) << i << to_string(expected.error());
    const Status same = codegen::testing::compare(expected->outputs, (*got)[i], 1e-4);
    EXPECT_TRUE(same) << i << " " << all[i].op.op << "\n" << to_string(same.error());
  }
}

TEST(GpuForms, OpenClAgreesWithTheInterpreter) { agree("opencl"); }

TEST(GpuForms, CudaAgreesWithTheInterpreter) { agree("cuda"); }

}  // namespace
}  // namespace tilewright::rules
