// How a design's private memory is cut, and what the smallest piece of work needs.
#pragma once

#include <cstdint>

#include "tilewright/accel/spatial/design.h"

namespace tilewright::spatial {

/// Whether blocks of the second factor stay in the array (Gemm weight stationary, Conv2d).
bool weights_stay(const Design& design);

/// Whether an array works as one row of R*C units, so that any other shape with as many takes the
/// same cycles, steps and bytes (Dot, Gemv).
bool works_as_one_row(Unit unit);

/// Parts of the private memory that hold sums, equal in size: one for each sum that a step changes.
int64_t sum_parts(const Design& design);

/// Bytes of the weights that stay in private memory while an array works on one block with one tap;
/// 0 where nothing but sums stays.
int64_t block_bytes(const Design& design);

/// Bytes that one step reads from the scratchpad, without weights being loaded for a later block
/// and without the word of the vector that Gemv reads now and then.
int64_t step_bytes(const Design& design);

/// What the smallest tile needs: operands of one step and the weights that stay during it, one copy
/// of each, and one 32-bit sum in each part.
struct Needs {
  int64_t spad_bytes = 0, local_bytes = 0;
};
Needs smallest_needs(const Design& design);

/// Links that a unit can have, in the order of `Links`.
bool has_links(Unit unit, Links links);
/// Those where a file names none: neighbours for Gemm, multicast and trees for the others.
Links usual_links(Unit unit);

}  // namespace tilewright::spatial
