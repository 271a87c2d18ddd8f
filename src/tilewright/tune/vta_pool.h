// Max pooling on VTA: rows of the input are widened into the accumulator, and the ALU takes maxima.
#pragma once

#include "tilewright/accel/vta/config.h"
#include "tilewright/schedule/step.h"

namespace tilewright::tune {

/// Whether `func` is a TileMaxPool (tensor/ops_tile.cc).
bool is_vta_pool(const Func& func);

/// for blocks, strips of rows { input in vta.inp; widened in vta.acc; maxima in vta.acc; store }
/// with the largest strip of which `copies` fit. requires: is_vta_pool(func).
/// errors: Capacity (a single row does not fit), those of the steps.
Result<schedule::Trace> vta_pool_trace(const Func& func, const vta::Config& config, int copies);

}  // namespace tilewright::tune
