// Multiply-accumulates per second of fsim and simulated cycles per second of tsim, each on one
// core, for a stream like that of a ResNet-18 layer (C8: 14x14, 256 -> 256 channels, 3x3): tiles of
// all rows and 64 output channels, 16 input channels at a time, double-buffered.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

constexpr uint32_t kSize = 14, kPadded = 16, kTaps = 9, kOut = 4, kIn = 16;
constexpr uint64_t kDram = uint64_t{1} << 24;
constexpr uint32_t kUops = 1 << 20, kBias = 1 << 16, kResult = 1 << 19;  // in elements

Transfer transfer(Mem mem, uint32_t sram, uint32_t dram, uint32_t rows, uint32_t columns) {
  Transfer t;
  t.mem = mem, t.sram = sram, t.dram = dram;
  t.y_size = rows, t.x_size = columns, t.x_stride = columns;
  return t;
}

/// One micro-op per tap and output block; loops over rows and columns.
std::vector<Uop> micro_ops() {
  std::vector<Uop> uops;
  for (uint32_t o = 0; o < kOut; ++o)
    for (uint32_t r = 0; r < 3; ++r)
      for (uint32_t s = 0; s < 3; ++s)
        uops.push_back({o * kSize * kSize, r * kPadded + s, o * kTaps + r * 3 + s});
  for (uint32_t o = 0; o < kOut; ++o) uops.push_back({o * kSize * kSize, o * kSize * kSize, 0});
  return uops;
}

Loops loops(uint32_t begin, uint32_t end) {
  Loops l;
  l.uop_begin = begin, l.uop_end = end;
  l.outer = l.inner = kSize;
  l.dst_outer = kSize, l.dst_inner = 1;
  l.src_outer = kPadded, l.src_inner = 1;
  return l;
}

/// The tail of a layer on what GEMM left: shift, clip, store.
void finish_tile(std::vector<Insn>& insns, uint32_t tile) {
  Loops l = loops(kOut * kTaps, kOut * kTaps + kOut);
  l.src_outer = kSize;
  insns.push_back({{}, Alu{AluOp::Shr, true, 8, l}});
  insns.push_back({{}, Alu{AluOp::Max, true, 0, l}});
  insns.push_back({{}, Alu{AluOp::Min, true, 127, l}});
  insns.back().deps.push_next = true;
  constexpr uint32_t kElements = kOut * kSize * kSize;
  Transfer t = transfer(Mem::Out, 0, kResult + tile * kElements, 1, kElements);
  t.store = true;
  insns.push_back({{true, false, true, false}, t});
}

std::vector<Insn> stream(uint32_t tiles) {
  std::vector<Insn> insns;
  const uint32_t uops = static_cast<uint32_t>(micro_ops().size());
  insns.push_back({{}, transfer(Mem::Uop, 0, kUops, 1, uops)});
  uint32_t step = 0;
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    insns.push_back({{}, transfer(Mem::Acc, 0, kBias, 1, kOut * kSize * kSize)});
    insns.back().deps.pop_next = tile > 0;
    for (uint32_t k = 0; k < kIn; ++k, ++step) {
      const uint32_t half = step % 2;
      Transfer inp = transfer(Mem::Inp, half * kPadded * kPadded, k * kSize * kSize, kSize, kSize);
      inp.y_pad_top = inp.y_pad_bottom = inp.x_pad_left = inp.x_pad_right = 1;
      insns.push_back({{false, step >= 2, false, false}, inp});
      insns.push_back({{false, false, false, true},
                       transfer(Mem::Wgt, half * kOut * kTaps, k * kOut * kTaps, 1, kOut * kTaps)});
      Gemm gemm{false, false, loops(0, kOut * kTaps)};
      gemm.loops.uop_begin = 0;
      insns.push_back({{true, false, true, false}, gemm});
    }
    finish_tile(insns, tile % 4);
  }
  for (int i = 0; i < 2; ++i)  // the two halves, free again
    insns.push_back({{false, true, false, false}, transfer(Mem::Inp, 0, 0, 0, 0)});
  insns.push_back({{false, true, false, false}, Finish{}});
  return insns;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Best of `repeats` runs. units: seconds.
template <class Work>
double best(int repeats, Work work) {
  double least = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const double begin = seconds();
    work();
    least = std::min(least, seconds() - begin);
  }
  return least;
}

LaunchReport must(Result<LaunchReport> report) {
  if (report) return *std::move(report);
  fmt::print(stderr, "{}", to_string(report.error()));
  std::exit(1);
}

void fill(Device& device) {
  Rng rng(1);
  std::string bytes(kDram, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.next());
  const std::vector<Uop> uops = micro_ops();
  for (size_t i = 0; i < uops.size(); ++i) {
    const uint32_t word = encode(device.config(), uops[i]);
    for (int b = 0; b < 4; ++b) bytes[(kUops + i) * 4 + b] = static_cast<char>(word >> 8 * b);
  }
  if (!device.write(0, bytes)) std::exit(1);
}

int run() {
  const Config config;
  const std::vector<Insn> insns = stream(16);
  LaunchReport report;
  const auto fsim = make_fsim(config, kDram), tsim = make_tsim(config, kDram);
  fill(*fsim);
  fill(*tsim);
  const double functional = best(5, [&] { report = must(fsim->launch(insns)); });
  const double macs = static_cast<double>(report.counters.gemm_steps) * 256;
  fmt::print("fsim           {:7.2f} G MAC/s  ({:.0f} M MAC in {:.1f} ms)\n",
             macs / functional * 1e-9, macs * 1e-6, functional * 1e3);
  const double timed = best(5, [&] { report = must(tsim->launch(insns)); });
  const double cycles = static_cast<double>(report.cycles);
  fmt::print("tsim with data {:7.1f} M cycles/s ({:.2f} M cycles in {:.1f} ms)\n",
             cycles / timed * 1e-6, cycles * 1e-6, timed * 1e3);
  const double only = best(20, [&] { report = must(simulate_time(config, insns)); });
  fmt::print("tsim time only {:7.1f} M cycles/s ({:.3f} ms, {} instructions)\n",
             cycles / only * 1e-6, only * 1e3, insns.size());
  fmt::print("GEMM utilisation of the stream {:.1f} %, bound {} cycles\n",
             100 * static_cast<double>(report.counters.gemm_steps) / cycles,
             bound(config, insns).cycles());
  return 0;
}

}  // namespace
}  // namespace tilewright::vta

int main() { return tilewright::vta::run(); }
