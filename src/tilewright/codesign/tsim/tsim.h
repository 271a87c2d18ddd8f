// The level of cycle simulators: programs of layers, as the compiler makes them under the mapping
// that the model chose, on the simulators that count every cycle.
#pragma once

#include "tilewright/codesign/level.h"

namespace tilewright::codesign {

/// `tsim`. Its errors: those of the code generators and simulators.
Level tsim_level();

}  // namespace tilewright::codesign
