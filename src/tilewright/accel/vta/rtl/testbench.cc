// Unit benches for Icarus: a module, stimuli, and what the model here says it must answer.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "tilewright/accel/vta/rtl/bench_text.h"
#include "tilewright/accel/vta/rtl/parts.h"
#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/base/check.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/base/rng.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::vta {
namespace {

using Lanes = std::vector<int32_t>;  ///< scalars of one element

/// Scalars of `bits` each as one Verilog literal, the first one lowest.
std::string literal(const Lanes& values, int bits) {
  std::string binary;
  for (auto value = values.rbegin(); value != values.rend(); ++value)
    for (int bit = bits - 1; bit >= 0; --bit) binary += (*value >> bit & 1) != 0 ? '1' : '0';
  return fmt::format("{}'b{}", binary.size(), binary);
}

Lanes random_lanes(Rng& rng, int64_t count, int bits) {
  Lanes lanes(static_cast<size_t>(count));
  for (int32_t& value : lanes) value = static_cast<int32_t>(rng.next() >> 32) >> (32 - bits);
  return lanes;
}

std::vector<Lanes> random_memory(Rng& rng, size_t elements, int64_t scalars, int bits) {
  std::vector<Lanes> memory;
  for (size_t i = 0; i < elements; ++i) memory.push_back(random_lanes(rng, scalars, bits));
  return memory;
}

std::string fill_memory(const char* name, const std::vector<Lanes>& memory, int bits) {
  std::string text;
  for (size_t i = 0; i < memory.size(); ++i)
    text += fmt::format("    {}[{}] = {};\n", name, i, literal(memory[i], bits));
  return text;
}

std::string check_memory(const char* task, const std::vector<Lanes>& memory, int bits) {
  std::string text;
  for (size_t i = 0; i < memory.size(); ++i)
    text += fmt::format("    {}({}, {});\n", task, i, literal(memory[i], bits));
  return text;
}

std::string with_steps(std::string bench, const std::string& steps) {
  constexpr std::string_view kPlace = "    STEPS;\n";
  bench.replace(bench.find(kPlace), kPlace.size(), steps);
  return bench;
}

std::string word_literal(const Word& word) {
  return fmt::format("128'h{:016x}{:016x}", word[1], word[0]);
}

std::string queue_bench(Rng& rng) {
  constexpr int kCycles = 300;
  constexpr size_t kDepth = 5;
  std::deque<uint64_t> queue;
  std::string steps;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    // Phases in which it fills up, and phases in which it runs empty.
    const bool filling = cycle / 30 % 2 == 0;
    const uint64_t value = rng.next() & 0xffff;
    const bool push = queue.size() < kDepth && rng.chance(filling ? 0.8 : 0.3);
    const bool pop = !queue.empty() && rng.chance(filling ? 0.3 : 0.8);
    steps += fmt::format("    step({}, 16'h{:04x}, {}, {}, 16'h{:04x}, {});\n", push ? 1 : 0, value,
                         pop ? 1 : 0, queue.empty() ? 0 : 1, queue.empty() ? 0 : queue.front(),
                         queue.size() == kDepth ? 1 : 0);
    if (pop) queue.pop_front();
    if (push) queue.push_back(value);
  }
  return with_steps(rtl::kQueueBench, steps);
}

std::string token_bench(const Config& config, Rng& rng) {
  constexpr int kCycles = 300;
  const int latency = config.timing.token_latency;
  std::vector<int> moving;  // cycles left until each token can be taken
  int there = 0;
  std::string steps;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    for (int& left : moving) there += --left == 0 ? 1 : 0;
    const bool push = rng.chance(0.5), pop = there > 0 && rng.chance(0.5);
    steps += fmt::format("    step({}, {}, {});\n", push ? 1 : 0, pop ? 1 : 0, there > 0 ? 1 : 0);
    if (push) moving.push_back(latency);
    if (pop) --there;
  }
  return with_steps(rtl::fill(config, rtl::kTokenBench), steps);
}

/// Draws factors; the result is a limit for micro-ops so that all steps stay below `elements`.
uint32_t axis(Rng& rng, size_t elements, uint32_t& outer, uint32_t& inner) {
  outer = static_cast<uint32_t>(rng.below(4));
  inner = static_cast<uint32_t>(rng.below(3));
  constexpr uint32_t kMostIterations = 3;
  uint32_t reach = (outer + inner) * (kMostIterations - 1);
  if (reach >= elements) outer = inner = reach = 0;
  return static_cast<uint32_t>(elements) - reach;
}

