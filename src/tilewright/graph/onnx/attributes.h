// Which attributes the operators of ONNX have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/tensor/op.h"

namespace tilewright::graph {

/// What is wrong with the attribute `key` of an operator of ONNX: the operator has none of that
/// name in any opset (it would change the result, and nobody would read it), or one of another
/// type. Nothing if it is right, or the operator is not in the table. `value`: null if it is of a
/// type that no operator of the table has (a graph).
std::optional<Error> attribute_error(const std::string& op, const std::string& key,
                                     const tensor::AttrValue* value);

/// Operators whose attributes are known.
std::vector<std::string> operators_with_known_attributes();

}  // namespace tilewright::graph
