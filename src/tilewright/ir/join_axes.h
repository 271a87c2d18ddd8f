// Axes that are always walked together, as one axis.
#pragma once

#include "tilewright/ir/stmt.h"

namespace tilewright {

/// The same program with neighbouring axes as one wherever every access takes them together.
///   rewrite:  for h in 7, w in 7, n in 64, k in 32 { .. y[h, w, n] += x[h, w, k] * W[k, n] .. }
///               =>  for w in 49, n in 64, k in 32 { .. y[w, n] += x[w, k] * W[k, n] .. }
///   where:    both are whole axes of every buffer that knows one of them, side by side and in this
///             order; of constant extent; of nests of one block each, whose loops are serial and
///             unmarked
///   keeps:    every element's place in memory: parameters are dense, and have fewer axes
///   leaves:   programs with scalars or intrinsics, parameters with strides or values
Func join_axes(const Func& func);

}  // namespace tilewright
