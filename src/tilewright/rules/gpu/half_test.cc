// Operators of f16 on a small GPU: kernels by rule mean what their tensor form does.
#include "tilewright/rules/gpu/testing/meaning.h"

namespace tilewright::rules {
namespace {

Func halves(const OpCase& c) {
  tensor::OpCall call;
  call.op = c.op;
  call.attrs.values = c.attrs;
  for (const Shape& shape : c.inputs) call.inputs.push_back({true, DType::F16, shape, {}});
  Result<Func> func = tensor::op_func(call);
  EXPECT_TRUE(func) << c.op << (func ? "" : to_string(func.error()));
  return *func;
}

TEST(GpuHalf, OperatorsOnASmallDevice) {
  const hw::GpuTarget target = *hw::find_gpu_target("opencl-mali");
  ASSERT_TRUE(target.has_f16);
  using Ints = std::vector<int64_t>;
  const std::vector<OpCase> cases = {
      {"", "MatMul", {{40, 24}, {24, 36}}, {}},
      {"", "MatMul", {{1, 200}, {200, 33}}, {}},
      {"", "Conv", {{1, 8, 9, 9}, {12, 8, 3, 3}}, {{"pads", Ints{1, 1, 1, 1}}}},
      {"",
       "Conv",
       {{1, 12, 9, 9}, {12, 1, 3, 3}},
       {{"group", int64_t{12}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"", "Softmax", {{9, 150}}, {}},
      {"", "Mul", {{3, 101}, {3, 101}}, {}},
      {"", "MaxPool", {{1, 6, 15, 15}}, {{"kernel_shape", Ints{3, 3}}}},
  };
  for (const OpCase& c : cases) {
    const lower::GpuLaunches plan = expect_gpu_meaning(halves(c), target, 2e-3);
    EXPECT_FALSE(plan.kernels.empty()) << c.op;
  }
}

}  // namespace
}  // namespace tilewright::rules
