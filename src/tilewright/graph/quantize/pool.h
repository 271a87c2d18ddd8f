// Pooling as convolutions, for prepare_quantize.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tilewright/graph/quantize/conv_rewriter.h"
#include "tilewright/tensor/window.h"

namespace tilewright::graph {

/// Rewrites pooling nodes; false where a node has to stay as it is.
class PoolRewriter : public ConvRewriter {
 public:
  using ConvRewriter::ConvRewriter;

 protected:
  Result<bool> max_pool(const Node& node);
  Result<bool> average_pool(const Node& node);
  bool is_global_average(const Node& node) const;
  Result<bool> global_average(const Node& node);

 private:
  /// Output positions [first, last) of one axis whose windows count alike.
  struct Run {
    int64_t first, last, count;
  };
  static std::vector<Run> runs_of(const tensor::Window& window, size_t axis, bool include_pad);
  /// A node AveragePool whose windows are explicit.
  Result<ValueId> pooled(const Node& node, const tensor::Window& window, bool include_pad);
  Result<ValueId> average_part(const std::string& name, ValueId x, const tensor::Window& window,
                               const std::array<Run, 2>& runs);
};

}  // namespace tilewright::graph
