// VTA: quantised models in tiles, layers as instruction streams.
#pragma once

#include "tilewright/compile/backend.h"
#include "tilewright/compile/vta/launch.h"

namespace tilewright::compile {

const Backend& vta_backend();

/// What is special of such a target.
struct VtaTarget {
  vta::Config config;
  int copies = 2;       ///< of on-chip buffers; 1: loads and computation take turns
  bool serial = false;  ///< one instruction at a time
};
hw::Target as_target(const VtaTarget& vta);
/// The configuration of a target of this back-end; null for others.
const VtaTarget* vta_target(const hw::Target& target);
/// What a launch made by this back-end holds; null for others.
const VtaLaunchCode* vta_code(const LaunchCode& launch);

}  // namespace tilewright::compile