constexpr uint32_t kUops = 8;

/// Calls step(dst, src, wgt, first outer iteration) for each step in order.
template <class F>
void for_each_step(const Loops& l, const std::vector<Uop>& uops, F&& step) {
  for (uint32_t o = 0; o < l.outer; ++o)
    for (uint32_t i = 0; i < l.inner; ++i)
      for (uint32_t u = l.uop_begin; u < l.uop_end; ++u)
        step(uops[u].dst + o * l.dst_outer + i * l.dst_inner,
             uops[u].src + o * l.src_outer + i * l.src_inner,
             uops[u].wgt + o * l.wgt_outer + i * l.wgt_inner, o == 0);
}

std::string fill_uops(const Config& config, const std::vector<Uop>& uops) {
  std::string text;
  for (size_t i = 0; i < uops.size(); ++i)
    text += fmt::format("    uops[{}] = 32'h{:08x};\n", i, encode(config, uops[i]));
  return text;
}

Loops random_loops(Rng& rng) {
  Loops loops;
  loops.uop_begin = static_cast<uint32_t>(rng.below(kUops));
  loops.uop_end = loops.uop_begin + static_cast<uint32_t>(rng.below(kUops - loops.uop_begin + 1));
  loops.outer = static_cast<uint32_t>(rng.below(4));
  loops.inner = static_cast<uint32_t>(rng.below(4));
  return loops;
}

size_t some_elements(const Config& config, Mem mem) {
  constexpr int64_t kMost = 20;
  return static_cast<size_t>(std::min(kMost, config.depth(mem)));
}

std::string gemm_bench(const Config& config, Rng& rng) {
  const size_t accs = some_elements(config, Mem::Acc), inps = some_elements(config, Mem::Inp),
               wgts = some_elements(config, Mem::Wgt);
  std::vector<Lanes> acc = random_memory(rng, accs, config.element_scalars(Mem::Acc), 32);
  const std::vector<Lanes> inp =
      random_memory(rng, inps, config.element_scalars(Mem::Inp), config.inp_bits());
  const std::vector<Lanes> wgt =
      random_memory(rng, wgts, config.element_scalars(Mem::Wgt), config.wgt_bits());
  std::string steps = fill_memory("acc", acc, 32) + fill_memory("inp", inp, config.inp_bits()) +
                      fill_memory("wgt", wgt, config.wgt_bits());
  const auto rows = static_cast<size_t>(config.batch()),
             outs = static_cast<size_t>(config.block_out()),
             ins = static_cast<size_t>(config.block_in());
  for (int i = 0; i < 8; ++i) {
    Gemm gemm;
    gemm.reset = i % 4 == 3;
    gemm.replace_first = config.extensions.fused_reset && i % 2 == 1;
    gemm.loops = random_loops(rng);
    Loops& l = gemm.loops;
    const uint32_t dst = axis(rng, accs, l.dst_outer, l.dst_inner);
    const uint32_t src = axis(rng, inps, l.src_outer, l.src_inner);
    const uint32_t weight = axis(rng, wgts, l.wgt_outer, l.wgt_inner);
    std::vector<Uop> uops(kUops);
    for (Uop& uop : uops)
      uop = {static_cast<uint32_t>(rng.below(dst)), static_cast<uint32_t>(rng.below(src)),
             static_cast<uint32_t>(rng.below(weight))};
    if (rng.chance(0.5)) uops[3].dst = uops[2].dst = uops[1].dst;  // hazards
    for_each_step(l, uops, [&](uint32_t a, uint32_t s, uint32_t w, bool first) {
      for (size_t b = 0; b < rows; ++b)
        for (size_t c = 0; c < outs; ++c) {
          uint32_t sum = gemm.reset || (gemm.replace_first && first)
                             ? 0
                             : static_cast<uint32_t>(acc[a][b * outs + c]);
          for (size_t j = 0; j < ins && !gemm.reset; ++j)
            sum += static_cast<uint32_t>(inp[s][b * ins + j] * wgt[w][c * ins + j]);
          acc[a][b * outs + c] = static_cast<int32_t>(sum);
        }
    });
    steps += fill_uops(config, uops);
    steps += fmt::format("    run({}, {});\n", word_literal(encode(config, Insn{{}, gemm})),
                         l.steps() + static_cast<uint64_t>(config.timing.gemm_overhead) - 2);
    steps += check_memory("check", acc, 32);
  }
  return with_steps(rtl::fill(config, rtl::kGemmBench), steps);
}

