// A launch for VTA: layers mapped, scheduled and emitted into one instruction stream.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/vta/program.h"
#include "tilewright/compile/backend.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/rules/vta/mapping.h"

namespace tilewright::compile {

/// The name of the device in launches and groups.
inline constexpr const char* kVtaDevice = "vta";

struct VtaLaunchCode : LaunchDetail {
  vta::Program program;
  std::vector<KernelReport> layers;  ///< one step each: the node that decides the loops
};

/// What is known of layers, by all that decides about them: a model asks about each more than once.
struct VtaLayerMemo : BackendMemo {
  struct Layer {
    KernelReport report;
    rules::VtaMapping mapping;
  };
  std::map<std::string, Layer> scheduled;
  std::map<std::string, Status> tried;  ///< what try_vta_layer said
};

struct VtaLaunchOptions {
  int copies = 2;       ///< of on-chip buffers; 1: loads and computation take turns
  bool serial = false;  ///< one instruction at a time
  FindRecord tuned;     ///< whose mapping a layer shall have; empty: all mappings by the model
  Observer observer;
  /// Shared by copies of these options. Not for several threads.
  std::shared_ptr<VtaLayerMemo> memo = std::make_shared<VtaLayerMemo>();
};

/// Code of `launch`, whose constants are in the program's image; inputs and outputs of the program
/// are those of the group that are not constant, in order.
/// errors: Unsupported, Capacity, with the layer's name.
Result<VtaLaunchCode> compile_vta_launch(const graph::Graph& graph, const graph::Group& launch,
                                         const vta::Config& config,
                                         const VtaLaunchOptions& options = {});

/// Whether `layer`, a group of the accelerator, compiles as a launch of its own: it has a mapping
/// that fits, and code. errors: as compile_vta_launch.
Status try_vta_layer(const graph::Graph& graph, const graph::Group& layer,
                     const vta::Config& config, const VtaLaunchOptions& options);

}  // namespace tilewright::compile
