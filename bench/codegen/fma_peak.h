// The denominator of every CPU figure: multiply-adds on registers only.
#pragma once

#include "tilewright/measure/probes.h"

namespace tilewright::bench {

/// units: flop per second, from undisturbed bursts of about `seconds`; 0: there were none.
inline double fma_peak(double seconds) {
  return 1e9 * measure::read_peak(DType::F32, seconds).rate;
}

/// units: seconds of CPU time of the calling thread.
inline double thread_seconds() { return measure::system_clocks().own(); }

}  // namespace tilewright::bench
