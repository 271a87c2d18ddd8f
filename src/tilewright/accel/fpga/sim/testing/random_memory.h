// Times of a memory that is slow, fast, shared or stubborn.
#pragma once

#include "tilewright/accel/fpga/sim/tsim.h"
#include "tilewright/base/rng.h"

namespace tilewright::fpga::testing {

inline MemoryTiming random_memory(Rng& rng) {
  MemoryTiming memory;
  memory.read_latency = static_cast<int32_t>(rng.between(1, 100));
  memory.write_latency = static_cast<int32_t>(rng.between(0, 60));
  memory.write_beat = static_cast<int32_t>(rng.between(0, 4));
  memory.write_gap = static_cast<int32_t>(rng.between(0, 6));
  memory.read_cost = static_cast<int32_t>(rng.between(20000, 200000));
  memory.write_cost = static_cast<int32_t>(rng.between(20000, 200000));
  memory.stall_percent = rng.chance(0.5) ? 0 : static_cast<int32_t>(rng.between(1, 60));
  memory.seed = static_cast<uint32_t>(rng.next());
  return memory;
}

}  // namespace tilewright::fpga::testing
