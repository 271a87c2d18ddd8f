// The denominator of every CPU figure: multiply-adds on registers only.
#pragma once

namespace tilewright::bench {

/// units: flop per second of this thread's CPU time, from a burst of about `seconds`.
double fma_peak(double seconds);

/// units: seconds of CPU time of the calling thread.
double thread_seconds();

}  // namespace tilewright::bench
