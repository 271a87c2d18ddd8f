// Operators over odd shapes and every kind of register tile, scheduled by rule.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/lower/lower.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/tensor/op.h"

namespace tilewright::e2e {

/// One operator on inputs of these types.
struct OperatorCase {
  std::string name;
  std::string domain, op;
  std::vector<tensor::TensorType> inputs;
  std::map<std::string, tensor::AttrValue> attrs;
};

inline Result<Func> func_of(const OperatorCase& test) {
  tensor::OpCall call;
  call.domain = test.domain;
  call.op = test.op;
  call.attrs.values = test.attrs;
  for (const tensor::TensorType& type : test.inputs)
    call.inputs.push_back({true, type.dtype, type.shape, {}});
  Func func = TW_TRY(tensor::op_func(call));
  func.name = test.name;
  return func;
}

/// The default schedule for `threads`, lowered.
inline Result<Func> scheduled(const Func& func, const hw::CpuTarget& target, int threads) {
  Func out = TW_TRY(schedule::replay(func, rules::default_trace(func, target, threads)));
  out.name = func.name;
  return lower::run_pipeline(out, "cpu");
}

class Matrix {
 public:
  using Ints = std::vector<int64_t>;

  void add(const std::string& kind, const std::string& domain, const std::string& op,
           std::vector<tensor::TensorType> inputs,
           std::map<std::string, tensor::AttrValue> attrs = {}) {
    cases_.push_back({fmt::format("{}_{}", kind, cases_.size()), domain, op, std::move(inputs),
                      std::move(attrs)});
  }

  /// Convolutions as graphs give them: blocked channels, packed weights.
  void convolutions(int64_t b) {
    struct Row {
      int64_t in, out, height, width, window, stride, pad;
    };
    for (const Row& r :
         {Row{1, 2, 7, 7, 3, 1, 1}, Row{2, 1, 5, 13, 1, 1, 0}, Row{1, 1, 9, 29, 3, 2, 1},
          Row{1, 3, 6, 17, 5, 1, 2}, Row{2, 4, 4, 4, 3, 1, 0}, Row{1, 6, 3, 1, 1, 2, 0}}) {
      const std::map<std::string, tensor::AttrValue> attrs = {
          {"strides", Ints{r.stride, r.stride}}, {"pads", Ints{r.pad, r.pad, r.pad, r.pad}}};
      const Shape x = {1, r.in, r.height, r.width, b};
      add("conv", "tilewright", "ConvBlocked",
          {{DType::F32, x},
           {DType::F32, {r.out, r.in, r.window, r.window, b, b}},
           {DType::F32, {r.out * b}}},
          attrs);
      add("depthwise", "tilewright", "DepthwiseConvBlocked",
          {{DType::F32, x}, {DType::F32, {r.in, r.window, r.window, b}}}, attrs);
      add("conv_u8", "tilewright", "ConvDotBlocked",
          {{DType::U8, x},
           {DType::I8, {r.out, r.in, r.window, r.window, b / 4, b, 4}},
           {DType::I32, {r.out * b}}},
          attrs);
      add("conv_bf16", "tilewright", "ConvDotBlocked",
          {{DType::BF16, x}, {DType::BF16, {r.out, r.in, r.window, r.window, b / 2, b, 2}}}, attrs);
      add("max_pool", "tilewright", "MaxPoolBlocked", {{DType::F32, x}},
          {{"kernel_shape", Ints{r.window, r.window}}, {"strides", Ints{r.stride, r.stride}}});
    }
    add("conv_plain", "", "Conv", {{DType::F32, {1, 3, 11, 13}}, {DType::F32, {5, 3, 3, 3}}});
  }

  void products(int64_t b) {
    for (const int64_t m : {1, 3, 13, 29})
      for (const int64_t n : {b, 3 * b, 2 * b + 5}) {
        const int64_t blocks = (n + b - 1) / b;
        add("gemm", "tilewright", "GemmPacked",
            {{DType::F32, {m, 23}}, {DType::F32, {blocks, 23, b}}, {DType::F32, {n}}}, {{"n", n}});
        if (n % b == 0)
          add("gemm_u8", "tilewright", "GemmDotPacked",
              {{DType::U8, {m, 28}}, {DType::I8, {blocks, 7, b, 4}}}, {{"n", n}});
        add("matmul", "", "MatMul", {{DType::F32, {m, 19}}, {DType::F32, {19, n}}});
        add("matmul_integer", "", "MatMulInteger", {{DType::U8, {m, 19}}, {DType::I8, {19, n}}});
      }
  }

  void others() {
    for (const Shape& s : {Shape{3, 37}, Shape{2, 5, 129}, Shape{1, 7}}) {
      for (const char* op : {"Relu", "Sigmoid", "Exp", "Softmax", "LogSoftmax"})
        add(op, "", op, {{DType::F32, s}});
      add("Add", "", "Add", {{DType::F32, s}, {DType::F32, {s.back()}}});
      add("LayerNormalization", "", "LayerNormalization",
          {{DType::F32, s}, {DType::F32, {s.back()}}, {DType::F32, {s.back()}}});
      add("Transpose", "", "Transpose", {{DType::F32, s}});
      add("Concat", "", "Concat", {{DType::F32, s}, {DType::F32, s}}, {{"axis", int64_t{-1}}});
      add("Cast", "", "Cast", {{DType::F32, s}}, {{"to", int64_t{3}}});
    }
    add("global_pool", "", "GlobalAveragePool", {{DType::F32, {1, 5, 7, 11}}});
    add("max_pool_plain", "", "MaxPool", {{DType::F32, {1, 3, 9, 13}}},
        {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
    add("to_blocked", "tilewright", "ToBlocked", {{DType::F32, {1, 21, 5, 7}}},
        {{"block", int64_t{16}}});
    add("from_blocked", "tilewright", "FromBlocked", {{DType::F32, {1, 2, 5, 7, 16}}},
        {{"channels", int64_t{21}}});
  }

  std::vector<OperatorCase> take() { return std::move(cases_); }

 private:
  std::vector<OperatorCase> cases_;
};

/// All operators, in blocks of the target's vectors.
inline std::vector<OperatorCase> kernel_matrix(const hw::CpuTarget& target) {
  Matrix matrix;
  const int64_t block = target.lanes(32);
  matrix.convolutions(block);
  matrix.products(block);
  matrix.others();
  return matrix.take();
}

}  // namespace tilewright::e2e
