// The numbers of targets by name, each with the least and the greatest value that it may have. What
// writes and reads targets, files and messages, goes by these lists.
#pragma once

#include <cstdint>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/hw/target.h"

namespace tilewright::hw {

// Each calls f(name, member, low, high); the targets may be const.

template <class Cpu, class F>
void each_size_of_cpu(Cpu& t, F&& f) {
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  f("vector_bytes", t.vector_bytes, 16, 64);
  f("vector_registers", t.vector_registers, 8, 1024);
  f("cores", t.cores, 1, 1 << 16);
  f("l1_bytes", t.l1_bytes, 1, kMostBytes);
  f("l2_bytes", t.l2_bytes, 1, kMostBytes);
  f("l3_bytes", t.l3_bytes, 1, kMostBytes);
}

template <class Gpu, class F>
void each_size_of_gpu(Gpu& t, F&& f) {
  constexpr int64_t kMostBytes = int64_t{1} << 40, kMany = 1 << 20;
  f("max_threads", t.max_threads, 1, kMany);
  f("shared_bytes", t.shared_bytes, 1, kMostBytes);
  f("registers", t.registers, 1, kMany);
  f("warp", t.warp, 1, kMany);
  f("units", t.units, 1, kMany);
  f("unit_threads", t.unit_threads, 1, kMany);
  f("unit_blocks", t.unit_blocks, 1, kMany);
  f("unit_shared_bytes", t.unit_shared_bytes, 1, kMostBytes);
  f("unit_registers", t.unit_registers, 1, kMostBytes);
  f("l2_bytes", t.l2_bytes, 1, kMostBytes);
  f("vector_bytes", t.vector_bytes, 4, 16);
}

/// Of GpuRates. What may be 0 is what a device may lack.
template <class Rates, class F>
void each_rate_of_gpu(Rates& r, F&& f) {
  constexpr double kLeastRate = 1e-3, kMostRate = 1e9;
  f("f32", r.f32, kLeastRate, kMostRate);
  f("f16", r.f16, 0.0, kMostRate);
  f("f64", r.f64, 0.0, kMostRate);
  f("mma_f16", r.mma_f16, 0.0, kMostRate);
  f("mma_tf32", r.mma_tf32, 0.0, kMostRate);
  f("mma_i8", r.mma_i8, 0.0, kMostRate);
  f("shared", r.shared, kLeastRate, kMostRate);
  f("l2", r.l2, kLeastRate, kMostRate);
  f("dram", r.dram, kLeastRate, kMostRate);
  f("launch_ns", r.launch_ns, 0.0, kMostRate);
  f("latency_ns", r.latency_ns, 0.0, kMostRate);
  f("sync_ns", r.sync_ns, 0.0, kMostRate);
}

}  // namespace tilewright::hw
