// The level of cycle simulators: programs of layers, as the compiler makes them under the mapping
// that the model chose, on the simulators that count every cycle.
#pragma once

#include "tilewright/codesign/level.h"

namespace tilewright::codesign {

/// `tsim`. Its errors: Unsupported (designs of `spatial` have no program yet), those of the code
/// generator.
Level tsim_level();

}  // namespace tilewright::codesign
