// The denominator of every CPU figure: multiply-adds on registers only.
#pragma once

#include "tilewright/tune/probes.h"

namespace tilewright::bench {

/// units: flop per second of this thread's CPU time, from a burst of about `seconds`.
inline double fma_peak(double seconds) { return 1e9 * tune::peak_burst(DType::F32, seconds); }

using tune::thread_seconds;

}  // namespace tilewright::bench
