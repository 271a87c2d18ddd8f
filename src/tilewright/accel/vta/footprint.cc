#include "tilewright/accel/vta/footprint.h"

#include <algorithm>
#include <limits>

#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

uint32_t saturate(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
}

/// Least and largest index of one operand over the micro-ops, and how far the loops move it.
struct Hull {
  uint64_t low = std::numeric_limits<uint64_t>::max(), high = 0;

  void add(uint32_t index) {
    low = std::min<uint64_t>(low, index);
    high = std::max<uint64_t>(high, index);
  }
  SramRange range(Mem mem, const Loops& loops, uint32_t outer, uint32_t inner, bool write) const {
    const uint64_t reach = uint64_t{loops.outer - 1} * outer + uint64_t{loops.inner - 1} * inner;
    return {mem, saturate(low), saturate(high + reach + 1), write};
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

void add_written(const Hull& dst, const Loops& loops, std::vector<SramRange>& sram) {
  sram.push_back(dst.range(Mem::Acc, loops, loops.dst_outer, loops.dst_inner, true));
  sram.push_back(dst.range(Mem::Out, loops, loops.dst_outer, loops.dst_inner, true));
}

void add_gemm(const Gemm& gemm, std::span<const Uop> uops, std::vector<SramRange>& sram) {
  const Loops& loops = gemm.loops;
  const Hulls all = hulls(loops, uops);
  sram.push_back({Mem::Uop, loops.uop_begin, loops.uop_end, false});
  add_written(all.dst, loops, sram);
  if (gemm.reset) return;
  sram.push_back(all.dst.range(Mem::Acc, loops, loops.dst_outer, loops.dst_inner, false));
  sram.push_back(all.src.range(Mem::Inp, loops, loops.src_outer, loops.src_inner, false));
  sram.push_back(all.wgt.range(Mem::Wgt, loops, loops.wgt_outer, loops.wgt_inner, false));
}

void add_alu(const Alu& alu, std::span<const Uop> uops, std::vector<SramRange>& sram) {
  const Loops& loops = alu.loops;
  const Hulls all = hulls(loops, uops);
  sram.push_back({Mem::Uop, loops.uop_begin, loops.uop_end, false});
  add_written(all.dst, loops, sram);
  sram.push_back(all.dst.range(Mem::Acc, loops, loops.dst_outer, loops.dst_inner, false));
  if (!alu.use_imm)
    sram.push_back(all.src.range(Mem::Acc, loops, loops.src_outer, loops.src_inner, false));
}

void add_transfer(const Config& config, const Transfer& move, Footprint& into) {
  const auto bytes = static_cast<uint64_t>(config.element_bytes(move.mem));
  if (move.y_size > 0)
    into.dram.push_back(
        {move.dram * bytes, move.x_stride * bytes, move.x_size * bytes, move.y_size, move.store});
  const uint64_t width = uint64_t{move.x_pad_left} + move.x_size + move.x_pad_right;
  const uint64_t rows = uint64_t{move.y_pad_top} + move.y_size + move.y_pad_bottom;
  const uint32_t end = saturate(move.sram + width * rows);
  if (end == move.sram) return;
  const Mem mem = move.mem == Mem::Acc8 ? Mem::Acc : move.mem;
  into.sram.push_back({mem, move.sram, end, !move.store});
  // The published simulator stores what ACC holds, so a store reads both.
  if (move.store) into.sram.push_back({Mem::Acc, move.sram, end, false});
}

bool overlap(uint64_t a_begin, uint64_t a_end, uint64_t b_begin, uint64_t b_end) {
  return a_begin < b_end && b_begin < a_end;
}

uint64_t last_end(const DramRows& rows) {
  return rows.address + (rows.rows - 1) * rows.pitch + rows.width;
}

/// Whether a row of `rows` has a byte in [begin, end).
bool hits(const DramRows& rows, uint64_t begin, uint64_t end) {
  if (!overlap(rows.address, last_end(rows), begin, end)) return false;
  if (rows.pitch <= rows.width) return true;  // no gaps between the rows
  // The last row that starts before `end` is the only one that can reach furthest.
  const uint64_t row = std::min<uint64_t>((end - 1 - rows.address) / rows.pitch, rows.rows - 1);
  return rows.address + row * rows.pitch + rows.width > begin;
}

}  // namespace

Footprint footprint(const Config& config, const Insn& insn, std::span<const Uop> uops) {
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
    add_gemm(*gemm, uops, into.sram);
  else
    add_alu(*alu, uops, into.sram);
  return into;
}

bool conflict(const SramRange& a, const SramRange& b) {
  return a.mem == b.mem && (a.write || b.write) && overlap(a.begin, a.end, b.begin, b.end);
}

bool conflict(const DramRows& a, const DramRows& b) {
  if (!(a.write || b.write) || a.rows == 0 || b.rows == 0 || a.width == 0 || b.width == 0)
    return false;
  if (!overlap(a.address, last_end(a), b.address, last_end(b))) return false;
  const DramRows& few = a.rows <= b.rows ? a : b;
  const DramRows& many = a.rows <= b.rows ? b : a;
  for (uint32_t row = 0; row < few.rows; ++row) {
    const uint64_t begin = few.address + row * few.pitch;
    if (hits(many, begin, begin + few.width)) return true;
  }
  return false;
}

bool conflict(const Footprint& a, const Footprint& b) {
  for (const SramRange& x : a.sram)
    for (const SramRange& y : b.sram)
      if (conflict(x, y)) return true;
  for (const DramRows& x : a.dram)
    for (const DramRows& y : b.dram)
      if (conflict(x, y)) return true;
  return false;
}

}  // namespace tilewright::vta
