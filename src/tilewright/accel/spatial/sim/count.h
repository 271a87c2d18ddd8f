// What an instruction adds to the counters, whatever its time. Internal.
#pragma once

#include "tilewright/accel/spatial/device.h"

namespace tilewright::spatial {

/// requires: `check_fields` accepts it.
void count(const Design& design, const Insn& insn, Counters& counters);

}  // namespace tilewright::spatial
