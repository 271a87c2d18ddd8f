#include "tilewright/rules/common/work.h"

#include <gtest/gtest.h>

#include "tilewright/tensor/op.h"

namespace tilewright::rules {
namespace {

Work work_of_op(const std::string& op, const std::vector<tensor::TensorType>& inputs,
                const std::map<std::string, tensor::AttrValue>& attrs = {},
                const std::string& domain = "") {
  tensor::OpCall call;
  call.domain = domain;
  call.op = op;
  call.attrs.values = attrs;
  for (const tensor::TensorType& type : inputs)
    call.inputs.push_back({true, type.dtype, type.shape, {}});
  const Result<Func> func = tensor::op_func(call);
  EXPECT_TRUE(func) << to_string(func.error());
  return work_of(*func);
}

TEST(Work, AProductOfMatricesIsTwoPerMultiplyAdd) {
  const Work work = work_of_op("MatMul", {{DType::F32, {6, 10}}, {DType::F32, {10, 8}}});
  EXPECT_EQ(work.operations, 2 * 6 * 10 * 8);
  EXPECT_EQ(work.dtype, DType::F32);
}

TEST(Work, PaddingAndIndicesAreFree) {
  using Ints = std::vector<int64_t>;
  const Work work = work_of_op("Conv", {{DType::F32, {1, 3, 8, 8}}, {DType::F32, {5, 3, 3, 3}}},
                               {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  EXPECT_EQ(work.operations, 2 * 3 * 3 * 3 * 5 * 4 * 4);
}

TEST(Work, ElementwiseOperatorsCountTheirArithmetic) {
  EXPECT_EQ(work_of_op("Add", {{DType::F32, {4, 5}}, {DType::F32, {4, 5}}}).operations, 20);
  EXPECT_EQ(work_of_op("Transpose", {{DType::F32, {4, 5}}}).operations, 0);
}

TEST(Work, ChannelsThatFillABlockUpAreNotCounted) {
  const Work work = work_of_op("ConvBlocked",
                               {{DType::F32, {1, 2, 8, 8, 16}}, {DType::F32, {3, 2, 1, 1, 16, 16}}},
                               {{"channels", int64_t{24}}}, "tilewright");
  EXPECT_EQ(work.operations, 2 * 24 * 8 * 8 * 48);
}

TEST(Work, NarrowFactorsDecideThePeak) {
  const Work work = work_of_op("MatMulInteger", {{DType::U8, {4, 6}}, {DType::I8, {6, 2}}});
  EXPECT_EQ(work.dtype, DType::I8);
  EXPECT_GE(work.operations, 2 * 4 * 6 * 2);
}

}  // namespace
}  // namespace tilewright::rules
