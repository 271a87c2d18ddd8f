// From a model in f32 (or QDQ form) to an integer graph: what all accelerators with 8-bit operands
// do before they lay it out.
#pragma once

#include "tilewright/compile/compile.h"
#include "tilewright/compile/quantized_model.h"
#include "tilewright/graph/quantize/quantize.h"

namespace tilewright::compile {

/// What calibration saw: every f32 value of `graph`, over all samples, computed on this CPU.
Result<graph::Ranges> observe(const graph::Graph& graph, const Samples& samples,
                              const CompileOptions& options);

/// `model` quantised; it is not laid out or placed yet. `form`: what the accelerator can do with
/// sums; scales per channel are as `settings` says.
/// errors: Usage (no samples), what the steps report.
Result<QuantizedModel> quantize_model(const graph::Graph& model, const QuantizeSettings& settings,
                                      const CompileOptions& options,
                                      graph::QuantizeOptions form = {});

}  // namespace tilewright::compile
