// From a model in f32 (or QDQ form) to the integer graph that an accelerator runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/vta/config.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/vta/place.h"
#include "tilewright/graph/quantize/quantize.h"

namespace tilewright::compile {

/// Values for every input, one map per sample.
using Samples = std::vector<std::map<std::string, Array>>;

struct QuantizeSettings {
  /// Calibration samples for the inputs of a graph; empty: the model must be in QDQ form.
  std::function<Result<Samples>(const graph::Graph&)> samples;
  bool per_channel = false;
  bool allow_cpu = false;  ///< operators the accelerator cannot do may run on the CPU
};

/// What calibration saw: every f32 value of `graph`, over all samples, computed on this CPU.
Result<graph::Ranges> observe(const graph::Graph& graph, const Samples& samples,
                              const CompileOptions& options);

struct VtaModel {
  graph::QuantizedGraph quantized;
  std::optional<graph::Graph>
      prepared;         ///< the f32 graph that was quantised; absent for QDQ models
  Samples calibration;  ///< what it was calibrated with
  graph::Graph tiled;   ///< `quantized` in the accelerator's layout
  std::vector<graph::Placement> placements;
  std::shared_ptr<VtaLayerMemo> memo;  ///< what placing it found out, for the compiler
};

/// errors: what the steps report; Unsupported with every operator that would stay on the CPU and
/// the reason, unless that is allowed (conversions at the border always are).
Result<VtaModel> prepare_for_vta(const graph::Graph& model, const vta::Config& config,
                                 const QuantizeSettings& settings, const CompileOptions& options);

}  // namespace tilewright::compile
