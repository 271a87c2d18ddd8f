// Graphs out as ONNX: the model zoo's files, and the graph.onnx of a package.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

struct ExportOptions {
  /// Inline: in the file. External: bytes of `external_file`, at the offsets `place` says;
  /// constants of up to 1 KiB stay inline so that shapes and axes can be read without that file.
  enum class Weights { Inline, External } weights = Weights::Inline;
  std::string external_file = "weights.bin";
  /// Offset in `external_file` of a constant; nothing keeps it inline. Empty: no offsets are
  /// written.
  std::function<std::optional<int64_t>(ValueId)> place;
  /// Of the model, and of nodes by name: shown by viewers.
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::map<std::string, std::string>> node_metadata;
};

/// The model as bytes of an ONNX file: the lowest opset (17 or newer) that has its operators.
/// Weights are copied once, into the result. What importing made of extents that the run decides
/// (tensor/ops/dynamic.h) is written as it is, and is refused when the file is read.
std::string to_onnx(const Graph& graph, const ExportOptions& options = {});

/// Writes `graph` to `path`; with more than 2 GB of weights (the format's limit) they go to
/// `path`.data beside it. errors: Io.
Status save_onnx(const std::string& path, const Graph& graph, const ExportOptions& options = {});

}  // namespace tilewright::graph
