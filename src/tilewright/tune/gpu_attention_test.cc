// Attention as one kernel for GPUs keeps its meaning in every order of threads.
#include "tilewright/tune/gpu_attention.h"

#include "tilewright/tune/testing/attention.h"
#include "tilewright/tune/testing/gpu_meaning.h"

namespace tilewright::tune {
namespace {

hw::GpuTarget few_units(const char* name) {
  hw::GpuTarget target = *hw::find_gpu_target(name);
  target.units = 2;
  return target;
}

class GpuAttention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(GpuAttention, OneKernelKeepsTheMeaning) {
  const Func func = func_of(GetParam());
  for (const char* name : {"opencl", "cuda"}) {
    const hw::GpuTarget target = few_units(name);
    EXPECT_TRUE(is_gpu_attention(func, target));
    const lower::GpuPlan plan = expect_gpu_meaning(func, target);
    EXPECT_EQ(plan.kernels.size(), 1u);
    EXPECT_TRUE(plan.temporaries.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GpuAttention, ::testing::ValuesIn(attention_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(GpuAttention, IsOneGroupWhereAllOfItRunsOnOneDevice) {
  const graph::Graph graph = graph_of(attention_cases()[0]);
  graph::FuseOptions options;
  options.join = [](const graph::Group&) { return true; };
  options.device = [](int) { return "cuda"; };
  const std::vector<graph::Group> groups = graph::fuse(graph, options);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].device, "cuda");
  options.device = [&](int node) {
    return graph.nodes[static_cast<size_t>(node)].op == "Softmax" ? "" : "cuda";
  };
  EXPECT_GT(graph::fuse(graph, options).size(), 1u);
}

TEST(GpuAttention, SeveralKernelsWhereScoresDoNotFit) {
  hw::GpuTarget target = few_units("opencl");
  target.shared_bytes = 4 << 10;
  const Func func = func_of({"", 1, 2, 16, 200, 8});
  EXPECT_FALSE(is_gpu_attention(func, target));
  EXPECT_GT(expect_gpu_meaning(func, target).kernels.size(), 1u);
}

}  // namespace
}  // namespace tilewright::tune
