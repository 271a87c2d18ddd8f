#include "tilewright/hw/gpu_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::hw {
namespace {

/// Any device: the least that OpenCL's full profile asks for, and what PoCL and GPUs have beyond.
GpuTarget opencl() {
  GpuTarget target;
  target.name = "opencl";
  return target;
}

/// A mobile GPU like a Mali-G71 MP8 at 1.04 GHz, 8 cores of 12 lanes: 16-bit floats, no doubles.
/// source: Arm, Bifrost GPU OpenCL Developer Guide.
GpuTarget mali() {
  GpuTarget target;
  target.name = "opencl-mali";
  target.warp = 4;
  target.units = 8;
  target.unit_threads = 384;
  target.has_f16 = true;
  target.has_f64 = false;
  target.peak_gflops = 199;
  target.gbytes_per_s = 28;
  return target;
}

GpuTarget cuda(std::string name, std::string arch) {
  GpuTarget target;
  target.name = std::move(name);
  target.language = GpuLanguage::Cuda;
  target.arch = std::move(arch);
  target.max_threads = 1024;
  target.shared_bytes = 48 << 10;  // what a kernel may declare
  target.registers = 255;
  target.warp = 32;
  target.unit_threads = 2048;
  target.has_f16 = true;
  return target;
}

/// source: NVIDIA A100 Tensor Core GPU Architecture, tables 1 and 4.
GpuTarget a100() {
  GpuTarget target = cuda("cuda-sm_80", "sm_80");
  target.units = 108;
  target.peak_gflops = 19500;
  target.gbytes_per_s = 1555;
  return target;
}

/// source: NVIDIA H200 Tensor Core GPU data sheet.
GpuTarget h200(std::string name) {
  GpuTarget target = cuda(std::move(name), "sm_90a");
  target.units = 132;
  target.peak_gflops = 66900;
  target.gbytes_per_s = 4800;
  return target;
}

}  // namespace

std::string_view name(GpuLanguage language) {
  return language == GpuLanguage::Cuda ? "cuda" : "opencl";
}

std::vector<GpuTarget> all_gpu_targets() {
  return {opencl(), mali(), h200("cuda"), a100(), h200("cuda-sm_90a")};
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
