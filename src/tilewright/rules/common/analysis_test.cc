// The paper's Table 3, where it is consistent, from this project's own operators.
#include "tilewright/rules/common/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::rules {
namespace {

using Params = std::map<std::string, int64_t>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Analysis of(const std::string& op, const Params& params) {
  const auto call = tensor::workload_call(op, params);
  EXPECT_TRUE(call) << to_string(call.error());
  const auto func = tensor::op_func(*call);
  EXPECT_TRUE(func) << to_string(func.error());
  return analyse(*func);
}

// source: FlexTensor (ASPLOS 2020), Table 3.
TEST(Analysis, CountsTheLoopsOfTheTable) {
  const Params image = {{"batch", 1}, {"in_channels", 4}, {"height", 8},
                        {"width", 8}, {"kernel_h", 3},    {"kernel_w", 3},
                        {"pad_h", 1}, {"pad_w", 1},       {"out_channels", 8}};
  const Analysis c2d = of("conv2d", image);
  ASSERT_EQ(c2d.nodes.size(), 2u);
  EXPECT_EQ(c2d.spatial, 8);
  EXPECT_EQ(c2d.reduce, 3);
  EXPECT_TRUE(c2d.nodes[0].inlinable);
  EXPECT_FALSE(c2d.nodes[1].inlinable);
  EXPECT_THAT(c2d.nodes[0].consumers, ElementsAre(c2d.nodes[1].name));
  EXPECT_THAT(c2d.nodes[1].producers, ElementsAre(c2d.nodes[0].name));
  EXPECT_EQ(c2d.nodes[1].operations, 2.0 * 8 * 8 * 8 * 4 * 9);
  const Analysis gemm = of("gemm", {{"m", 4}, {"n", 5}, {"k", 6}});
  ASSERT_EQ(gemm.nodes.size(), 1u);
  EXPECT_EQ(gemm.nodes[0].spatial(), 2);
  EXPECT_EQ(gemm.nodes[0].reduce(), 1);
  EXPECT_EQ(gemm.nodes[0].loops[0].trips, 4);
  EXPECT_EQ(gemm.inputs, 2);
  EXPECT_EQ(gemm.outputs, 1);
  const Analysis gemv = of("gemv", {{"m", 4}, {"k", 6}});
  EXPECT_EQ(gemv.spatial, 1);
  EXPECT_EQ(gemv.reduce, 1);
}

TEST(Analysis, InitialValuesBelongToTheirSum) {
  const auto func = parse_func(R"(
func f(A: f32[4, 6], b: f32[4], out Y: f32[4]) {
  alloc B: f32[4]
  for B.i in 4 { block B(i: space 4 = B.i) { B[i] = b[i] * 2.0 } }
  for Y.init.i in 4 { block Y.init(i: space 4 = Y.init.i) { Y[i] = B[i] } }
  for Y.i in 4, Y.k in 6 {
    block Y(i: space 4 = Y.i, k: reduce 6 = Y.k) { Y[i] += A[i, k] }
  }
})");
  ASSERT_TRUE(func) << to_string(func.error());
  const Analysis analysis = analyse(*func);
  ASSERT_EQ(analysis.nodes.size(), 2u);
  EXPECT_THAT(analysis.nodes[0].consumers, ElementsAre("Y"));
  EXPECT_THAT(analysis.nodes[1].producers, ElementsAre("B"));
  EXPECT_THAT(to_text(analysis), HasSubstr("Y: spatial [i 4] reduce [k 6], 0 consumers"));
}

}  // namespace
}  // namespace tilewright::rules
