#include "tilewright/graph/ir/elementwise.h"

#include <set>
#include <string>

namespace tilewright::graph {
namespace {

const std::set<std::string> kElementwise = {"Abs",
                                            "Acos",
                                            "Acosh",
                                            "Add",
                                            "And",
                                            "Asin",
                                            "Asinh",
                                            "Atan",
                                            "Atanh",
                                            "BatchNormalization",
                                            "BitShift",
                                            "BitwiseAnd",
                                            "BitwiseNot",
                                            "BitwiseOr",
                                            "BitwiseXor",
                                            "Cast",
                                            "CastLike",
                                            "Ceil",
                                            "Celu",
                                            "Clip",
                                            "Cos",
                                            "Cosh",
                                            "DequantizeLinear",
                                            "Div",
                                            "Dropout",
                                            "Elu",
                                            "Equal",
                                            "Erf",
                                            "Exp",
                                            "Floor",
                                            "Gelu",
                                            "Greater",
                                            "GreaterOrEqual",
                                            "HardSigmoid",
                                            "HardSwish",
                                            "Identity",
                                            "IsInf",
                                            "IsNaN",
                                            "LeakyRelu",
                                            "Less",
                                            "LessOrEqual",
                                            "Log",
                                            "Max",
                                            "Mean",
                                            "Min",
                                            "Mish",
                                            "Mod",
                                            "Mul",
                                            "Neg",
                                            "Not",
                                            "Or",
                                            "PRelu",
                                            "Pow",
                                            "QuantizeLinear",
                                            "Reciprocal",
                                            "Relu",
                                            "Round",
                                            "Selu",
                                            "Shrink",
                                            "Sigmoid",
                                            "Sign",
                                            "Sin",
                                            "Sinh",
                                            "Softplus",
                                            "Softsign",
                                            "Sqrt",
                                            "Sub",
                                            "Sum",
                                            "Swish",
                                            "Tan",
                                            "Tanh",
                                            "ThresholdedRelu",
                                            "Where",
                                            "Xor"};

}  // namespace

bool is_elementwise(const Node& node) {
  if (node.domain == "tilewright")
    return node.op == "Requantize" || node.op == "RequantizeFixed" || node.op == "EltwiseFixed";
  return node.domain.empty() && kElementwise.contains(node.op);
}

}  // namespace tilewright::graph