int32_t alu(AluOp op, int32_t x, int32_t y) {
  const auto ux = static_cast<uint32_t>(x), uy = static_cast<uint32_t>(y);
  switch (op) {
    case AluOp::Min:
      return std::min(x, y);
    case AluOp::Max:
      return std::max(x, y);
    case AluOp::Add:
      return static_cast<int32_t>(ux + uy);
    case AluOp::Shr:
      return y >= 0 ? x >> y : static_cast<int32_t>(ux << -y);
    case AluOp::Mul:
      return static_cast<int32_t>(ux * uy);
  }
  TW_CHECK(false, "ALU opcode {}", static_cast<int>(op));
}

std::string alu_bench(const Config& config, Rng& rng) {
  const size_t accs = some_elements(config, Mem::Acc),
               lanes = static_cast<size_t>(config.element_scalars(Mem::Acc));
  std::vector<Lanes> acc = random_memory(rng, accs, config.element_scalars(Mem::Acc), 32);
  for (int32_t& amount : acc[0]) amount = static_cast<int32_t>(rng.between(-31, 31));
  std::string steps = fill_memory("acc", acc, 32);
  for (int i = 0; i < 16; ++i) {
    Alu insn;
    insn.op = static_cast<AluOp>(rng.below(config.has_mul ? 5 : 4));
    insn.use_imm = rng.chance(0.5);
    const bool shift = insn.op == AluOp::Shr;
    insn.imm =
        shift ? static_cast<int16_t>(rng.between(-31, 31)) : static_cast<int16_t>(rng.next());
    insn.loops = random_loops(rng);
    Loops& l = insn.loops;
    const uint32_t dst = axis(rng, accs - 1, l.dst_outer, l.dst_inner);
    const uint32_t src = axis(rng, accs, l.src_outer, l.src_inner);
    if (shift) l.src_outer = l.src_inner = 0;  // amounts are in element 0, which is never written
    std::vector<Uop> uops(kUops);
    for (Uop& uop : uops)
      uop = {static_cast<uint32_t>(1 + rng.below(dst)),
             shift ? 0 : static_cast<uint32_t>(rng.below(src)), 0};
    if (rng.chance(0.5)) uops[3].dst = uops[2].dst = uops[1].dst;  // hazards
    if (rng.chance(0.5) && !shift) uops[3].src = uops[2].dst;
    for_each_step(l, uops, [&](uint32_t a, uint32_t s, uint32_t, bool) {
      if (s >= accs) return;
      for (size_t lane = 0; lane < lanes; ++lane)
        acc[a][lane] = alu(insn.op, acc[a][lane], insn.use_imm ? insn.imm : acc[s][lane]);
    });
    const uint64_t ii = insn.use_imm || config.extensions.pipelined_alu ? 1 : 2;
    steps += fill_uops(config, uops);
    steps += fmt::format("    run({}, {});\n", word_literal(encode(config, Insn{{}, insn})),
                         ii * l.steps() + static_cast<uint64_t>(config.timing.alu_overhead) - 2);
    steps += check_memory("check", acc, 32);
  }
  return with_steps(rtl::fill(config, rtl::kAluBench), steps);
}

/// Cycles of a LOAD on an idle port (docs/vta-timing.md 3 and 4).
uint64_t load_cycles(const Config& config, const Transfer& t) {
  const Timing& timing = config.timing;
  const auto bus = static_cast<uint64_t>(timing.bus_bytes);
  const uint64_t size = bus * static_cast<uint64_t>(timing.max_burst_beats);
  const auto element = static_cast<uint64_t>(config.element_bytes(t.mem));
  const uint64_t start = static_cast<uint64_t>(std::max(1, timing.load_overhead - 1));
  uint64_t grant = start, end = 0, beats = 0;
  bool any = false;
  for (uint32_t y = 0; y < t.y_size; ++y) {
    uint64_t at = (t.dram + uint64_t{y} * t.x_stride) * element;
    const uint64_t stop = at + t.x_size * element;
    while (at < stop) {
      const uint64_t next = std::min(stop, (at / size + 1) * size);
      const uint64_t n = (next + bus - 1) / bus - at / bus;
      uint64_t first = grant + static_cast<uint64_t>(timing.read_latency);
      if (any) first = std::max(first, end + 1 + static_cast<uint64_t>(timing.burst_gap));
      grant = std::max(first, grant + 1);
      end = first + n - 1;
      beats += n;
      any = true;
      at = next;
    }
  }
  const uint64_t pads = t.sram_elements() - uint64_t{t.x_size} * t.y_size;
  if (!any) return start + pads + 1;
  return std::max(end, start + pads + beats - 1) + 2;
}

