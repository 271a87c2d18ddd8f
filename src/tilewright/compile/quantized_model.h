// A model in the integers of an accelerator, and how it came to be.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/graph/partition/place.h"
#include "tilewright/graph/quantize/quantize.h"

namespace tilewright::compile {

class BackendMemo;

/// Values for every input, one map per sample.
using Samples = std::vector<std::map<std::string, Array>>;

struct QuantizeSettings {
  /// Calibration samples for the inputs of a graph; empty: the model must be in QDQ form.
  std::function<Result<Samples>(const graph::Graph&)> samples;
  bool per_channel = false;
  bool allow_cpu = false;  ///< operators the accelerator cannot do may run on the CPU
};

struct QuantizedModel {
  graph::QuantizedGraph quantized;
  std::optional<graph::Graph> prepared;  ///< the f32 graph quantised; absent for QDQ models
  Samples calibration;                   ///< what it was calibrated with
  graph::Graph laid_out;                 ///< `quantized` in the accelerator's layout: compile this
  std::vector<graph::Placement> placements;
  std::shared_ptr<BackendMemo> memo;  ///< what placing it found out, for CompileOptions::memo
};

/// Whether a node may always stay on the processor: conversions at the border and what follows the
/// last layer (softmax, argmax).
bool is_border(const graph::Placement& place);

/// errors: of every node that would stay on the processor and is no border, with the reason; the
/// kind is the first one's. `target`: the accelerator's name.
Status all_placed(const std::vector<graph::Placement>& places, const std::string& target);

/// The device of each node, by index: `device` or nothing for the CPU. Views between nodes of the
/// accelerator are the accelerator's.
std::vector<std::string> devices_of(const graph::Graph& graph,
                                    const std::vector<graph::Placement>& places,
                                    const std::string& device);

}  // namespace tilewright::compile
