// What an ONNX model asks for, without importing it.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::graph {

/// Names of a model's inputs in its order, initializers apart. errors: Io, Parse.
Result<std::vector<std::string>> read_onnx_input_names(const std::string& path);

}  // namespace tilewright::graph
