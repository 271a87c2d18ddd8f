#include "tilewright/graph/onnx/model_inputs.h"

#include <fmt/format.h>

#include <set>

#include "tilewright/base/file.h"
#include "tilewright/graph/onnx/import_tensor.h"

namespace tilewright::graph {

Result<std::vector<std::string>> read_onnx_input_names(const std::string& path) {
  tilewright_onnx::ModelProto model;
  if (!model.ParseFromString(TW_TRY(read_file(path))))
    return fail(ErrorKind::Parse, fmt::format("'{}' is no ONNX model", path));
  std::set<std::string> weights;
  for (const auto& tensor : model.graph().initializer()) weights.insert(tensor.name());
  std::vector<std::string> names;
  for (const auto& input : model.graph().input())
    if (!weights.contains(input.name())) names.push_back(input.name());
  return names;
}

}  // namespace tilewright::graph
