#include "tilewright/accel/vta/footprint.h"

#include <algorithm>
#include <limits>

#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

using accel::Access;
using accel::Footprint;

/// Least and largest index of one operand over the micro-ops, and how far the loops move it.
struct Hull {
  uint64_t low = std::numeric_limits<uint64_t>::max(), high = 0;

  void add(uint32_t index) {
    low = std::min<uint64_t>(low, index);
    high = std::max<uint64_t>(high, index);
  }
  Access range(Mem mem, const Loops& loops, uint32_t outer, uint32_t inner, bool write) const {
    const uint64_t reach = uint64_t{loops.outer - 1} * outer + uint64_t{loops.inner - 1} * inner;
    return accel::one_row(number(mem), low, high + reach + 1, write);
  }
};

struct Hulls {
  Hull dst, src, wgt;
};

Hulls hulls(const Loops& loops, std::span<const Uop> uops) {
  Hulls all;
  for (const Uop& uop : uops.subspan(loops.uop_begin, loops.uop_end - loops.uop_begin)) {
    all.dst.add(uop.dst);
    all.src.add(uop.src);
    all.wgt.add(uop.wgt);
  }
  return all;
}

void add_written(const Hull& dst, const Loops& loops, Footprint& into) {
  into.push_back(dst.range(Mem::Acc, loops, loops.dst_outer, loops.dst_inner, true));
  into.push_back(dst.range(Mem::Out, loops, loops.dst_outer, loops.dst_inner, true));
}

void add_gemm(const Gemm& gemm, std::span<const Uop> uops, Footprint& into) {
  const Loops& loops = gemm.loops;
  const Hulls all = hulls(loops, uops);
  into.push_back(accel::one_row(number(Mem::Uop), loops.uop_begin, loops.uop_end, false));
  add_written(all.dst, loops, into);
  if (gemm.reset) return;
  into.push_back(all.dst.range(Mem::Acc, loops, loops.dst_outer, loops.dst_inner, false));
  into.push_back(all.src.range(Mem::Inp, loops, loops.src_outer, loops.src_inner, false));
  into.push_back(all.wgt.range(Mem::Wgt, loops, loops.wgt_outer, loops.wgt_inner, false));
}

void add_alu(const Alu& alu, std::span<const Uop> uops, Footprint& into) {
  const Loops& loops = alu.loops;
  const Hulls all = hulls(loops, uops);
  into.push_back(accel::one_row(number(Mem::Uop), loops.uop_begin, loops.uop_end, false));
  add_written(all.dst, loops, into);
  into.push_back(all.dst.range(Mem::Acc, loops, loops.dst_outer, loops.dst_inner, false));
  if (!alu.use_imm)
    into.push_back(all.src.range(Mem::Acc, loops, loops.src_outer, loops.src_inner, false));
}

void add_transfer(const Config& config, const Transfer& move, Footprint& into) {
  const auto bytes = static_cast<uint64_t>(config.element_bytes(move.mem));
  if (move.y_size > 0)
    into.push_back({kDramMemory, move.dram * bytes, move.x_stride * bytes, move.x_size * bytes,
                    move.y_size, move.store});
  const uint64_t width = uint64_t{move.x_pad_left} + move.x_size + move.x_pad_right;
  const uint64_t rows = uint64_t{move.y_pad_top} + move.y_size + move.y_pad_bottom;
  const uint64_t end = move.sram + width * rows;
  if (end == move.sram) return;
  into.push_back(accel::one_row(number(move.mem), move.sram, end, !move.store));
  // The published simulator stores what ACC holds, so a store reads both.
  if (move.store) into.push_back(accel::one_row(number(Mem::Acc), move.sram, end, false));
}

}  // namespace

accel::Footprint footprint(const Config& config, const Insn& insn, std::span<const Uop> uops) {
  Footprint into;
  if (const auto* move = std::get_if<Transfer>(&insn.op)) {
    if (move->moves()) add_transfer(config, *move, into);
    return into;
  }
  const auto* gemm = std::get_if<Gemm>(&insn.op);
  const auto* alu = std::get_if<Alu>(&insn.op);
  if (gemm == nullptr && alu == nullptr) return into;
  const Loops& loops = gemm != nullptr ? gemm->loops : alu->loops;
  TW_CHECK(loops.uop_begin <= loops.uop_end && loops.uop_end <= uops.size(), "micro-ops {}..{}",
           loops.uop_begin, loops.uop_end);
  if (loops.steps() == 0) return into;
  if (gemm != nullptr)
    add_gemm(*gemm, uops, into);
  else
    add_alu(*alu, uops, into);
  return into;
}

}  // namespace tilewright::vta
