#include "tilewright/graph/passes/pack.h"

#include <gtest/gtest.h>

#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

/// The native packing against the operator's definition, run by the interpreter.
void expect_same(const std::string& op, DType dtype, const Shape& shape,
                 std::map<std::string, int64_t> attrs) {
  SCOPED_TRACE(op + to_string(shape));
  Rng rng(5);
  const Array source = random_array(rng, dtype, shape, 100);
  tensor::OpCall call;
  call.domain = "tilewright";
  call.op = op;
  for (const auto& [key, number] : attrs) call.attrs.values[key] = number;
  call.inputs.push_back({true, dtype, shape, source});
  const auto types = tensor::infer(call);
  ASSERT_TRUE(types) << to_string(types.error());
  const auto packed = pack_known(call, (*types)[0]);
  ASSERT_TRUE(packed);
  const auto expected = interp_evaluate(call, {source});
  ASSERT_TRUE(expected) << to_string(expected.error());
  EXPECT_TRUE(identical(*packed, (*expected)[0]));
}

TEST(Pack, EqualsTheOperatorsDefinition) {
  for (DType dtype : {DType::F32, DType::F16, DType::I8, DType::F64}) {
    expect_same("ToBlocked", dtype, {2, 7, 3, 2}, {{"block", 4}});
    expect_same("ToBlocked", dtype, {8, 1, 1}, {{"block", 4}});
    expect_same("PackConvWeight", dtype, {10, 6, 3, 2}, {{"block_in", 4}, {"block_out", 8}});
    expect_same("PackConvWeight", dtype, {8, 3, 1, 1}, {{"block_in", 3}, {"block_out", 4}});
    expect_same("PackDepthwiseWeight", dtype, {6, 1, 3, 2}, {{"block", 4}});
    expect_same("PackGemmWeight", dtype, {5, 7}, {{"transB", 0}, {"block", 4}});
    expect_same("PackGemmWeight", dtype, {5, 7}, {{"transB", 1}, {"block", 4}});
  }
}

TEST(Pack, WinogradWeightsEqualTheDefinitionUpToRounding) {
  // Ten filters: in two blocks, or in one that is longer than what is transformed together.
  for (const auto& [m, block] : std::vector<std::pair<int64_t, int64_t>>{{2, 8}, {4, 8}, {6, 16}}) {
    tensor::OpCall call;
    call.domain = "tilewright";
    call.op = "PackWinogradWeight";
    call.attrs.values = {{"block_in", int64_t{4}}, {"block_out", block}, {"m", m}};
    Rng rng(7);
    const Array source = random_array(rng, DType::F32, {10, 6, 3, 3}, 4);
    call.inputs.push_back({true, DType::F32, source.shape(), source});
    const auto types = tensor::infer(call);
    ASSERT_TRUE(types);
    const auto packed = pack_known(call, (*types)[0]);
    const auto expected = interp_evaluate(call, {source});
    ASSERT_TRUE(packed && expected);
    ASSERT_EQ(packed->shape(), (*expected)[0].shape());
    double filled = 0;
    for (int64_t i = 0; i < packed->size(); ++i) {
      EXPECT_NEAR(packed->get(i), (*expected)[0].get(i), 1e-5) << i;
      filled += packed->get(i) != 0;
    }
    EXPECT_GT(filled, 10 * 6 * m);
  }
}

TEST(Pack, OtherOperatorsAreNotPacked) {
  tensor::OpCall call;
  call.op = "Relu";
  call.inputs.push_back({true, DType::F32, {4}, Array(DType::F32, {4})});
  EXPECT_FALSE(pack_known(call, {DType::F32, {4}}));
}

}  // namespace
}  // namespace tilewright::graph
