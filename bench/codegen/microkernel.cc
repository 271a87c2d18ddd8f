// Times a scheduled convolution (64 -> 64 channels, 56x56, 3x3, NCHW16c) on one thread and prints
// the percentage of the FMA peak measured beside it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "fma_peak.h"
#include "tilewright/base/file.h"
#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright {
namespace {

/// `rows` x `width` output pixels of a row times `ko` channel blocks are held in registers.
std::string conv_text(int rows, int width, int ko, int channels, int size) {
  const int blocks = channels / 16, tiles = size / width;
  return fmt::format(
      R"(func conv(X: f32[{B},{S},{S},16], const W: f32[{KO},{B},3,3,16,{K},16], bias: f32[{B},16], out Y: f32[{B},{S},{S},16]) {{
  alloc P: f32[{B},{S2},{S2},16]
  alloc C: f32[{KO},{K},{S},{S},16] local
  for ho in {T} parallel {{
    for P.c in {B}, P.h in {R2}, P.w in {S2}, P.ci in 16 vector {{
      block P(c: space {B} = P.c, h: space {S2} = ho * {R} + P.h, w: space {S2} = P.w, ci: space 16 = P.ci) {{
        P[c, h, w, ci] = select(1 <= h && h < {S1} && 1 <= w && w < {S1}, X[c, h - 1, w - 1, ci], 0.0)
      }}
    }}
    for hi in {R}, ko in {KO}, wo in {TILES} {{
      for C.init.w in {WI} unroll, C.init.k in {K} unroll, C.init.ki in 16 vector {{
        block C.init(o: space {KO} = ko, k: space {K} = C.init.k, h: space {S} = ho * {R} + hi, w: space {S} = wo * {WI} + C.init.w, ki: space 16 = C.init.ki) {{
          C[o, k, h, w, ki] = 0.0
        }}
      }}
      for c in {B}, r in 3, s in 3, ci in 16, w in {WI} unroll, k in {K} unroll, ki in 16 vector {{
        block C(o: space {KO} = ko, k: space {K} = k, h: space {S} = ho * {R} + hi, w: space {S} = wo * {WI} + w, ki: space 16 = ki, c: reduce {B} = c, r: reduce 3 = r, s: reduce 3 = s, ci: reduce 16 = ci) {{
          C[o, k, h, w, ki] += P[c, h + r, w + s, ci] * W[o, c, r, s, ci, k, ki]
        }}
      }}
      for Y.w in {WI} unroll, Y.k in {K} unroll, Y.ki in 16 vector {{
        block Y(o: space {KO} = ko, k: space {K} = Y.k, h: space {S} = ho * {R} + hi, w: space {S} = wo * {WI} + Y.w, ki: space 16 = Y.ki) {{
          Y[o * {K} + k, h, w, ki] = max(C[o, k, h, w, ki] + bias[o * {K} + k, ki], 0.0)
        }}
      }}
    }}
  }}
}}
)",
      fmt::arg("B", blocks), fmt::arg("S", size), fmt::arg("S1", size + 1),
      fmt::arg("S2", size + 2), fmt::arg("KO", blocks / ko), fmt::arg("K", ko),
      fmt::arg("T", size / rows), fmt::arg("R", rows), fmt::arg("R2", rows + 2),
      fmt::arg("TILES", tiles), fmt::arg("WI", width));
}

void serial(void*, int64_t count, tw_parallel_body body, void* env) {
  for (int64_t i = 0; i < count; ++i) body(env, i, 0);
}

struct Memory {
  std::vector<std::vector<float>> storage;
  std::vector<void*> buffers;
  void add(int64_t elements) {
    storage.emplace_back(static_cast<size_t>(elements + 16));
    float* p = storage.back().data();
    while (reinterpret_cast<uintptr_t>(p) % 64 != 0) ++p;
    for (int64_t i = 0; i < elements; ++i) p[i] = static_cast<float>(i % 7 - 3);
    buffers.push_back(p);
  }
};

Status run(int rows, int width, int ko, bool dump) {
  constexpr int kChannels = 64, kSize = 56;
  const Func func = TW_TRY(parse_func(conv_text(rows, width, ko, kChannels, kSize)));
  const Func lowered = TW_TRY(lower::run_pipeline(func, hw::host()));
  if (dump) {
    TW_TRY_STATUS(write_file("conv.lowered.tw", print(lowered)));
    TW_TRY_STATUS(write_file("conv.ll", TW_TRY(codegen::emit_llvm_ir(lowered))));
    TW_TRY_STATUS(write_file("conv.s", TW_TRY(codegen::emit_assembly(lowered))));
  }
  const double compile_start = bench::thread_seconds();
  const auto module = TW_TRY(codegen::jit({lowered}));
  const double compile_seconds = bench::thread_seconds() - compile_start;
  const KernelInfo& info = module->kernels()[0];
  const tw_kernel kernel = module->find(info.symbol);
  Memory memory;
  memory.storage.reserve(8);
  for (const Param& p : func.params) memory.add(*codegen::const_elements(p.buffer));
  memory.add((info.shared_bytes + info.per_worker_bytes) / 4 + 16);
  void* workspace = memory.buffers.back();
  const tw_kernel_services services{sizeof(tw_kernel_services), nullptr, serial, 1};
  auto call = [&] { kernel(memory.buffers.data(), nullptr, workspace, &services); };
  call();
  const double flops = 2.0 * kChannels * kChannels * 9 * kSize * kSize;
  std::vector<double> shares;
  double best = 1e9;
  for (int round = 0; round < 15; ++round) {
    const double before = bench::fma_peak(0.005);
    double fastest = 1e9;
    for (int i = 0; i < 5; ++i) {
      const double start = bench::thread_seconds();
      call();
      fastest = std::min(fastest, bench::thread_seconds() - start);
    }
    const double peak = std::max(before, bench::fma_peak(0.005));
    shares.push_back(100 * flops / fastest / peak);
    best = std::min(best, fastest);
  }
  std::sort(shares.begin(), shares.end());
  fmt::print(
      "tile {:2}x{}x16, {} rows: {:7.1f} us, {:6.1f} GFLOP/s, {:5.1f} % of peak (median), "
      "{:5.1f} % (best); compiled in {:.0f} ms\n",
      width, ko, rows, best * 1e6, flops / best * 1e-9, shares[shares.size() / 2], shares.back(),
      compile_seconds * 1e3);
  return {};
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  const bool dump = argc > 1 && std::strcmp(argv[1], "--dump") == 0;
  struct Tile {
    int rows, width, ko;
  };
  const std::vector<Tile> tiles =
      dump ? std::vector<Tile>{{14, 14, 2}}
           : std::vector<Tile>{{14, 14, 2}, {7, 14, 2}, {4, 14, 2}, {14, 28, 1},
                               {14, 7, 4},  {14, 4, 4}, {14, 8, 2}};
  for (const Tile& t : tiles) {
    const auto ok = tilewright::run(t.rows, t.width, t.ko, dump);
    if (!ok) {
      fmt::print(stderr, "{}", to_string(ok.error()));
      return 1;
    }
  }
  return 0;
}
