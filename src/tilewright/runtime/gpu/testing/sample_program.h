// A small program for GPUs, with what it computes: shared by the tests of all languages.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "tilewright/runtime/gpu/program.h"

namespace tilewright::runtime {

inline constexpr int64_t kImages = 3, kRows = 6, kColumns = 32;
inline constexpr int64_t kElements = kImages * kRows * kColumns;

/// scale: to[n, r, c] = x[n, r, c] * w[r] + shift; sum: to[n, r] = the sum of x[n, r, :].
inline constexpr const char* kSampleOpenCl = R"(
__kernel void scale(__global char* x_base, long x_offset, __global char* w_base, long w_offset,
                    __global char* to_base, long to_offset, long shift) {
  __global const float* x = (__global const float*)(x_base + x_offset);
  __global const float* w = (__global const float*)(w_base + w_offset);
  __global float* to = (__global float*)(to_base + to_offset);
  const long c = get_global_id(0), r = get_global_id(1), n = get_global_id(2);
  const long i = (n * 6 + r) * 32 + c;
  to[i] = x[i] * w[r] + (float)shift;
}
__kernel void sum(__global char* x_base, long x_offset, __global char* to_base, long to_offset) {
  __global const float* x = (__global const float*)(x_base + x_offset);
  __global float* to = (__global float*)(to_base + to_offset);
  __local float part[32];
  const long c = get_local_id(0), row = get_group_id(1) * 6 + get_group_id(0);
  part[c] = x[row * 32 + c];
  for (long step = 16; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c < step) part[c] += part[c + step];
  }
  if (c == 0) to[row] = part[0];
}
)";

inline constexpr const char* kSampleCuda = R"(
extern "C" __global__ void scale(const float* x, const float* w, float* to, long long shift) {
  const long long c = blockIdx.x * blockDim.x + threadIdx.x;
  const long long r = blockIdx.y * blockDim.y + threadIdx.y, n = blockIdx.z;
  const long long i = (n * 6 + r) * 32 + c;
  to[i] = x[i] * w[r] + (float)shift;
}
extern "C" __global__ void sum(const float* x, float* to) {
  __shared__ float part[32];
  const long long c = threadIdx.x, row = blockIdx.y * 6 + blockIdx.x;
  part[c] = x[row * 32 + c];
  for (int step = 16; step > 0; step /= 2) {
    __syncthreads();
    if (c < step) part[c] += part[c + step];
  }
  if (c == 0) to[row] = part[0];
}
)";

/// Whole numbers, so that every order of a sum gives the same.
inline float sample_input(int64_t i) { return static_cast<float>((i * 7) % 23 - 11); }
inline float sample_weight(int64_t r) { return static_cast<float>(r - 2); }

/// t = scale(x, w, 3) in the arena, y = sum(t), z = scale(x, w, -1).
inline GpuProgram sample_program(const std::string& language) {
  using Place = GpuBuffer::Place;
  GpuProgram program;
  program.language = language;
  program.source = language == "cuda" ? kSampleCuda : kSampleOpenCl;
  program.kernels = {{"scale", {8, 3, 3}, {4, 2, 1}}, {"sum", {6, 3, 1}, {32, 1, 1}}};
  program.buffers = {{Place::Input, 0, 4 * kElements, "x"},
                     {Place::Constants, 64, 4 * kRows, "w"},
                     {Place::Arena, 128, 4 * kElements, "t"},
                     {Place::Output, 0, 4 * kImages * kRows, "y"},
                     {Place::Output, 0, 4 * kElements, "z"}};
  program.calls = {
      {0, "first", {0, 1, 2}, {3}}, {1, "second", {2, 3}, {}}, {0, "third", {0, 1, 4}, {-1}}};
  program.inputs = {0};
  program.outputs = {4, 3};
  program.arena_bytes = 128 + 4 * kElements;
  program.constants = std::string(64 + 4 * kRows, '\0');
  for (int64_t r = 0; r < kRows; ++r) {
    const float w = sample_weight(r);
    std::memcpy(program.constants.data() + 64 + 4 * r, &w, 4);
  }
  return program;
}

struct SampleResult {
  std::vector<float> z = std::vector<float>(kElements), y = std::vector<float>(kImages * kRows);
};
/// By plain loops; input element i is `bias` more than sample_input(i).
inline SampleResult sample_result(float bias) {
  SampleResult result;
  for (int64_t row = 0; row < kImages * kRows; ++row)
    for (int64_t c = 0; c < kColumns; ++c) {
      const int64_t i = row * kColumns + c;
      const float scaled = (sample_input(i) + bias) * sample_weight(row % kRows);
      result.z[static_cast<size_t>(i)] = scaled - 1;
      result.y[static_cast<size_t>(row)] += scaled + 3;
    }
  return result;
}

}  // namespace tilewright::runtime
