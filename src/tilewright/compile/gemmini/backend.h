// The back-end of Gemmini.
#pragma once

#include "tilewright/accel/gemmini/config.h"
#include "tilewright/compile/backend.h"

namespace tilewright::compile {

/// The name of the target, of its devices and of launches.
inline constexpr const char* kGemminiDevice = "gemmini";

const Backend& gemmini_backend();

/// What is special of the target.
struct GemminiTarget {
  gemmini::Config config;
};
hw::Target as_target(const GemminiTarget& gemmini);

}  // namespace tilewright::compile
