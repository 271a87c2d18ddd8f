// The back-end of the DPU.
#pragma once

#include "tilewright/accel/dpu/config.h"
#include "tilewright/codegen/dpu/compile.h"
#include "tilewright/compile/backend.h"

namespace tilewright::compile {

/// The name of the target, of its devices and of launches.
inline constexpr const char* kDpuDevice = "dpu";

const Backend& dpu_backend();

/// What is special of the target.
struct DpuTarget {
  dpu::Config config;
};
hw::Target as_target(const DpuTarget& dpu);
/// Null for other targets.
const DpuTarget* dpu_target(const hw::Target& target);

/// A launch as the compiler made it.
struct DpuLaunchCode : LaunchDetail {
  dpu::Network network;
  dpu::Compiled compiled;
};
/// Null for launches of others.
const DpuLaunchCode* dpu_code(const LaunchCode& launch);

/// How records know a network: its shapes, on which alone the time of a way depends.
std::string dpu_workload(const dpu::Network& network);

}  // namespace tilewright::compile
