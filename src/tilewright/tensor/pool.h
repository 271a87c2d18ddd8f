// What the plain and the blocked pools share.
#pragma once

#include "tilewright/tensor/window.h"

namespace tilewright::tensor {

/// How many taps of the window at output position `spatial` an average counts: all that lie in the
/// input, with `include_pad` also those in the stated padding (but never beyond it). A constant
/// where every window counts alike.
Expr window_count(const Window& window, const Indices& spatial, bool include_pad, DType dtype);

}  // namespace tilewright::tensor
