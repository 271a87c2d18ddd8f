#include "tilewright/graph/onnx/advice.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "tilewright/base/scanner.h"
#include "tilewright/tensor/op.h"

namespace tilewright::graph {
namespace {

/// Operators of ONNX that a package of fixed steps and tensors cannot have.
const std::map<std::string, Advice>& of_onnx() {
  static const Advice text{"it works on strings", "convert text to numbers before the model"};
  static const Advice random{"its results differ in every run, so nothing could be verified",
                             "give the random numbers as an input of the model"};
  static const Advice training{"it belongs to training", "export the model for inference"};
  static const std::map<std::string, Advice> table = {
      {"StringNormalizer", text},   {"StringConcat", text},    {"StringSplit", text},
      {"RegexFullMatch", text},     {"TfIdfVectorizer", text}, {"RandomNormal", random},
      {"RandomNormalLike", random}, {"RandomUniform", random}, {"RandomUniformLike", random},
      {"Bernoulli", random},        {"Multinomial", random},   {"Gradient", training},
      {"Adam", training},           {"Adagrad", training},     {"Momentum", training}};
  return table;
}

/// ONNX Runtime's own operators (domain com.microsoft), and the standard ones that do the same.
const std::map<std::string, std::string>& of_microsoft() {
  static const std::map<std::string, std::string> table = {
      {"FusedConv", "Conv and its activation"},
      {"FusedGemm", "Gemm and its activation"},
      {"FusedMatMul", "Transpose, MatMul and Mul"},
      {"TransposeMatMul", "Transpose and MatMul"},
      {"Gelu", "Gelu of opset 20"},
      {"QuickGelu", "Mul, Sigmoid and Mul"},
      {"FastGelu", "Add and Gelu with approximate=tanh"},
      {"BiasGelu", "Add and Gelu"},
      {"BiasSoftmax", "Add and Softmax"},
      {"BiasDropout", "Add"},
      {"LayerNormalization", "LayerNormalization of opset 17"},
      {"SimplifiedLayerNormalization", "Mul, ReduceMean, Add, Sqrt, Div and Mul"},
      {"SkipLayerNormalization", "Add and LayerNormalization"},
      {"SkipSimplifiedLayerNormalization",
       "Add, and the operators of SimplifiedLayerNormalization"},
      {"EmbedLayerNormalization", "Gather, Add and LayerNormalization"},
      {"Attention", "MatMul, Add, Reshape, Transpose and Softmax"},
      {"MultiHeadAttention", "MatMul, Reshape, Transpose and Softmax"},
      {"GroupQueryAttention", "MatMul, Concat, Reshape, Transpose and Softmax"},
      {"RotaryEmbedding", "Split, Mul, Neg, Concat and Add"},
      {"QAttention", "DequantizeLinear and the operators of attention"},
      {"QGemm", "DequantizeLinear, Gemm and QuantizeLinear"},
      {"QLinearAdd", "DequantizeLinear, Add and QuantizeLinear"},
      {"QLinearMul", "DequantizeLinear, Mul and QuantizeLinear"},
      {"QLinearConcat", "DequantizeLinear, Concat and QuantizeLinear"},
      {"QLinearSigmoid", "DequantizeLinear, Sigmoid and QuantizeLinear"},
      {"QLinearLeakyRelu", "DequantizeLinear, LeakyRelu and QuantizeLinear"},
      {"QLinearAveragePool", "DequantizeLinear, AveragePool and QuantizeLinear"},
      {"QLinearGlobalAveragePool", "DequantizeLinear, GlobalAveragePool and QuantizeLinear"},
      {"DynamicQuantizeMatMul", "DynamicQuantizeLinear and MatMulInteger"},
      {"MatMulIntegerToFloat", "MatMulInteger, Cast and Mul"},
      {"MatMulNBits", "DequantizeLinear and MatMul"},
      {"NhwcConv", "Transpose and Conv"},
      {"NhwcMaxPool", "Transpose and MaxPool"}};
  return table;
}

}  // namespace

Advice advice_for(const std::string& domain, const std::string& op) {
  if (domain == "com.microsoft" || domain == "com.microsoft.nchwc") {
    Advice advice{"it is an operator of ONNX Runtime, made by its optimiser or quantiser",
                  "export the model without ONNX Runtime's optimisations"};
    if (const auto found = of_microsoft().find(op); found != of_microsoft().end())
      advice.fix += fmt::format("; the same in standard operators: {}", found->second);
    return advice;
  }
  if (domain == "ai.onnx.ml")
    return {"it is one of classical machine learning (trees, support vectors, categories)",
            "run it outside, or export the model as tensor operators (hummingbird does that)"};
  if (!domain.empty())
    return {fmt::format("domain '{}' is not part of ONNX, and the model does not say what the "
                        "operator does",
                        domain),
            "export it as a model function, or from operators of ONNX"};
  if (const auto found = of_onnx().find(op); found != of_onnx().end()) return found->second;
  std::vector<std::string> names;
  for (const tensor::OpDef& row : tensor::all_ops())
    if (row.domain.empty()) names.push_back(row.name);
  const std::string like = nearest_name(op, names);
  return {{},
          like.empty() ? "docs/operators.md lists the supported operators"
                       : fmt::format("did you mean {}?", like)};
}

}  // namespace tilewright::graph
