// Transposed convolutions with known weights as ordinary ones.
#pragma once

#include "tilewright/graph/ir/graph.h"
#include "tilewright/tensor/window.h"

namespace tilewright::graph {

/// The kernels of all phases, one after the other: result[p * filters + k, c, j] is the tap of
/// w[c, k] that phase p (`begin` shifts it) applies to its j-th input, or zero where there is none.
/// shape: w [c, k, taps..] -> [phases * filters, c, taps per phase..]. requires: filters >= k, no
/// dilation, one group.
Array phase_weights(const Array& w, const tensor::TransposedWindow& t,
                    const std::vector<int64_t>& begin, int64_t filters);

/// Taps per phase of each axis.
std::vector<int64_t> phase_taps(const tensor::TransposedWindow& t);

/// Whether the sub-pixel form has an operator: one group, no dilation.
bool has_phases(const tensor::TransposedWindow& t);

}  // namespace tilewright::graph
