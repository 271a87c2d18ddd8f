#include "tilewright/hw/gpu_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

namespace tilewright::hw {
namespace {

/// Any device: blocks as OpenCL's full profile asks for at least, and what PoCL and GPUs have
/// beyond; units and rates as of a small GPU.
GpuTarget opencl() {
  GpuTarget target;
  target.name = "opencl";
  target.warp = 32;
  target.units = 8;
  target.unit_threads = 1024;
  target.unit_blocks = 8;
  target.unit_shared_bytes = 64 << 10;
  target.unit_registers = 64 << 10;
  target.rates.f32 = 1000;
  target.rates.shared = 2000;
  target.rates.l2 = 500;
  target.rates.dram = 50;
  target.rates.launch_ns = 10000;
  target.rates.latency_ns = 400;
  target.rates.sync_ns = 50;
  return target;
}

/// A mobile GPU like a Mali-G71 MP8 at 1.04 GHz, 8 cores of 12 lanes: 16-bit floats, no doubles.
/// Shared memory is memory behind the caches: a core reads 16 bytes of it per clock.
/// source: Arm, Bifrost GPU OpenCL Developer Guide; rates that it does not give are assumed.
GpuTarget mali() {
  constexpr double kGhz = 1.04;
  GpuTarget target;
  target.name = "opencl-mali";
  target.warp = 4;
  target.units = 8;
  target.unit_threads = 384;
  target.unit_blocks = 4;
  target.unit_registers = 64 * 384;
  target.has_f16 = true;
  target.has_f64 = false;
  target.rates.known = true;
  target.rates.f32 = target.units * 12 * 2 * kGhz;
  target.rates.f16 = 2 * target.rates.f32;
  target.rates.shared = target.rates.l2 = target.units * 16 * kGhz;
  target.rates.dram = 28;
  target.rates.latency_ns = 300;
  return target;
}

/// Limits that the architectures share. source: CUDA C++ Programming Guide, compute capabilities.
/// A barrier and a launch: typical values from memory, not measured.
GpuTarget cuda(std::string name, std::string arch) {
  GpuTarget target;
  target.name = std::move(name);
  target.language = GpuLanguage::Cuda;
  target.arch = std::move(arch);
  target.max_threads = 1024;
  target.registers = 255;
  target.warp = 32;
  target.unit_threads = 2048;
  target.unit_blocks = 32;
  target.unit_registers = 64 << 10;
  target.has_f16 = true;
  target.rates.known = true;
  target.rates.launch_ns = 2500;
  target.rates.sync_ns = 15;
  return target;
}

/// source: NVIDIA A100 Tensor Core GPU Architecture, tables 1 and 4. The L2 cache gives 5120 bytes
/// per clock at most, of which two thirds are assumed; shared memory 128 bytes per unit and clock.
/// Latency: arXiv 2402.13499, table of memory latencies (466 clocks).
GpuTarget a100() {
  constexpr double kGhz = 1.41;
  GpuTarget target = cuda("cuda-sm_80", "sm_80");
  target.units = 108;
  target.shared_bytes = 163 << 10;
  target.unit_shared_bytes = 164 << 10;
  target.l2_bytes = 40 << 20;
  target.rates.f32 = 19500;
  target.rates.f16 = 78000;
  target.rates.f64 = 9700;
  target.rates.mma_f16 = 312000;
  target.rates.mma_tf32 = 156000;
  target.rates.mma_i8 = 624000;
  target.rates.shared = target.units * 128 * kGhz;
  target.rates.l2 = 4800;
  target.rates.dram = 1555;
  target.rates.latency_ns = 466 / kGhz;
  return target;
}

/// source: NVIDIA H200 Tensor Core GPU data sheet; Hopper Tuning Guide (shared memory, L2). L2 as
/// measured on an H100: chipsandcheese.com, "Nvidia's H100: Funny L2, and Tons of Bandwidth".
/// Latency: arXiv 2402.13499, table of memory latencies (479 clocks).
GpuTarget h200(std::string name) {
  constexpr double kGhz = 1.98;
  GpuTarget target = cuda(std::move(name), "sm_90a");
  target.units = 132;
  target.shared_bytes = 227 << 10;
  target.unit_shared_bytes = 228 << 10;
  target.l2_bytes = 50 << 20;
  target.rates.f32 = 66900;
  target.rates.f16 = 133800;
  target.rates.f64 = 33500;
  target.rates.mma_f16 = 989000;
  target.rates.mma_tf32 = 494000;
  target.rates.mma_i8 = 1979000;
  target.rates.shared = target.units * 128 * kGhz;
  target.rates.l2 = 5500;
  target.rates.dram = 4800;
  target.rates.latency_ns = 479 / kGhz;
  return target;
}

/// What GeForce GPUs of compute capability 8.6 and 8.9 share: 100 KiB of shared memory and 1536
/// threads per multiprocessor. source: CUDA C++ Programming Guide, compute capabilities. The rates
/// of their L2 caches are not published: three times the memory's is assumed, and the A100's
/// latency.
GpuTarget geforce(const std::string& arch, int units, double ghz) {
  GpuTarget target = cuda("cuda-" + arch, arch);
  target.units = units;
  target.unit_threads = 1536;
  target.unit_blocks = 16;
  target.shared_bytes = 99 << 10;
  target.unit_shared_bytes = 100 << 10;
  target.rates.shared = units * 128 * ghz;
  target.rates.latency_ns = 466 / ghz;
  return target;
}

/// A GeForce RTX 3090, f32 accumulators. source: none that was looked up: figures from memory; l2
/// is a guess.
GpuTarget ampere() {
  GpuTarget target = geforce("sm_86", 82, 1.695);
  target.l2_bytes = 6 << 20;
  target.rates.f32 = 35600;
  target.rates.f16 = 35600;
  target.rates.f64 = 556;
  target.rates.mma_f16 = 71000;
  target.rates.mma_tf32 = 35600;
  target.rates.mma_i8 = 284000;
  target.rates.dram = 936;
  target.rates.l2 = 3 * target.rates.dram;
  return target;
}

/// A GeForce RTX 4090, f32 accumulators. source: none that was looked up: figures from memory; l2
/// is a guess.
GpuTarget ada() {
  GpuTarget target = geforce("sm_89", 128, 2.52);
  target.unit_blocks = 24;
  target.l2_bytes = 72 << 20;
  target.rates.f32 = 82600;
  target.rates.f16 = 82600;
  target.rates.f64 = 1290;
  target.rates.mma_f16 = 165200;
  target.rates.mma_tf32 = 82600;
  target.rates.mma_i8 = 660600;
  target.rates.dram = 1008;
  target.rates.l2 = 3 * target.rates.dram;
  return target;
}

}  // namespace

std::string_view name(GpuLanguage language) {
  return language == GpuLanguage::Cuda ? "cuda" : "opencl";
}

bool copies_asynchronously(const GpuTarget& target) {
  constexpr std::string_view kPrefix = "sm_";
  return target.language == GpuLanguage::Cuda && target.arch.starts_with(kPrefix) &&
         std::atoi(target.arch.c_str() + kPrefix.size()) >= 80;
}

std::vector<GpuTarget> all_gpu_targets() {
  // Whatever has compute capability 9.0 runs code for sm_90a.
  return {opencl(), mali(), h200("cuda"),       a100(),
          ampere(), ada(),  h200("cuda-sm_90"), h200("cuda-sm_90a")};
}

Result<GpuTarget> find_gpu_target(const std::string& name) {
  std::vector<std::string> names;
  for (const GpuTarget& target : all_gpu_targets()) {
    if (target.name == name) return target;
    names.push_back(target.name);
  }
  return fail(ErrorKind::Device, fmt::format("there is no GPU target '{}'", name),
              fmt::format("the targets are {}", fmt::join(names, ", ")), "tilewright targets");
}

}  // namespace tilewright::hw
