// ONNX files in: parsed, opset-normalised, shapes known, every problem reported at once.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

struct ImportOptions {
  std::map<std::string, int64_t> dims;     ///< symbolic dimension -> extent (`--dim batch=1`)
  std::map<std::string, Shape> shapes;     ///< input -> shape (`--shape x:1x3x224x224`)
  std::map<std::string, Array> constants;  ///< input -> value: the input disappears
  /// The same, but only for inputs that decide shapes or code (Reshape's shape, an If's condition).
  std::map<std::string, Array> constants_if_needed;
  Evaluate evaluate;  ///< folds what shapes depend on; may be empty
  bool allow_newer_opset = false;
};

inline constexpr int64_t kMinOpset = 7, kMaxOpset = 26;

/// Reads an ONNX model. Nodes carry the newest operator semantics; weights stay shared with the
/// file where they can. errors: Io, Parse, Invalid, Unsupported, Usage: all problems, with node
/// names.
Result<Graph> import_onnx(const std::string& path, const ImportOptions& options = {});
/// The same from memory; `folder` is where external weights lie.
Result<Graph> import_onnx_bytes(std::string_view bytes, const std::string& folder = ".",
                                const ImportOptions& options = {});

/// An array from a serialised TensorProto (the `.pb` files of ONNX test data). errors: Io, Parse,
/// Unsupported.
Result<Array> read_onnx_tensor(const std::string& path);

}  // namespace tilewright::graph
