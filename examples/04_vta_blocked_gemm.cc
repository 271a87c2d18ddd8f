// Blocked matrix product on VTA, C = clip(A * B^T >> 8) with 256 x 256 x 256 bytes, with tokens
// pushed and popped by hand. With one virtual thread, loads and products take turns; with two, each
// with half of every buffer, one thread loads while the other computes: latency hiding.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tilewright/accel/vta/runtime/command_queue.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/tsim.h"

namespace vta = tilewright::vta;
using tilewright::Result;
using tilewright::Status;
using vta::Module;

constexpr uint32_t kSize = 256;  // of each axis; units: scalars
constexpr uint32_t kBlock = 64;  // of each axis of a block; units: scalars
constexpr uint32_t kBlocks = kSize / kBlock;
constexpr uint32_t kTile = 16;               // scalars of a row of an INP or ACC element
constexpr uint32_t kTiles = kBlock / kTile;  // elements across a block

// Elements of a block: INP [64][4], WGT [4][4], ACC [64][4].
constexpr uint32_t kInp = kBlock * kTiles, kWgt = kTiles * kTiles, kAcc = kBlock * kTiles;

struct Matrices {
  std::vector<int8_t> a, b, c;  // [256][256]; b is [column of c][k]
};

Matrices make_matrices() {
  Matrices m;
  for (uint32_t i = 0; i < kSize * kSize; ++i) {
    m.a.push_back(static_cast<int8_t>(i * 37 % 255 - 127));
    m.b.push_back(static_cast<int8_t>(i * 91 % 251 - 125));
  }
  for (uint32_t i = 0; i < kSize; ++i)
    for (uint32_t j = 0; j < kSize; ++j) {
      int32_t sum = 0;
      for (uint32_t k = 0; k < kSize; ++k) sum += m.a[i * kSize + k] * m.b[j * kSize + k];
      m.c.push_back(static_cast<int8_t>(std::clamp(sum >> 8, -128, 127)));
    }
  return m;
}

// Block by block, and inside tile by tile of `rows` x 16: a block is one piece of memory.
std::string pack(const std::vector<int8_t>& matrix, uint32_t rows) {
  std::string out;
  for (uint32_t bi = 0; bi < kBlocks; ++bi)
    for (uint32_t bj = 0; bj < kBlocks; ++bj)
      for (uint32_t i = 0; i < kBlock; i += rows)
        for (uint32_t j = 0; j < kBlock; j += kTile)
          for (uint32_t r = 0; r < rows; ++r)
            for (uint32_t c = 0; c < kTile; ++c)
              out.push_back(
                  static_cast<char>(matrix[(bi * kBlock + i + r) * kSize + bj * kBlock + j + c]));
  return out;
}

// All elements of one block, which are contiguous in DRAM.
vta::Transfer block(vta::Mem mem, uint32_t sram, uint32_t index, uint32_t elements) {
  vta::Transfer transfer;
  transfer.mem = mem;
  transfer.sram = sram;
  transfer.dram = index * elements;
  transfer.y_size = 1;
  transfer.x_size = transfer.x_stride = elements;
  return transfer;
}

// ACC[m][n] += INP[m][k] * WGT[n][k], k outermost so that no sum is needed right after it is
// written. The two outer loops become hardware loops, the third one four micro-ops.
Result<vta::Kernel> product(const vta::Config& config, uint32_t thread) {
  vta::KernelRecorder recorder{vta::Gemm{}};
  TW_TRY_STATUS(recorder.loop_begin(kTiles, 0, 1, 1));
  TW_TRY_STATUS(recorder.loop_begin(kBlock, kTiles, kTiles, 0));
  TW_TRY_STATUS(recorder.loop_begin(kTiles, 1, 0, kTiles));
  recorder.push({thread * kAcc, thread * kInp, thread * kWgt});
  for (int loop = 0; loop < 3; ++loop) TW_TRY_STATUS(recorder.loop_end());
  return recorder.finish(config);
}

// One operation on every accumulator of a block.
template <class Op>
Result<vta::Kernel> for_each_acc(const vta::Config& config, uint32_t thread, const Op& op) {
  vta::KernelRecorder recorder{op};
  TW_TRY_STATUS(recorder.loop_begin(kAcc, 1, 0));
  recorder.push({thread * kAcc, 0, 0});
  TW_TRY_STATUS(recorder.loop_end());
  return recorder.finish(config);
}

template <>
Result<vta::Kernel> for_each_acc(const vta::Config& config, uint32_t thread, const vta::Alu& op) {
  vta::KernelRecorder recorder{op};
  TW_TRY_STATUS(recorder.loop_begin(kAcc, 1, 1));
  recorder.push({thread * kAcc, thread * kAcc, 0});
  TW_TRY_STATUS(recorder.loop_end());
  return recorder.finish(config);
}

struct Buffers {
  vta::Buffer a, b, c;
};

