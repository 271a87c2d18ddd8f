// Attention as one kernel for GPUs keeps its meaning in every order of threads.
#include "tilewright/rules/gpu/attention.h"

#include <limits>

#include "tilewright/rules/gpu/split_softmax_keys.h"
#include "tilewright/rules/gpu/testing/attention.h"
#include "tilewright/rules/gpu/testing/meaning.h"

namespace tilewright::rules {
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
    const lower::GpuLaunches plan = expect_gpu_meaning(func, target);
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

/// Shared memory for the scores of four queries, or of eight in two parts.
hw::GpuTarget little_memory(const char* name) {
  hw::GpuTarget target = few_units(name);
  target.shared_bytes = 19 << 10;
  return target;
}

void expect_same(const Func& func, const Func& other, const interp::Arguments& arguments) {
  const auto want = interp::run(func, arguments), got = interp::run(other, arguments);
  ASSERT_TRUE(want && got) << to_string(got ? want.error() : got.error()) << print(other);
  for (const auto& [name, value] : want->outputs)
    for (int64_t i = 0; i < value.size(); ++i)
      ASSERT_NEAR(got->outputs.at(name).get(i), value.get(i), 1e-5 * std::abs(value.get(i)) + 1e-6);
}

TEST(GpuKeyPartsSlow, AreKernelsOfTheirOwnThatKeepTheMeaning) {
  for (const bool masked : {true, false})
    for (const char* name : {"opencl", "cuda"}) {
      const hw::GpuTarget target = little_memory(name);
      const Func func = func_of(AttentionCase{"", 1, 2, 16, 256, 8, masked});
      const Func parts = with_key_parts(func, target);
      EXPECT_FALSE(equal(parts, func));
      EXPECT_TRUE(is_gpu_attention(func, target));
      expect_same(func, parts, quarters(func));
      const lower::GpuLaunches plan = expect_gpu_meaning(parts, target);
      EXPECT_GT(plan.kernels.size(), 1u);
      // Scores are nowhere but in shared memory.
      for (const Buffer& t : plan.temporaries) {
        int64_t elements = 1;
        for (const Expr& extent : t.shape()) elements *= *as_int(extent);
        EXPECT_LE(elements, 2 * 2 * 16 * 8) << t.name();
      }
    }
}

/// As many parts as a block has queries.
TEST(GpuKeyParts, AreNotTakenForQueries) {
  hw::GpuTarget target = little_memory("cuda");
  target.shared_bytes = 17 << 10;
  const Func func = func_of(AttentionCase{"", 1, 1, 16, 1024, 8});
  EXPECT_TRUE(is_gpu_attention(func, target));
  expect_gpu_meaning(with_key_parts(func, target), target);
}

/// A part of which a mask leaves nothing has no share, where it would be 0 / 0 by itself.
TEST(GpuKeyParts, HiddenPartsCountForNothing) {
  const Func func = func_of(AttentionCase{"", 1, 2, 16, 256, 8});
  const Func parts = with_key_parts(func, little_memory("cuda"));
  interp::Arguments arguments = quarters(func);
  for (auto& [name, array] : arguments.arrays)
    if (array.size() == 256 && array.shape().back() == 256)
      for (int64_t i = 0; i < 150; ++i) array.set(i, -std::numeric_limits<double>::infinity());
  expect_same(func, parts, arguments);
}

TEST(GpuKeyParts, OnlyWhereTheyHelp) {
  const Func func = func_of(AttentionCase{"", 1, 2, 16, 256, 8});
  EXPECT_TRUE(equal(with_key_parts(func, few_units("cuda")), func));
  Func exact = func;
  exact.math = MathMode::Exact;
  EXPECT_TRUE(equal(with_key_parts(exact, little_memory("cuda")), exact));
  const Func prime = func_of(AttentionCase{"", 1, 2, 16, 257, 8});
  EXPECT_TRUE(equal(with_key_parts(prime, little_memory("cuda")), prime));
  const Func rows = func_of(OpCase{"", "Softmax", {{16, 256}}, {}});
  EXPECT_TRUE(equal(with_key_parts(rows, little_memory("cuda")), rows));
}

TEST(GpuAttention, SeveralKernelsWhereScoresDoNotFit) {
  hw::GpuTarget target = few_units("opencl");
  target.shared_bytes = 4 << 10;
  const Func func = func_of(AttentionCase{"", 1, 2, 16, 200, 8});
  EXPECT_FALSE(is_gpu_attention(func, target));
  EXPECT_GT(expect_gpu_meaning(func, target).kernels.size(), 1u);
}

}  // namespace
}  // namespace tilewright::rules
