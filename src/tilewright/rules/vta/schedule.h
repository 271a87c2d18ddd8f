// Scheduling a layer for VTA: from a mapping to steps.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/rules/vta/mapping.h"
#include "tilewright/schedule/step.h"

namespace tilewright::rules {

/// `func` with everything that stands between the sum and the result computed in one last block:
/// the form that vta_layer and vta_trace understand. The steps are the beginning of vta_trace's.
Result<schedule::Trace> vta_prologue(const Func& func);

/// The steps that give `func` (stage Tensor) the form that codegen/vta takes:
///   for tiles of the result { result in vta.acc; init
///     for tiles of the reduction { input in vta.inp; weights in vta.wgt; call vta.gemm }
///     for pieces of the result { residual in vta.inp; the last block stores } }
/// requires: `mapping` is of the layer of `func`. errors: Unsupported (as vta_layer), those of the
/// steps.
Result<schedule::Trace> vta_trace(const Func& func, const vta::Config& config,
                                  const VtaMapping& mapping);

/// Which rule takes `func`. errors: Unsupported (as vta_layer).
Result<RuleChoice> vta_rule(const Func& func);

}  // namespace tilewright::rules
