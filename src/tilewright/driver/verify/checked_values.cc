#include "tilewright/driver/verify/checked_values.h"

#include <algorithm>

namespace tilewright::driver {

std::vector<graph::ValueId> before_final_activation(const graph::Graph& graph) {
  std::vector<graph::ValueId> extra;
  for (const graph::Node& node : graph.nodes) {
    const bool final = std::find(graph.outputs.begin(), graph.outputs.end(), node.outputs[0]) !=
                       graph.outputs.end();
    const bool squashes = node.op == "Softmax" || node.op == "LogSoftmax" || node.op == "Sigmoid";
    if (final && squashes && !graph.values[node.inputs[0]].constant)
      extra.push_back(node.inputs[0]);
  }
  return extra;
}

void add_outputs(graph::Graph& graph, const std::vector<graph::ValueId>& ids) {
  for (graph::ValueId id : ids) {
    const bool there =
        std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
    const bool input =
        std::find(graph.inputs.begin(), graph.inputs.end(), id) != graph.inputs.end();
    if (!there && !input && !graph.values[id].constant) graph.outputs.push_back(id);
  }
}

void add_checked_values(graph::Graph& graph, bool per_node, bool quantized) {
  if (!per_node) {
    add_outputs(graph, before_final_activation(graph));
    return;
  }
  // In the order of the nodes: the first that is off is where the mistake is.
  std::vector<graph::ValueId> outputs;
  outputs.swap(graph.outputs);
  std::vector<graph::ValueId> all;
  for (const graph::Node& node : graph.nodes) {
    if (node.op == "ToTiles" || node.op == "FromTiles") continue;  // other forms of what is checked
    for (graph::ValueId id : node.outputs) {
      // Sums stay inside the accelerator: its layers hand on 8-bit values.
      const bool inside = quantized && id >= 0 && graph.values[id].type.dtype == DType::I32;
      if (id >= 0 && !inside) all.push_back(id);
    }
  }
  add_outputs(graph, all);
  std::vector<graph::ValueId>& checked = graph.outputs;
  for (const graph::ValueId id : outputs)
    if (std::find(checked.begin(), checked.end(), id) == checked.end()) checked.push_back(id);
}

}  // namespace tilewright::driver
