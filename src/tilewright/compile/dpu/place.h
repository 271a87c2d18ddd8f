// What runs on the DPU: the layers within its limits, as few launches as possible.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/config.h"
#include "tilewright/compile/dpu/network.h"
#include "tilewright/compile/options.h"
#include "tilewright/compile/quantized_model.h"

namespace tilewright::compile {

/// What `prepare_for_dpu` decided about the graph that it laid out; nobody else can compile it.
struct DpuMemo : BackendMemo {
  std::vector<std::string> devices;  ///< of each node: `dpu/0`, or nothing
  FixPoints fix_points;              ///< of each value
};

/// `model` quantised to scales of powers of two, its layers placed, and values at the borders of
/// launches in the order of the DPU's DDR.
/// errors: Usage (no samples), Unsupported (every node that is no layer of this hardware, unless
/// those may run on the processor), what the steps report.
Result<QuantizedModel> prepare_for_dpu(const graph::Graph& model, const dpu::Config& config,
                                       const QuantizeSettings& settings,
                                       const CompileOptions& options);

}  // namespace tilewright::compile
