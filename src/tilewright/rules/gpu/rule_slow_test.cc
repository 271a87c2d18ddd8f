// Operators of every element type, scheduled by rule for GPUs: on the first OpenCL device they must
// agree with the interpreter, and their CUDA text must compile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/codegen/gpu/testing/runner.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {
namespace {

using codegen::testing::GpuBatch;
using Ints = std::vector<int64_t>;

/// Sizes are primes and what is left over from tiles.
std::vector<OpCase> operators() {
  const std::map<std::string, tensor::AttrValue> same = {{"pads", Ints{1, 1, 1, 1}}};
  return {
      {"", "MatMul", {{37, 19}, {19, 71}}, {}},
      {"", "MatMul", {{3, 20, 17}, {3, 17, 33}}, {}},
      {"", "MatMul", {{1, 300}, {300, 7}}, {}},
      {"", "Gemm", {{5, 41}, {23, 41}, {23}}, {{"transB", int64_t{1}}}},
      {"", "Conv", {{1, 5, 13, 11}, {37, 5, 3, 3}}, same},
      {"", "Conv", {{2, 5, 13, 11}, {7, 5, 3, 3}}, {{"strides", Ints{2, 2}}}},
      {"", "Conv", {{1, 5, 13, 11}, {7, 5, 3, 3}}, {{"dilations", Ints{2, 2}}}},
      {"", "Conv", {{1, 12, 11, 7}, {12, 1, 3, 3}}, {{"group", int64_t{12}}}},
      {"", "Conv", {{1, 12, 11, 7}, {24, 4, 3, 3}}, {{"group", int64_t{3}}}},
      {"", "ConvTranspose", {{1, 6, 7, 5}, {6, 5, 3, 3}}, {{"strides", Ints{2, 2}}}},
      {"", "MaxPool", {{1, 6, 15, 13}}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}}},
      {"", "AveragePool", {{1, 6, 15, 13}}, {{"kernel_shape", Ints{2, 2}}}},
      {"", "GlobalAveragePool", {{2, 9, 12, 11}}, {}},
      {"", "ReduceMax", {{13, 257}}, {{"axes", Ints{1}}}},
      {"", "Softmax", {{7, 150}}, {}},
      {"", "Add", {{3, 1, 37}, {11, 1}}, {}},
      {"", "Mul", {{3, 101}, {3, 101}}, {}},
      {"", "Relu", {{3, 101}}, {}},
      {"", "Sigmoid", {{3, 101}}, {}},
      {"", "Tanh", {{3, 101}}, {}},
      {"", "Transpose", {{5, 6, 7}}, {{"perm", Ints{2, 0, 1}}}},
      {"", "LSTM", {{3, 2, 5}, {1, 24, 5}, {1, 24, 6}}, {{"hidden_size", int64_t{6}}}},
  };
}

/// The operator on inputs of a type; errors where it is not defined for it.
Result<Func> func_of_type(const OpCase& c, DType dtype) {
  tensor::OpCall call;
  call.op = c.op;
  call.attrs.values = c.attrs;
  for (const Shape& shape : c.inputs) call.inputs.push_back({true, dtype, shape, {}});
  Func func = TW_TRY(tensor::op_func(call));
  func.name = fmt::format("{}_{}", c.op, name(dtype));
  return func;
}

/// -1, 0 and 1: sums are exact in every type.
interp::Arguments signs(const Func& func, uint64_t seed) {
  Rng rng(seed);
  return arguments_of(func, [&](Array& array) {
    for (int64_t i = 0; i < array.size(); ++i)
      array.set_int(i, rng.between(is_unsigned_int(array.dtype()) ? 0 : -1, 1));
  });
}

double tolerance_of(DType dtype) {
  return dtype == DType::F16 ? 2e-3 : dtype == DType::BF16 ? 1.6e-2 : 4e-6;
}

class OfType : public ::testing::TestWithParam<DType> {
 protected:
  /// The operators that are defined for the type.
  std::vector<Func> funcs() const {
    std::vector<Func> out;
    for (const OpCase& c : operators())
      if (Result<Func> func = func_of_type(c, GetParam())) out.push_back(std::move(*func));
    return out;
  }
  void agrees(const std::string& language) const;
  void fill(GpuBatch& batch, const std::vector<Func>& all, const hw::GpuTarget& target) const {
    for (size_t i = 0; i < all.size(); ++i) {
      const auto scheduled = schedule::replay(all[i], gpu_trace(all[i], target));
      ASSERT_TRUE(scheduled) << all[i].name << to_string(scheduled.error());
      const Status added = batch.add(all[i], *scheduled, signs(all[i], i));
      ASSERT_TRUE(added) << all[i].name << to_string(added.error());
    }
  }
};

/// Kernels for a target and device of that name.
void OfType::agrees(const std::string& language) const {
  const auto device = runtime::open_gpu(language);
  if (!device) GTEST_SKIP() << to_string(device.error());
  const hw::GpuTarget target = *hw::find_gpu_target(language);
  const std::vector<Func> all = funcs();
  EXPECT_GE(all.size(), is_float(GetParam()) ? operators().size() - 1 : 3u);
  GpuBatch batch(target);
  fill(batch, all, target);
  const auto got = batch.run(**device);
  ASSERT_TRUE(got) << to_string(got.error());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto expected = interp::run(all[i], signs(all[i], i));
    ASSERT_TRUE(expected) << all[i].name << to_string(expected.error());
    const Status same =
        codegen::testing::compare(expected->outputs, (*got)[i], tolerance_of(GetParam()));
    EXPECT_TRUE(same) << i << " " << all[i].name << "\n" << to_string(same.error());
  }
}

TEST_P(OfType, OpenClAgreesWithTheInterpreter) { agrees("opencl"); }

TEST_P(OfType, CudaAgreesWithTheInterpreter) { agrees("cuda"); }

TEST_P(OfType, CudaCompiles) {
  if (const auto version = codegen::nvrtc_version(); !version)
    GTEST_SKIP() << to_string(version.error());
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  GpuBatch batch(target);
  fill(batch, funcs(), target);
  const auto source = batch.source();
  ASSERT_TRUE(source) << to_string(source.error());
  const auto code = codegen::compile_cuda(*source, target.arch);
  ASSERT_TRUE(code) << to_string(code.error()).substr(0, 4000);
  for (const codegen::CudaKernelUse& use : code->kernels)
    EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
}

std::string name_of(const ::testing::TestParamInfo<DType>& test) {
  return std::string(name(test.param));
}

INSTANTIATE_TEST_SUITE_P(GpuRuleSlow, OfType, ::testing::Values(DType::F32, DType::F16, DType::I8),
                         name_of);
INSTANTIATE_TEST_SUITE_P(GpuRuleFull, OfType,
                         ::testing::Values(DType::F64, DType::BF16, DType::U8, DType::I32,
                                           DType::I64),
                         name_of);

}  // namespace
}  // namespace tilewright::rules
