#include "tilewright/rules/gpu/row_kernel.h"

#include "tilewright/lower/gpu_fragments.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/rules/gpu/testing/meaning.h"

namespace tilewright::rules {
namespace {

hw::GpuTarget small_target() {
  hw::GpuTarget target;
  target.name = "small";
  return target;
}

/// Blocks get several rows there.
hw::GpuTarget one_unit(const char* name) {
  hw::GpuTarget target = *hw::find_gpu_target(name);
  target.units = 1;
  return target;
}

struct RowsCase {
  std::string name;
  OpCase op;
};

class GpuRows : public ::testing::TestWithParam<RowsCase> {};

TEST_P(GpuRows, OneKernelKeepsTheMeaning) {
  const Func func = func_of(GetParam().op);
  for (const hw::GpuTarget& target :
       {small_target(), one_unit("cuda"), *hw::find_gpu_target("cuda")}) {
    const lower::GpuLaunches plan = expect_gpu_meaning(func, target);
    ASSERT_EQ(plan.kernels.size(), 1u) << target.name;
    EXPECT_TRUE(plan.temporaries.empty());
    EXPECT_GE(plan.kernels[0].block[0], 32);
    EXPECT_EQ(lower::contains(plan.kernels[0].func.body, lower::is_warp_call),
              target.language == hw::GpuLanguage::Cuda);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operators, GpuRows,
    ::testing::Values(RowsCase{"softmax", {"", "Softmax", {{7, 150}}, {}}},
                      RowsCase{"softmax_of_one_row", {"", "Softmax", {{1, 1000}}, {}}},
                      RowsCase{"softmax_of_many_rows", {"", "Softmax", {{24, 100}}, {}}},
                      RowsCase{"softmax_of_a_batch", {"", "Softmax", {{2, 3, 4, 37}}, {}}},
                      RowsCase{"log_softmax", {"", "LogSoftmax", {{5, 300}}, {}}},
                      RowsCase{"layer_norm",
                               {"", "LayerNormalization", {{6, 70}, {70}, {70}}, {}}}),
    [](const auto& test) { return test.param.name; });

TEST(GpuRows, RowsThatDoNotFit) {
  const hw::GpuTarget target = small_target();
  for (const Shape& shape : {Shape{2, 40000}, Shape{300, 5}}) {
    const Func func = func_of(OpCase{"", "Softmax", {shape}, {}});
    const auto scheduled = schedule::replay(func, gpu_trace(func, target));
    ASSERT_TRUE(scheduled) << to_string(scheduled.error());
    const auto plan = lower::lower_for_gpu(*scheduled, target);
    ASSERT_TRUE(plan) << to_string(plan.error());
    EXPECT_GT(plan->kernels.size(), 1u) << to_string(shape);
  }
}

}  // namespace
}  // namespace tilewright::rules
