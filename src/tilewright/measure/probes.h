// Bursts that show what the processor can do at this moment: every speed figure is a share of one.
#pragma once

#include <cstdint>

#include "tilewright/base/dtype.h"
#include "tilewright/measure/bursts.h"
#include "tilewright/runtime/thread_pool.h"

namespace tilewright::measure {

/// Multiply-adds on registers only, on this thread: f32, bf16 (`vdpbf16ps`) or i8 (`vpdpbusd`).
/// units: operations per ns, two per multiply-add; nothing read: this machine has no such
/// instruction.
BurstReading read_peak(DType dtype, double seconds);

/// The fastest of a few undisturbed bursts of multiply-adds, at most `bursts` in all; 0: none was.
double peak_now(DType dtype, int bursts);

/// Additions of which each waits for the one before: as many as cycles. units: per ns, so GHz.
BurstReading read_clock(double seconds);

/// Most multiply-adds of whole vectors that any processor of this architecture starts in a cycle.
int most_fma_per_cycle();

/// Reading `bytes` over and over by each of the first `cores` workers of `pool`, every one its own
/// bytes. A burst counts where no worker was interrupted. units: bytes per ns of all of them.
BurstReading read_memory(runtime::ThreadPool& pool, int cores, int64_t bytes, double seconds);

/// Starting and ending an empty loop on all workers while they spin. units: loops per ns.
BurstReading read_fork_join(runtime::ThreadPool& pool, double seconds);

}  // namespace tilewright::measure
