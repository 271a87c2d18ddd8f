// Calibration samples: from a file, or made up.
#pragma once

#include <string>

#include "tilewright/compile/quantized_model.h"

namespace tilewright::driver {

/// Samples for the inputs of `graph` from `source`: `FILE.npz`, `random` or `random:N`. In a file
/// the arrays are named as the inputs and their first axis counts samples. errors: Usage, Io,
/// Parse, Invalid (names, shapes, types: all at once).
Result<compile::Samples> load_samples(const std::string& source, uint64_t seed,
                                      const graph::Graph& graph);

}  // namespace tilewright::driver
