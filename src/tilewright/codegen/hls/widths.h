// How many bits integers on chip need, no more.
#pragma once

#include <map>

#include "tilewright/ir/stmt.h"

namespace tilewright::codegen {

/// Bits of the two's complement (or of the unsigned value) that holds all that `func` can store in
/// each integer buffer that it allocates; only buffers that need fewer bits than their type.
/// Sums count the terms of one element: i8 x i8 over 9216 terms takes 29 bits.
/// requires: the stores of reductions are in blocks, as in scheduled programs; else bounds are
/// those of the types.
std::map<Buffer, int> proven_widths(const Func& func);

}  // namespace tilewright::codegen