// Product of blocks (i, k) of A and (j, k) of B. `first`, `last`: use of this thread's buffers.
Status multiply(vta::CommandQueue& queue, const vta::Config& config, const Buffers& buffers,
                uint32_t thread, uint32_t a_block, uint32_t b_block, bool first, bool last) {
  // Load waits until compute has read what was there; compute waits for the data.
  if (!first) TW_TRY_STATUS(queue.dep_pop(Module::Compute, Module::Load));
  TW_TRY_STATUS(
      queue.load_buffer_2d(buffers.a, block(vta::Mem::Inp, thread * kInp, a_block, kInp)));
  TW_TRY_STATUS(
      queue.load_buffer_2d(buffers.b, block(vta::Mem::Wgt, thread * kWgt, b_block, kWgt)));
  TW_TRY_STATUS(queue.dep_push(Module::Load, Module::Compute));
  TW_TRY_STATUS(queue.dep_pop(Module::Load, Module::Compute));
  TW_TRY_STATUS(queue.push(TW_TRY(product(config, thread))));
  if (!last) TW_TRY_STATUS(queue.dep_push(Module::Compute, Module::Load));
  return {};
}

// Rounds, clips and stores a block of C.
Status write_back(vta::CommandQueue& queue, const vta::Config& config, const Buffers& buffers,
                  uint32_t thread, uint32_t c_block, bool last) {
  for (const vta::Alu& op :
       {vta::Alu{vta::AluOp::Shr, true, 8, {}}, vta::Alu{vta::AluOp::Min, true, 127, {}},
        vta::Alu{vta::AluOp::Max, true, -128, {}}})
    TW_TRY_STATUS(queue.push(TW_TRY(for_each_acc(config, thread, op))));
  TW_TRY_STATUS(queue.dep_push(Module::Compute, Module::Store));
  TW_TRY_STATUS(queue.dep_pop(Module::Compute, Module::Store));
  TW_TRY_STATUS(
      queue.store_buffer_2d(buffers.c, block(vta::Mem::Out, thread * kAcc, c_block, kAcc)));
  // Compute may use these accumulators again when the store is done.
  if (!last) TW_TRY_STATUS(queue.dep_push(Module::Store, Module::Compute));
  return {};
}

Status emit(vta::CommandQueue& queue, const vta::Config& config, const Buffers& buffers,
            uint32_t threads) {
  constexpr uint32_t kAll = kBlocks * kBlocks;
  for (uint32_t c = 0; c < kAll; c += threads) {  // thread t computes block c + t of C
    const bool first = c == 0, last = c + threads == kAll;
    for (uint32_t t = 0; t < threads; ++t) {
      if (!first) TW_TRY_STATUS(queue.dep_pop(Module::Store, Module::Compute));
      TW_TRY_STATUS(queue.push(TW_TRY(for_each_acc(config, t, vta::Gemm{.reset = true}))));
    }
    for (uint32_t k = 0; k < kBlocks; ++k)
      for (uint32_t t = 0; t < threads; ++t) {
        const uint32_t a_block = (c + t) / kBlocks * kBlocks + k;
        const uint32_t b_block = (c + t) % kBlocks * kBlocks + k;
        TW_TRY_STATUS(multiply(queue, config, buffers, t, a_block, b_block, first && k == 0,
                               last && k + 1 == kBlocks));
      }
    for (uint32_t t = 0; t < threads; ++t)
      TW_TRY_STATUS(write_back(queue, config, buffers, t, c + t, last));
  }
  return {};
}

Result<vta::LaunchReport> run(vta::Device& device, const Matrices& matrices, uint32_t threads) {
  vta::CommandQueue queue(device);
  Buffers buffers;
  for (vta::Buffer* buffer : {&buffers.a, &buffers.b, &buffers.c})
    *buffer = TW_TRY(queue.alloc(kSize * kSize));
  TW_TRY_STATUS(queue.copy_in(buffers.a, 0, pack(matrices.a, 1)));
  TW_TRY_STATUS(queue.copy_in(buffers.b, 0, pack(matrices.b, kTile)));
  TW_TRY_STATUS(emit(queue, device.config(), buffers, threads));
  vta::LaunchReport report = TW_TRY(queue.synchronize());
  std::string got(kSize * kSize, '\0');
  TW_TRY_STATUS(queue.copy_out(buffers.c, 0, got.data(), got.size()));
  if (got != pack(matrices.c, 1))
    return tilewright::fail(tilewright::ErrorKind::Mismatch,
                            fmt::format("wrong result on {}", device.name()));
  return report;
}

Status run_all() {
  const vta::Config config;
  const Matrices matrices = make_matrices();
  constexpr uint64_t kDram = 16 << 20;
  uint64_t before = 0;
  for (uint32_t threads : {1, 2}) {
    const auto fsim = vta::make_fsim(config, kDram), tsim = vta::make_tsim(config, kDram);
    TW_TRY_STATUS(run(*fsim, matrices, threads));
    const vta::LaunchReport report = TW_TRY(run(*tsim, matrices, threads));
    const double steps = static_cast<double>(report.counters.gemm_steps);
    fmt::print("{} virtual thread{}: right; {} cycles, GEMM busy {:.1f} %\n", threads,
               threads > 1 ? "s (latency hiding)" : "", report.cycles,
               100 * steps / static_cast<double>(report.cycles));
    if (threads == 1) before = report.cycles;
    if (threads > 1 && report.cycles * 10 > before * 8)
      return tilewright::fail(tilewright::ErrorKind::Mismatch, "latency hiding gains too little",
                              fmt::format("{} cycles, {} without it", report.cycles, before));
  }
  return {};
}

int main() {
  const Status status = run_all();
  if (!status) fmt::print(stderr, "{}", tilewright::to_string(status.error()));
  return status ? 0 : 1;
}
