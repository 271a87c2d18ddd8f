// The same transfer with fewer and longer axes: a LOAD takes the bytes of a row of the last axis
// together, a STORE its sums, so long rows are fast.
#pragma once

#include "tilewright/accel/spatial/isa.h"

namespace tilewright::spatial {

/// Axes that follow each other on both sides become one; those of one position go.
Load merged(const Load& load);
Store merged(const Store& store);

}  // namespace tilewright::spatial
