// A small right program for the default sizes, and what is needed to write others, for tests.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/vta/program.h"

namespace tilewright::vta::testing {

inline Insn with(Deps deps, Insn insn) {
  insn.deps = deps;
  return insn;
}
inline constexpr Deps kPopPrev{true, false, false, false}, kPopNext{false, true, false, false},
    kPushPrev{false, false, true, false}, kPushNext{false, false, false, true};

/// One row of elements.
inline Insn load(Mem mem, uint32_t sram, uint32_t dram, uint32_t count) {
  Transfer move;
  move.mem = mem;
  move.sram = sram;
  move.dram = dram;
  move.y_size = 1;
  move.x_size = move.x_stride = count;
  return {{}, move};
}
inline Insn store(uint32_t sram, uint32_t dram, uint32_t count) {
  Insn insn = load(Mem::Out, sram, dram, count);
  std::get<Transfer>(insn.op).store = true;
  return insn;
}
/// Only passes tokens; the memory says on which module.
inline Insn nothing(Mem mem) { return {{}, Transfer{mem == Mem::Out, mem}}; }
inline Loops over_uops(uint32_t begin, uint32_t end) {
  Loops loops;
  loops.uop_begin = begin;
  loops.uop_end = end;
  return loops;
}
inline Insn gemm(Loops loops, bool reset = false) { return {{}, Gemm{reset, false, loops}}; }
inline Insn alu_imm(AluOp op, int16_t imm, Loops loops) { return {{}, Alu{op, true, imm, loops}}; }
inline Insn alu_reg(AluOp op, Loops loops) { return {{}, Alu{op, false, 0, loops}}; }

// Where things are in DRAM; units: elements.
inline constexpr uint32_t kWgtAt = 8192 / 256, kInpAt = 4096 / 16, kUopAt = 12288 / 4;
inline constexpr uint32_t kOutAt = 16384 / 16, kAccAt = 20480 / 64;

/// `inp x wgt`, positive part, stored. Eight micro-ops: four of (k, k, 0) for GEMM and immediate
/// operations, then four of (k, k + 4, 0).
inline Program hand_program(const Config& config = {}) {
  Program program;
  program.config = config;
  program.image.resize(28672);
  for (size_t i = 0; i < 12288 - 4096; ++i) program.image[i] = static_cast<char>(i * 37 + i / 256);
  for (uint32_t k = 0; k < 8; ++k) {
    const uint32_t word = encode(config, Uop{k % 4, k, 0});
    for (uint32_t b = 0; b < 4; ++b)
      program.image[12288 - 4096 + k * 4 + b] = static_cast<char>(word >> (8 * b) & 0xff);
  }
  Run run;
  run.insns = {
      load(Mem::Wgt, 0, kWgtAt, 1),                              // 0
      with(kPushNext, load(Mem::Inp, 0, kInpAt, 4)),             // 1
      load(Mem::Uop, 0, kUopAt, 8),                              // 2
      gemm(over_uops(0, 4), true),                               // 3
      with(kPopPrev, gemm(over_uops(0, 4))),                     // 4
      with(kPushNext, alu_imm(AluOp::Max, 0, over_uops(0, 4))),  // 5
      with({true, false, true, false}, store(0, kOutAt, 4)),     // 6
      with(kPopNext, {{}, Finish{}}),                            // 7
  };
  run.spans = {{"layer", 0, 7}, {"end", 7, 8}};
  program.runs.push_back(std::move(run));
  program.inputs = {{"x", 4096, 64}};
  program.outputs = {{"y", 16384, 64}};
  program.producer = "hand";
  program.info = R"({"shape":[4,16]})";
  return program;
}

}  // namespace tilewright::vta::testing
