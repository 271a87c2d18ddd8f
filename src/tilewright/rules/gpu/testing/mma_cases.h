// Products that matrix instructions compute, for tests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {

struct MmaCase {
  std::string name, op;
  std::vector<Shape> inputs;
  std::map<std::string, tensor::AttrValue> attrs;
  DType dtype = DType::BF16;
  bool applies = true;
  std::optional<DType> second = {};  ///< type of the second operand, if it is another
};

inline Func func_of(const MmaCase& c) {
  tensor::OpCall call;
  call.op = c.op;
  call.attrs.values = c.attrs;
  for (const Shape& shape : c.inputs) call.inputs.push_back({true, c.dtype, shape, {}});
  if (c.second) call.inputs[1].dtype = *c.second;
  Result<Func> func = tensor::op_func(call);
  EXPECT_TRUE(func) << c.op << (func ? "" : to_string(func.error()));
  return *func;
}

/// Whole ranges of bytes, quarters of other types.
inline interp::Arguments exact(const Func& func) {
  return bit_width(func.params[0].buffer.dtype()) == 8 ? whole_bytes(func) : quarters(func);
}

/// Sizes with and without a rest, every order of operands.
inline std::vector<MmaCase> small_mma_cases() {
  const std::map<std::string, tensor::AttrValue> trans_a = {{"transA", int64_t{1}}};
  const std::map<std::string, tensor::AttrValue> trans_b = {{"transB", int64_t{1}}};
  return {
      {"whole_tiles", "MatMul", {{64, 64}, {64, 32}}, {}},
      {"half", "MatMul", {{32, 32}, {32, 32}}, {}, DType::F16},
      {"ragged", "MatMul", {{37, 41}, {41, 50}}, {}},
      {"batched", "MatMul", {{3, 20, 33}, {3, 33, 18}}, {}},
      {"one_matrix_for_all", "MatMul", {{2, 20, 40}, {40, 24}}, {}},
      {"dense", "Gemm", {{40, 48}, {56, 48}, {56}}, trans_b, DType::F16},
      {"transposed", "Gemm", {{48, 33}, {48, 25}}, trans_a},
      {"many_tiles", "MatMul", {{100, 40}, {40, 70}}, {}},
      {"bytes", "MatMulInteger", {{40, 70}, {70, 24}}, {}, DType::I8},
      {"unsigned", "MatMulInteger", {{24, 64}, {64, 40}}, {}, DType::U8},
      {"mixed", "MatMulInteger", {{40, 70}, {70, 24}}, {}, DType::U8, true, DType::I8},
      {"mixed_batched",
       "MatMulInteger",
       {{2, 20, 64}, {2, 64, 18}},
       {},
       DType::I8,
       true,
       DType::U8},
      {"vector", "MatMul", {{1, 64}, {64, 64}}, {}, DType::BF16, false},
      {"single_precision", "MatMul", {{32, 32}, {32, 32}}, {}, DType::F32, false},
  };
}

/// Convolutions: windows, strides, dilation, padding, groups, several images, odd sizes.
inline std::vector<MmaCase> conv_mma_cases() {
  const auto padded = [](int64_t pad) {
    return std::map<std::string, tensor::AttrValue>{
        {"pads", std::vector<int64_t>{pad, pad, pad, pad}}};
  };
  const auto with = [](std::map<std::string, tensor::AttrValue> attrs, const std::string& key,
                       tensor::AttrValue value) {
    attrs[key] = std::move(value);
    return attrs;
  };
  return {
      {"same", "Conv", {{1, 16, 6, 6}, {16, 16, 3, 3}}, padded(1)},
      {"odd", "Conv", {{2, 5, 7, 5}, {11, 5, 3, 2}, {11}}, {}, DType::F16},
      {"strided",
       "Conv",
       {{1, 8, 9, 9}, {16, 8, 3, 3}, {16}},
       with(padded(1), "strides", std::vector<int64_t>{2, 2})},
      {"dilated",
       "Conv",
       {{1, 8, 9, 8}, {8, 8, 3, 3}},
       with(padded(2), "dilations", std::vector<int64_t>{2, 2})},
      {"pointwise", "Conv", {{3, 24, 4, 4}, {40, 24, 1, 1}}, {}, DType::F16},
      {"pointwise_odd", "Conv", {{2, 24, 7, 3}, {16, 24, 1, 1}}, {}},
      {"first",
       "Conv",
       {{1, 3, 15, 15}, {16, 3, 7, 7}},
       with(padded(3), "strides", std::vector<int64_t>{2, 2})},
      {"groups",
       "Conv",
       {{1, 32, 5, 5}, {32, 16, 3, 3}, {32}},
       with(padded(1), "group", int64_t{2})},
      {"line", "Conv", {{2, 8, 20}, {16, 8, 3}}, {{"pads", std::vector<int64_t>{1, 1}}}},
      {"transposed", "ConvTranspose", {{1, 16, 4, 4}, {16, 8, 3, 3}}, padded(1)},
      {"bytes", "ConvInteger", {{1, 16, 6, 6}, {16, 16, 3, 3}}, padded(1), DType::I8},
      {"mixed",
       "ConvInteger",
       {{2, 16, 5, 7}, {24, 16, 3, 3}},
       padded(1),
       DType::U8,
       true,
       DType::I8},
      {"unsigned_odd", "ConvInteger", {{1, 5, 7, 6}, {11, 5, 3, 2}}, {}, DType::U8},
      {"mixed_pointwise",
       "ConvInteger",
       {{2, 32, 4, 6}, {16, 32, 1, 1}},
       {},
       DType::U8,
       true,
       DType::I8},
      {"few_groups",
       "Conv",
       {{1, 16, 5, 5}, {16, 8, 3, 3}},
       with(padded(1), "group", int64_t{2}),
       DType::BF16,
       false},
      {"depthwise",
       "Conv",
       {{1, 16, 6, 6}, {16, 1, 3, 3}},
       with(padded(1), "group", int64_t{16}),
       DType::BF16,
       false},
  };
}

