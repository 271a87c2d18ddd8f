// What of a model is compared besides its outputs.
#pragma once

#include <vector>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::driver {

/// Inputs of a final Softmax, LogSoftmax or Sigmoid: small probabilities hide errors, logits do
/// not.
std::vector<graph::ValueId> before_final_activation(const graph::Graph& graph);

/// Makes outputs of those values that are neither outputs, inputs nor constants.
void add_outputs(graph::Graph& graph, const std::vector<graph::ValueId>& ids);

/// Makes outputs of what helps to find a mistake: the value of every node, or logits. `quantized`:
/// the sums of an accelerator's layers (i32) stay inside it.
void add_checked_values(graph::Graph& graph, bool per_node, bool quantized);

}  // namespace tilewright::driver
