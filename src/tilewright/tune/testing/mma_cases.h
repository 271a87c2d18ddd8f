// Products that matrix instructions compute, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/tune/gpu_rule.h"
#include "tilewright/tune/testing/kernels.h"

namespace tilewright::tune {

struct MmaCase {
  std::string name, op;
  std::vector<Shape> inputs;
  std::map<std::string, tensor::AttrValue> attrs;
  DType dtype = DType::BF16;
  bool applies = true;
};

inline Func func_of(const MmaCase& c) {
  tensor::OpCall call;
  call.op = c.op;
  call.attrs.values = c.attrs;
  for (const Shape& shape : c.inputs) call.inputs.push_back({true, c.dtype, shape, {}});
  Result<Func> func = tensor::op_func(call);
  EXPECT_TRUE(func) << c.op << (func ? "" : to_string(func.error()));
  return *func;
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
      {"vector", "MatMul", {{1, 64}, {64, 64}}, {}, DType::BF16, false},
      {"single_precision", "MatMul", {{32, 32}, {32, 32}}, {}, DType::F32, false},
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

/// The rule with products by groups of warps.
inline GpuPlan plan_groups(const BlockFacts& block, const hw::GpuTarget& target) {
  GpuPlan plan = plan_gpu(block, target);
  if (plan.mma) plan.mma = in_groups(*plan.mma, target);
  return plan;
}

}  // namespace tilewright::tune
