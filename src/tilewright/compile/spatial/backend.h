// The back-end of accelerators of the family `spatial`.
#pragma once

#include "tilewright/accel/spatial/design.h"
#include "tilewright/codegen/spatial/network.h"
#include "tilewright/compile/backend.h"

namespace tilewright::compile {

/// The name of the target, of its devices and of launches.
inline constexpr const char* kSpatialDevice = "spatial";

const Backend& spatial_backend();

/// What is special of the target.
struct SpatialTarget {
  spatial::Design design;
};
hw::Target as_target(const SpatialTarget& spatial);
/// Null for other targets.
const SpatialTarget* spatial_target(const hw::Target& target);

/// A launch as the compiler made it.
struct SpatialLaunchCode : LaunchDetail {
  spatial::Network network;
  spatial::Compiled compiled;
};

}  // namespace tilewright::compile
