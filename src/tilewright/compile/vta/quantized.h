// From a model in f32 (or QDQ form) to the integer graph that an accelerator runs.
#pragma once

#include "tilewright/accel/vta/config.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/vta/place.h"

namespace tilewright::compile {

/// errors: what the steps report; Unsupported with every operator that would stay on the CPU and
/// the reason, unless that is allowed (conversions at the border always are).
Result<QuantizedModel> prepare_for_vta(const graph::Graph& model, const vta::Config& config,
                                       const QuantizeSettings& settings,
                                       const CompileOptions& options,
                                       const VtaLaunchOptions& launch);

}  // namespace tilewright::compile
