// Names that schedules can rely on, for programs that people write as loops.
#pragma once

#include "tilewright/ir/stmt.h"

namespace tilewright {

/// The same program with names that are unique among loops, among blocks and among buffers: who
/// comes first keeps one, a loop that comes later is named after its block (`mm.i`), others are
/// numbered. A block that sets to the neutral element what block X combines into is named `X.init`,
/// as steps and rules expect. What is unique already stays as it is.
Func with_unique_names(const Func& func);

}  // namespace tilewright
