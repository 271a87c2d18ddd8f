#include <fmt/format.h>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {
namespace {

std::string_view name(AluOp op) {
  switch (op) {
    case AluOp::Min:
      return "min";
    case AluOp::Max:
      return "max";
    case AluOp::Add:
      return "add";
    case AluOp::Shr:
      return "shr";
    case AluOp::Mul:
      return "mul";
  }
  return "?";
}

std::string flags(const Deps& deps) {
  std::string text;
  if (deps.pop_prev) text += " pop_prev";
  if (deps.pop_next) text += " pop_next";
  if (deps.push_prev) text += " push_prev";
  if (deps.push_next) text += " push_next";
  return text.empty() ? text : "  [" + text.substr(1) + "]";
}

/// `8x14+16`: rows, elements per row, elements between row starts where there are several rows.
std::string describe(const Transfer& move) {
  const std::string mem = move.mem <= Mem::Acc8 ? std::string(vta::name(move.mem))
                                                : fmt::format("mem{}", static_cast<int>(move.mem));
  std::string text = fmt::format("{:<10}", (move.store ? "store." : "load.") + mem);
  if (!move.moves()) return text + " none";
  text += fmt::format(" sram {} dram {:#x} {}x{}", move.sram, move.dram, move.y_size, move.x_size);
  if (move.y_size > 1) text += fmt::format("+{}", move.x_stride);
  if (move.y_pad_top + move.y_pad_bottom + move.x_pad_left + move.x_pad_right > 0)
    text += fmt::format(" pad top {} bottom {} left {} right {}", move.y_pad_top, move.y_pad_bottom,
                        move.x_pad_left, move.x_pad_right);
  return text;
}

/// `uop 0..4 loops 14x3 dst 14,1 src 16,1`: the factors of a loop of one iteration do not matter.
std::string describe(const Loops& loops, bool wgt) {
  std::string text = fmt::format("uop {}..{} loops {}x{}", loops.uop_begin, loops.uop_end,
                                 loops.outer, loops.inner);
  if (loops.outer == 1 && loops.inner == 1) return text;
  text += fmt::format(" dst {},{} src {},{}", loops.dst_outer, loops.dst_inner, loops.src_outer,
                      loops.src_inner);
  if (wgt) text += fmt::format(" wgt {},{}", loops.wgt_outer, loops.wgt_inner);
  return text;
}

std::string describe(const Gemm& gemm) {
  const std::string_view form = gemm.reset           ? "gemm.reset"
                                : gemm.replace_first ? "gemm.first"
                                                     : "gemm";
  return fmt::format("{:<10} {}", form, describe(gemm.loops, !gemm.reset));
}

std::string describe(const Alu& alu) {
  std::string text = fmt::format("{:<10}", fmt::format("alu.{}", name(alu.op)));
  if (alu.use_imm) text += fmt::format(" imm {}", alu.imm);
  return text + " " + describe(alu.loops, false);
}

std::string describe(const Finish&) { return "finish"; }

}  // namespace

std::string disassemble(const Config&, const Insn& insn) {
  return std::visit([](const auto& op) { return describe(op); }, insn.op) + flags(insn.deps);
}

}  // namespace tilewright::vta
