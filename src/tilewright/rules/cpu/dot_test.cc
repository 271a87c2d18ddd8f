// Contractions in dot products compute what their tensor form does, and are dot products.
#include "tilewright/rules/cpu/dot.h"

#include <gtest/gtest.h>

#include "tilewright/rules/cpu/testing/instructions.h"
#include "tilewright/tensor/op.h"

namespace tilewright::rules {
namespace {

using Ints = std::vector<int64_t>;

struct DotCase {
  std::string op;
  std::vector<tensor::TensorType> inputs;
  std::map<std::string, tensor::AttrValue> attrs;
};

hw::CpuTarget with(const std::string& name, const std::string& feature) {
  hw::CpuTarget target = *hw::find_target(name);
  target.features.push_back(feature);
  return target;
}

Func dot_func_of(const DotCase& c, MathMode math = MathMode::Fast) {
  tensor::OpCall call;
  call.domain = "tilewright";
  call.op = c.op;
  call.attrs.values = c.attrs;
  for (const tensor::TensorType& type : c.inputs)
    call.inputs.push_back({true, type.dtype, type.shape, {}});
  Result<Func> func = tensor::op_func(call, math);
  EXPECT_TRUE(func) << c.op << to_string(func.error());
  return *func;
}

void expect_dots(const DotCase& c, const hw::CpuTarget& target, int threads) {
  expect_instructions(dot_func_of(c), target, threads);
}

std::vector<DotCase> byte_cases(int64_t b) {
  std::vector<DotCase> cases;
  struct Row {
    int64_t in, out, height, width, window, stride, pad;
  };
  for (const Row& r :
       {Row{2, 2, 5, 7, 3, 1, 1}, Row{1, 3, 4, 29, 1, 1, 0}, Row{2, 1, 9, 9, 3, 2, 1}})
    cases.push_back({"ConvDotBlocked",
                     {{DType::U8, {1, r.in, r.height, r.width, b}},
                      {DType::I8, {r.out, r.in, r.window, r.window, b / 4, b, 4}},
                      {DType::I32, {r.out * b}}},
                     {{"strides", Ints{r.stride, r.stride}},
                      {"pads", Ints{r.pad, r.pad, r.pad, r.pad}},
                      {"zero", int64_t{113}}}});
  for (const int64_t m : {1, 13})
    cases.push_back(
        {"GemmDotPacked", {{DType::U8, {m, 28}}, {DType::I8, {6, 7, b, 4}}}, {{"n", 6 * b}}});
  return cases;
}

std::vector<DotCase> window_cases(int64_t b, DType x = DType::U8) {
  std::vector<DotCase> cases;
  struct Row {
    int64_t blocks, height, width, window, stride, pad;
  };
  for (const Row& r : {Row{2, 6, 9, 3, 1, 1}, Row{3, 11, 8, 3, 2, 1}, Row{2, 9, 21, 5, 1, 2},
                       Row{1, 5, 6, 2, 1, 0}})
    cases.push_back({"DepthwiseDotBlocked",
                     {{x, {1, r.blocks, r.height, r.width, b}},
                      {DType::I8, {r.blocks, r.window, (r.window + 3) / 4, b, 4}},
                      {DType::I32, {r.blocks * b}}},
                     {{"strides", Ints{r.stride, r.stride}},
                      {"pads", Ints{r.pad, r.pad, r.pad, r.pad}},
                      {"width", r.window},
                      {"zero", int64_t{x == DType::U8 ? 113 : -7}}}});
  return cases;
}

TEST(DotRuleSlow, WindowsOfOneChannelBecomeDotProductsOfTaps) {
  for (const int threads : {1, 2}) {
    for (const DotCase& c : window_cases(16))
      expect_dots(c, with("x86-64-v4", "+avx512vnni"), threads);
    for (const DotCase& c : window_cases(8)) expect_dots(c, with("x86-64-v3", "+avxvnni"), threads);
    for (const DotCase& c : window_cases(4))
      expect_dots(c, *hw::find_target("aarch64-v8.6"), threads);
    for (const DotCase& c : window_cases(4, DType::I8))
      expect_dots(c, *hw::find_target("aarch64-v8.2"), threads);
  }
  EXPECT_FALSE(dot_trace(dot_func_of(window_cases(16)[0]), *hw::find_target("x86-64-v4"), 1));
}

TEST(DotRuleSlow, BytesBecomeDotProducts) {
  for (const int threads : {1, 2}) {
    for (const DotCase& c : byte_cases(16))
      expect_dots(c, with("x86-64-v4", "+avx512vnni"), threads);
    for (const DotCase& c : byte_cases(8)) expect_dots(c, with("x86-64-v3", "+avxvnni"), threads);
    for (const DotCase& c : byte_cases(4))
      expect_dots(c, *hw::find_target("aarch64-v8.6"), threads);
  }
}

TEST(DotRule, Bf16BecomesDotProductsInFastMathOnly) {
  const DotCase gemm = {"GemmDotPacked",
                        {{DType::BF16, {5, 12}}, {DType::BF16, {12, 6, 16, 2}}},
                        {{"n", int64_t{192}}}};
  const hw::CpuTarget target = with("x86-64-v4", "+avx512bf16");
  expect_dots(gemm, target, 1);
  EXPECT_FALSE(dot_trace(dot_func_of(gemm, MathMode::Exact), target, 1));
}

TEST(DotRule, WithoutTheInstructionThereIsNone) {
  for (const DotCase& c : byte_cases(16)) {
    EXPECT_FALSE(dot_trace(dot_func_of(c), *hw::find_target("x86-64-v4"), 1));
    EXPECT_FALSE(dot_trace(dot_func_of(c), *hw::find_target("aarch64-v8.2"), 1));
  }
  // Signed activations have none on x86.
  DotCase c = byte_cases(16).back();
  c.inputs[0].dtype = DType::I8;
  EXPECT_FALSE(dot_trace(dot_func_of(c), with("x86-64-v4", "+avx512vnni"), 1));
}

}  // namespace
}  // namespace tilewright::rules
