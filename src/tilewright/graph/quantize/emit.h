// From planned units with known scales to the integer graph.
#pragma once

#include <map>
#include <vector>

#include "tilewright/graph/quantize/plan.h"
#include "tilewright/graph/quantize/quantize.h"

namespace tilewright::graph {

/// What is known of a prepared graph before its integer form is written.
struct Scales {
  std::vector<double> value;                      ///< per value; 0: none
  std::map<ValueId, std::vector<double>> weight;  ///< of weights: one, or one per output channel
  std::vector<std::vector<double>> mean;          ///< per value: of each channel, or empty
  std::vector<bool> rounded;  ///< per value: f32 readers see it rounded to 8 bits (QDQ models)
};

/// errors: Unsupported, with the node.
Result<QuantizedGraph> emit_quantized(const Graph& graph, const Plan& plan, const Scales& scales,
                                      const QuantizeOptions& options);

}  // namespace tilewright::graph