/// Products of f32, for targets that want them in TF32.
inline std::vector<MmaCase> tf32_mma_cases() {
  return {
      {"matrices", "MatMul", {{40, 24}, {24, 36}}, {}, DType::F32},
      {"dense", "Gemm", {{33, 40}, {24, 40}, {24}}, {{"transB", int64_t{1}}}, DType::F32},
      {"conv",
       "Conv",
       {{1, 8, 6, 5}, {16, 8, 3, 3}, {16}},
       {{"pads", std::vector<int64_t>{1, 1, 1, 1}}},
       DType::F32},
  };
}
inline hw::GpuTarget tf32_target() {
  hw::GpuTarget target = *hw::find_gpu_target("cuda");
  target.tf32 = true;
  return target;
}

/// Numbers that TF32 does not hold.
inline interp::Arguments thirds(const Func& func) {
  Rng rng(7);
  return arguments_of(func, [&](Array& array) {
    for (int64_t i = 0; i < array.size(); ++i)
      array.set(i, static_cast<double>(rng.between(-100, 100)) / 3);
  });
}

/// With terms that can be shared out to two blocks.
inline std::vector<MmaCase> split_mma_cases() {
  return {
      {"product", "MatMul", {{24, 96}, {96, 20}}, {}},
      {"batched", "MatMul", {{2, 20, 64}, {2, 64, 18}}, {}, DType::F16},
      {"dense", "Gemm", {{40, 80}, {24, 80}, {24}}, {{"transB", int64_t{1}}}},
      {"bytes", "MatMulInteger", {{16, 128}, {128, 24}}, {}, DType::I8},
      {"conv",
       "Conv",
       {{1, 32, 5, 5}, {16, 32, 3, 3}, {16}},
       {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}},
      {"pointwise", "Conv", {{1, 32, 4, 4}, {16, 32, 1, 1}}, {}, DType::F16},
  };
}

/// With rows for two products.
inline std::vector<MmaCase> row_part_cases() {
  return {
      {"plain", "MatMul", {{80, 64}, {64, 40}}, {}},
      {"half", "MatMul", {{75, 50}, {50, 33}}, {}, DType::F16},
      {"batched", "MatMul", {{2, 70, 64}, {2, 64, 40}}, {}},
      {"dense", "Gemm", {{80, 64}, {40, 64}, {40}}, {{"transB", int64_t{1}}}},
      {"bytes", "MatMulInteger", {{80, 64}, {64, 40}}, {}, DType::I8},
  };
}

/// Large enough for groups of warps.
inline std::vector<MmaCase> group_mma_cases() {
  return {
      {"whole_tiles", "MatMul", {{64, 128}, {128, 64}}, {}},
      {"ragged", "MatMul", {{37, 41}, {41, 50}}, {}},
      {"half", "MatMul", {{2, 40, 200}, {2, 200, 72}}, {}, DType::F16},
      {"dense", "Gemm", {{40, 80}, {56, 80}, {56}}, {{"transB", int64_t{1}}}},
      {"transposed", "Gemm", {{48, 70}, {48, 72}}, {{"transA", int64_t{1}}}},
  };
}

/// What the copy engine fetches: both operands in order, their rows multiples of 16 bytes.
inline std::vector<MmaCase> bulk_mma_cases() {
  const std::map<std::string, tensor::AttrValue> trans_b = {{"transB", int64_t{1}}};
  return {
      {"by_columns", "MatMul", {{64, 256}, {256, 128}}, {}},
      {"by_rows", "Gemm", {{64, 256}, {128, 256}, {128}}, trans_b, DType::F16},
      {"ragged", "MatMul", {{100, 136}, {136, 72}}, {}, DType::F16},
      {"ragged_rows", "Gemm", {{100, 200}, {90, 200}, {90}}, trans_b},
      {"batched", "MatMul", {{2, 40, 200}, {2, 200, 72}}, {}},
  };
}

/// The rule with products by groups of warps.
inline GpuPlan plan_groups(const BlockFacts& block, const hw::GpuTarget& target) {
  GpuPlan plan = plan_gpu(block, target);
  if (plan.mma) plan.mma = in_groups(*plan.mma, target);
  return plan;
}

/// The same, with copies that threads make.
inline GpuPlan plan_cores(const BlockFacts& block, const hw::GpuTarget& target) {
  GpuPlan plan = plan_groups(block, target);
  if (plan.mma) plan.mma->bulk = false;
  return plan;
}

}  // namespace tilewright::rules
