#include "tilewright/accel/vta/sim/timing.h"

namespace tilewright::vta {

Bursts::Bursts(const Timing& timing, uint64_t address, uint64_t bytes)
    : block_(static_cast<uint64_t>(timing.max_burst_beats) * timing.bus_bytes),
      base_(address),
      width_(bytes),
      rows_(bytes > 0) {
  begin_row();
}

Bursts::Bursts(const Config& config, const Transfer& t)
    : block_(static_cast<uint64_t>(config.timing.max_burst_beats) * config.timing.bus_bytes) {
  const uint64_t step = static_cast<uint64_t>(config.element_bytes(t.mem));
  base_ = t.dram * step;
  pitch_ = t.x_stride * step;
  width_ = t.x_size * step;
  rows_ = t.moves() ? t.y_size : 0;
  begin_row();
}

Burst Bursts::next() {
  const Burst burst{at_, std::min(row_end_, at_ / block_ * block_ + block_)};
  at_ = burst.end;
  if (at_ == row_end_) {
    ++row_;
    begin_row();
  }
  return burst;
}

bool reads(const Insn& insn) {
  const auto* t = std::get_if<Transfer>(&insn.op);
  return t && !t->store && t->moves() && (t->y_size | t->y_pad_top | t->y_pad_bottom) != 0;
}

uint64_t pad_elements(const Transfer& t) {
  return uint64_t{t.sram_width()} * (t.y_pad_top + t.y_pad_bottom) +
         uint64_t{t.y_size} * (t.x_pad_left + t.x_pad_right);
}

uint64_t store_cycles(const Config& config, const Transfer& t) {
  const Timing& timing = config.timing;
  const uint64_t element = static_cast<uint64_t>(config.element_bytes(Mem::Out));
  const uint64_t beats = std::max<uint64_t>(1, element / timing.bus_bytes);
  uint64_t cycles = uint64_t{t.x_size} * t.y_size * (beats + timing.store_element_extra);
  for (Bursts bursts(config, t); !bursts.done(); bursts.next()) cycles += timing.store_row_overhead;
  return cycles;
}

uint64_t step_cycles(const Config& config, const Insn& insn) {
  const Timing& timing = config.timing;
  const auto cycles = [&](const Loops& loops, uint64_t ii) {
    return loops.steps() * ii + uint64_t{loops.outer} * loops.inner * timing.loop_fill;
  };
  if (const auto* gemm = std::get_if<Gemm>(&insn.op)) return cycles(gemm->loops, timing.gemm_ii);
  if (const auto* alu = std::get_if<Alu>(&insn.op))
    return cycles(alu->loops, alu->use_imm ? timing.alu_imm_ii : alu_reg_ii(config));
  return 0;
}

uint64_t fixed_cycles(const Config& config, const Insn& insn) {
  const Timing& timing = config.timing;
  if (const auto* t = std::get_if<Transfer>(&insn.op)) {
    const bool empty = !t->moves() || t->y_size == 0;
    return t->store && !empty ? 2 + store_cycles(config, *t) : timing.empty;
  }
  if (std::holds_alternative<Gemm>(insn.op))
    return step_cycles(config, insn) + timing.gemm_overhead;
  if (std::holds_alternative<Alu>(insn.op)) return step_cycles(config, insn) + timing.alu_overhead;
  return timing.finish;
}

uint64_t alone_cycles(const Config& config, const Insn& insn) {
  if (!reads(insn)) return fixed_cycles(config, insn);
  const auto& transfer = std::get<Transfer>(insn.op);
  const uint64_t first = request_cycle(config.timing, 0);
  ReadPort port;
  uint64_t at = first, beats = 0, last = 0;
  for (Bursts bursts(config, transfer); !bursts.done();) {
    const uint64_t n = bursts.next().beats(config.timing);
    last = port.grant(config.timing, std::max(at, port.place_free), n);
    beats += n;
    at = 0;
  }
  return load_end(first, last, pad_elements(transfer), beats);
}

}  // namespace tilewright::vta
