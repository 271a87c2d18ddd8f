// Kernels that need to run once only.
#pragma once

#include <vector>

#include "tilewright/lower/gpu.h"

namespace tilewright::lower {

/// Of each call of `plan`, whether it computes temporaries from constants of `func` alone, so that
/// all runs can share what it writes.
std::vector<bool> prepared_calls(const Func& func, const GpuLaunches& plan);

}  // namespace tilewright::lower
