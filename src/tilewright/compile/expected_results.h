// Results of a program against what its dump expects.
#pragma once

#include <string>
#include <vector>

#include "tilewright/accel/common/device.h"
#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

/// Compares the outputs of an image, as `memory` has them after run `last_run`; `expected`: per
/// output, empty if not known. The first output that differs is enough. errors: those of `memory`.
Status compare_results(const accel::Memory& memory, const accel::Image& image, size_t last_run,
                       const std::vector<std::string>& expected, SimulatedProgram& done);

}  // namespace tilewright::compile
