// A launch for VTA: layers mapped, scheduled and emitted into one instruction stream.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/vta/program.h"
#include "tilewright/graph/fuse.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tune/records.h"
#include "tilewright/tune/vta_mapping.h"

namespace tilewright::driver {

/// How one layer of a launch is computed.
struct LayerCode {
  std::string name;  ///< of the node that decides the loops
  Func func;         ///< stage Tensor
  schedule::Trace trace;
  Func scheduled;
  tune::VtaMapping mapping;
  int64_t predicted_cycles = 0;
  std::optional<tune::Record> record;  ///< where tuning chose the mapping
};

struct VtaLaunchCode {
  vta::Program program;
  std::vector<LayerCode> layers;
};

/// The record whose mapping a layer shall have, given its Func (stage Tensor); absent: the model's.
using FindMapping = std::function<std::optional<tune::Record>(const Func& func)>;

struct VtaLaunchOptions {
  int copies = 2;       ///< of on-chip buffers; 1: loads and computation take turns
  bool serial = false;  ///< one instruction at a time
  FindMapping tuned;    ///< empty: all mappings by the model
};

/// Code of `launch`, whose constants are in the program's image; inputs and outputs of the program
/// are those of the group that are not constant, in order.
/// errors: Unsupported, Capacity, with the layer's name.
Result<VtaLaunchCode> compile_vta_launch(const graph::Graph& graph, const graph::Group& launch,
                                         const vta::Config& config,
                                         const VtaLaunchOptions& options = {});

}  // namespace tilewright::driver
