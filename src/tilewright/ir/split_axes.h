// Axes that a sum divides, as two axes.
#pragma once

#include "tilewright/ir/stmt.h"

namespace tilewright {

/// The same program with an axis as two wherever a sum finds a group by dividing it.
///   rewrite:  for k in 128, p in 50, c in 5 { .. y[k, p] += x[k / 8 * 5 + c, p] * W[k, c] .. }
///               =>  for k_o in 16, k_i in 8, p in 50, c in 5 {
///                     .. y[k_o, k_i, p] += x[k_o * 5 + c, p] * W[k_o, k_i, c] .. }
///   where:    the axis is whole in every buffer that is split; the divisor divides its constant
///             extent; its loop is serial, unmarked, and of one block alone; no scan runs along it
///   keeps:    every element's place in memory: parameters are dense, and have more axes
///   leaves:   programs with scalars or intrinsics; buffers with strides, values or marks, whose
///             index becomes `k_o * 8 + k_i`
Func split_axes(const Func& func);

}  // namespace tilewright
