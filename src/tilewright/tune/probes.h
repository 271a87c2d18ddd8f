// Bursts that show what the processor can do at this moment: every speed figure is a share of one.
#pragma once

#include <cstdint>

#include "tilewright/base/dtype.h"
#include "tilewright/runtime/thread_pool.h"

namespace tilewright::tune {

/// units: seconds of CPU time of the calling thread.
double thread_seconds();

/// Fastest of several bursts of multiply-adds on registers only, over about `seconds`, on this
/// thread: f32, bf16 (`vdpbf16ps`) or i8 (`vpdpbusd`). units: operations per ns of CPU time, two
/// per multiply-add; 0: this machine has no such instruction.
double peak_burst(DType dtype, double seconds);

/// Fastest reading of `bytes` over and over by each of the first `cores` workers of `pool`, every
/// one its own bytes, for about `seconds`. units: bytes per ns of all of them.
double read_burst(runtime::ThreadPool& pool, int cores, int64_t bytes, double seconds);

/// Fastest start and end of an empty loop on all workers while they spin. units: ns.
double fork_join_burst(runtime::ThreadPool& pool, double seconds);

}  // namespace tilewright::tune