std::string dma_bench(const Config& config, Rng& rng) {
  constexpr uint32_t kRows = 40;  // elements of SRAM that are used, as far as there are so many
  const auto elements = static_cast<uint32_t>(std::min<int64_t>(kRows, config.depth(Mem::Inp)));
  const int bits = config.inp_bits();
  const int64_t scalars = config.element_scalars(Mem::Inp);
  constexpr uint32_t kDram = 64;  // elements
  const std::vector<Lanes> dram = random_memory(rng, kDram, scalars, bits);
  std::vector<Lanes> sram(elements, Lanes(static_cast<size_t>(scalars), 0));
  Lanes all;
  for (const Lanes& lanes : dram) all.insert(all.end(), lanes.begin(), lanes.end());
  const auto per_beat = static_cast<size_t>(config.timing.bus_bytes * 8 / bits);
  all.resize((all.size() + per_beat - 1) / per_beat * per_beat);
  std::string steps;
  for (size_t beat = 0; beat * per_beat < all.size(); ++beat) {
    const Lanes lanes(all.begin() + static_cast<std::ptrdiff_t>(beat * per_beat),
                      all.begin() + static_cast<std::ptrdiff_t>((beat + 1) * per_beat));
    steps += fmt::format("    dram[{}] = {};\n", beat, literal(lanes, bits));
  }
  steps += "    zero_all;\n";
  for (int i = 0; i < 12; ++i) {
    Transfer t;
    do {
      t = Transfer{};
      t.y_size = static_cast<uint32_t>(rng.below(4));
      t.x_size = 1 + static_cast<uint32_t>(rng.below(6));
      t.x_stride = static_cast<uint32_t>(rng.below(8));
      t.y_pad_top = static_cast<uint32_t>(rng.below(3));
      t.y_pad_bottom = static_cast<uint32_t>(rng.below(3));
      t.x_pad_left = static_cast<uint32_t>(rng.below(3));
      t.x_pad_right = static_cast<uint32_t>(rng.below(3));
    } while (t.sram_elements() == 0 || t.sram_elements() > elements);
    t.sram = static_cast<uint32_t>(rng.below(elements - t.sram_elements() + 1));
    t.dram = static_cast<uint32_t>(rng.below(kDram - 3 * 8 - 6));
    const uint32_t width = t.sram_width();
    for (uint32_t e = 0; e < t.sram_elements(); ++e) {
      const uint32_t y = e / width - t.y_pad_top, x = e % width - t.x_pad_left;  // wrap if padding
      sram[t.sram + e] = y < t.y_size && x < t.x_size ? dram[t.dram + y * t.x_stride + x]
                                                      : Lanes(static_cast<size_t>(scalars), 0);
    }
    steps += fmt::format("    run({}, {});\n", word_literal(encode(config, Insn{{}, t})),
                         load_cycles(config, t) - 1);
    steps += check_memory("check", sram, bits);
  }
  return with_steps(rtl::fill(config, rtl::kDmaBench), steps);
}

}  // namespace

std::string testbench(const Config& config, Bench bench, uint64_t seed) {
  Rng rng(seed);
  switch (bench) {
    case Bench::Queue:
      return verilog(config) + queue_bench(rng);
    case Bench::Tokens:
      return verilog(config) + token_bench(config, rng);
    case Bench::Gemm:
      return verilog(config) + gemm_bench(config, rng);
    case Bench::Alu:
      return verilog(config) + alu_bench(config, rng);
    case Bench::Dma:
      return verilog(config) + dma_bench(config, rng);
  }
  TW_CHECK(false, "bench {}", static_cast<int>(bench));
}

Status run_testbench(const std::string& text) {
  constexpr double kBenchLimitSeconds = 600;
  TW_TRY(checked_version(kIcarus));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  TW_TRY_STATUS(write_file(folder.path() + "/bench.v", text));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"iverilog", "-g2005", "-s", "bench", "-o", "bench.vvp", "bench.v"},
        std::vector<std::string>{"vvp", "-n", "bench.vvp"}}) {
    const ToolResult result = TW_TRY(run_checked(command, {folder.path(), kBenchLimitSeconds}));
    if (command[0] == "vvp" && result.output.find("PASS") == std::string::npos)
      return fail(ErrorKind::Mismatch, "the bench does not pass", result.output.substr(0, 2000));
  }
  return {};
}

}  // namespace tilewright::vta
