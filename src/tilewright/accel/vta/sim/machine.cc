#include "tilewright/accel/vta/sim/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tilewright/accel/vta/sim/kernels.h"
#include "tilewright/accel/vta/sim/stream.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {

Machine::Machine(const Config& config, uint64_t dram_bytes)
    : config_(config),
      acc_scalars_(config.element_scalars(Mem::Acc)),
      pairs_((config.block_in() + 1) / 2),
      out_bytes_(static_cast<size_t>(config.element_bytes(Mem::Out))),
      dram_bytes_(dram_bytes),
      // calloc: pages that are never touched cost nothing.
      dram_(static_cast<uint8_t*>(std::calloc(std::max<uint64_t>(dram_bytes, 1), 1))) {
  TW_CHECK(dram_ != nullptr, "no {} bytes for the simulated DRAM", dram_bytes);
  inp_stride_ = static_cast<size_t>(config.batch()) * pairs_ * 2;
  wgt_stride_ = static_cast<size_t>(config.block_out()) * pairs_ * 2;
  uop_.resize(config.depth(Mem::Uop));
  inp_.resize(config.depth(Mem::Inp) * inp_stride_);
  wgt_.resize(config.depth(Mem::Wgt) * wgt_stride_);
  tile_.resize(config.element_scalars(Mem::Wgt));
  acc_.resize(config.depth(Mem::Acc) * acc_scalars_);
  out_.resize(config.depth(Mem::Out) * out_bytes_);
  mirrored_.resize(config.depth(Mem::Acc));
}

Status Machine::check_dram(uint64_t address, uint64_t bytes, const char* verb) const {
  if (address <= dram_bytes_ && bytes <= dram_bytes_ - address) return {};
  return fail(ErrorKind::Invalid, fmt::format("{} beyond the end of DRAM", verb),
              fmt::format("bytes {}..{} of {}", address, address + bytes, dram_bytes_));
}

Status Machine::write(uint64_t address, std::string_view bytes) {
  TW_TRY_STATUS(check_dram(address, bytes.size(), "the host writes"));
  if (!bytes.empty()) std::memcpy(dram() + address, bytes.data(), bytes.size());
  return {};
}

Status Machine::read(uint64_t address, char* into, uint64_t bytes) const {
  TW_TRY_STATUS(check_dram(address, bytes, "the host reads"));
  if (bytes > 0) std::memcpy(into, dram() + address, bytes);
  return {};
}

Status Machine::run(const Insn& insn) {
  if (const auto* transfer = std::get_if<Transfer>(&insn.op)) {
    if (!transfer->moves()) return {};
    return transfer->store ? store(*transfer) : load(*transfer);
  }
  if (const auto* one = std::get_if<Gemm>(&insn.op)) return gemm(*one);
  if (const auto* one = std::get_if<Alu>(&insn.op)) return alu(*one);
  return {};
}

void Machine::settle_out(size_t begin, size_t count) {
  for (size_t a = begin; a < begin + count; ++a) {
    if (!mirrored_[a]) continue;
    pack(&acc_[a * acc_scalars_], config_.out_bits(), acc_scalars_, out_element(a));
    mirrored_[a] = 0;
  }
}

void Machine::clear(Mem mem, size_t begin, size_t count) {
  switch (mem) {
    case Mem::Uop:
      std::fill_n(uop_.begin() + begin, count, Uop{});
      return;
    case Mem::Inp:
      std::fill_n(inp_.begin() + begin * inp_stride_, count * inp_stride_, 0);
      return;
    case Mem::Wgt:
      std::fill_n(wgt_.begin() + begin * wgt_stride_, count * wgt_stride_, 0);
      return;
    case Mem::Acc:
    case Mem::Acc8:
      settle_out(begin, count);
      std::fill_n(acc_.begin() + begin * acc_scalars_, count * acc_scalars_, 0);
      return;
    case Mem::Out:
      TW_CHECK(false, "load of out");
  }
}

/// Transposes into pairs along block_in: the lanes of one pair lie side by side.
void Machine::fill_wgt(size_t element, const uint8_t* bytes) {
  const int lanes = config_.block_out(), block_in = config_.block_in();
  int16_t* into = &wgt_[element * wgt_stride_];
  unpack(bytes, config_.wgt_bits(), static_cast<int64_t>(lanes) * block_in, tile_.data());
  if (block_in == 1) {
    for (int l = 0; l < lanes; ++l) into[2 * l] = tile_[l];
    return;
  }
  for (int p = 0; p < pairs_; ++p)
    for (int l = 0; l < lanes; ++l)
      std::memcpy(into + 2 * (p * lanes + l), &tile_[l * block_in + 2 * p], 2 * sizeof(int16_t));
}

void Machine::fill(Mem mem, size_t begin, size_t count, const uint8_t* bytes) {
  const size_t step = static_cast<size_t>(config_.element_bytes(mem));
  switch (mem) {
    case Mem::Uop:
      for (size_t i = 0; i < count; ++i) {
        int32_t word = 0;
        copy_words(bytes + 4 * i, 1, &word);
        uop_[begin + i] = decode_uop(config_, static_cast<uint32_t>(word));
      }
      return;
    case Mem::Inp: {
      const int64_t scalars = config_.element_scalars(mem) * static_cast<int64_t>(count);
      int16_t* into = &inp_[begin * inp_stride_];
      unpack(bytes, config_.inp_bits(), scalars, into);
      if (config_.block_in() == 1)  // a zero after each: from the back, in place
        for (int64_t i = scalars - 1; i >= 0; --i) {
          into[2 * i] = into[i];
          into[2 * i + 1] = 0;
        }
      return;
    }
    case Mem::Wgt:
      for (size_t i = 0; i < count; ++i) fill_wgt(begin + i, bytes + i * step);
      return;
    case Mem::Acc:
      settle_out(begin, count);
      copy_words(bytes, static_cast<int64_t>(count) * acc_scalars_, &acc_[begin * acc_scalars_]);
      return;
    case Mem::Acc8: {
      settle_out(begin, count);
      int32_t* into = &acc_[begin * acc_scalars_];
      for (size_t i = 0; i < count * acc_scalars_; ++i) into[i] = static_cast<int8_t>(bytes[i]);
      return;
    }
    case Mem::Out:
      TW_CHECK(false, "load of out");
  }
}

Status Machine::load(const Transfer& t) {
  const uint64_t step = static_cast<uint64_t>(config_.element_bytes(t.mem));
  const size_t width = t.sram_width();
  size_t to = t.sram;
  clear(t.mem, to, t.y_pad_top * width);
  to += t.y_pad_top * width;
  for (uint64_t y = 0; y < t.y_size; ++y) {
    const uint64_t address = (t.dram + y * t.x_stride) * step & 0xffffffffu;
    TW_TRY_STATUS(check_dram(address, t.x_size * step, "reads"));
    clear(t.mem, to, t.x_pad_left);
    fill(t.mem, to + t.x_pad_left, t.x_size, dram() + address);
    clear(t.mem, to + t.x_pad_left + t.x_size, t.x_pad_right);
    to += width;
  }
  clear(t.mem, to, t.y_pad_bottom * width);
  return {};
}

Status Machine::store(const Transfer& t) {
  for (uint64_t y = 0; y < t.y_size; ++y) {
    const uint64_t address = (t.dram + y * t.x_stride) * out_bytes_ & 0xffffffffu;
    TW_TRY_STATUS(check_dram(address, t.x_size * out_bytes_, "writes"));
    for (uint64_t x = 0; x < t.x_size; ++x) {
      const size_t from = t.sram + y * t.x_size + x;
      uint8_t* into = dram() + address + x * out_bytes_;
      if (mirrored_[from])
        pack(&acc_[from * acc_scalars_], config_.out_bits(), acc_scalars_, into);
      else
        std::memcpy(into, out_element(from), out_bytes_);
    }
  }
  return {};
}

/// Factors are never negative, so the last iterations reach furthest.
Status Machine::check_indices(const Loops& loops, bool source, bool weight, Mem source_mem) const {
  Uop last;
  for (uint32_t k = loops.uop_begin; k < loops.uop_end; ++k) {
    last.dst = std::max(last.dst, uop_[k].dst);
    last.src = std::max(last.src, uop_[k].src);
    last.wgt = std::max(last.wgt, uop_[k].wgt);
  }
  const auto check = [&](Mem mem, const char* what, uint64_t base, uint64_t outer,
                         uint64_t inner) -> Status {
    const uint64_t reach = base + (loops.outer - 1) * outer + (loops.inner - 1) * inner;
    if (reach < static_cast<uint64_t>(config_.depth(mem))) return {};
    return fail(ErrorKind::Invalid,
                fmt::format("has a {} index beyond the end of {}", what, name(mem)),
                fmt::format("element {} of {}", reach, config_.depth(mem)));
  };
  TW_TRY_STATUS(check(Mem::Acc, "destination", last.dst, loops.dst_outer, loops.dst_inner));
  if (source)
    TW_TRY_STATUS(check(source_mem, "source", last.src, loops.src_outer, loops.src_inner));
  if (weight) TW_TRY_STATUS(check(Mem::Wgt, "weight", last.wgt, loops.wgt_outer, loops.wgt_inner));
  return {};
}

Status Machine::gemm(const Gemm& gemm) {
  const Loops& loops = gemm.loops;
  if (loops.steps() == 0) return {};
  TW_TRY_STATUS(check_indices(loops, !gemm.reset, !gemm.reset, Mem::Inp));
  const int rows = config_.batch(), lanes = config_.block_out();
  for (uint32_t o = 0; o < loops.outer; ++o)
    for (uint32_t i = 0; i < loops.inner; ++i) {
      const size_t dst = size_t{o} * loops.dst_outer + size_t{i} * loops.dst_inner;
      const size_t src = size_t{o} * loops.src_outer + size_t{i} * loops.src_inner;
      const size_t wgt = size_t{o} * loops.wgt_outer + size_t{i} * loops.wgt_inner;
      const bool replace = gemm.replace_first && o == 0;
      for (uint32_t k = loops.uop_begin; k < loops.uop_end; ++k) {
        const Uop& uop = uop_[k];
        int32_t* acc = &acc_[(uop.dst + dst) * acc_scalars_];
        mirrored_[uop.dst + dst] = 1;
        if (gemm.reset) {
          std::fill_n(acc, acc_scalars_, 0);
          continue;
        }
        const int16_t* x = &inp_[(uop.src + src) * inp_stride_];
        const int16_t* w = &wgt_[(uop.wgt + wgt) * wgt_stride_];
        for (int b = 0; b < rows; ++b)
          accumulate(acc + b * lanes, x + b * 2 * pairs_, w, pairs_, lanes, replace);
      }
    }
  return {};
}

Status Machine::alu_step(const Alu& alu, uint32_t dst, uint32_t src) {
  int32_t* to = &acc_[dst * acc_scalars_];
  const int32_t* from = &acc_[src * acc_scalars_];
  const int lanes = static_cast<int>(acc_scalars_);
  mirrored_[dst] = 1;
  if (alu.use_imm) {
    alu_imm(alu.op, to, alu.imm, lanes);
    return {};
  }
  if (alu.op == AluOp::Shr)
    if (const int lane = bad_shift(from, lanes); lane >= 0)
      return fail(ErrorKind::Invalid, fmt::format("shifts by {}", from[lane]),
                  fmt::format("amounts lie in -31..31; lane {} of acc element {}", lane, src));
  vta::alu(alu.op, to, from, lanes);
  return {};
}

Status Machine::alu(const Alu& alu) {
  const Loops& loops = alu.loops;
  if (loops.steps() == 0) return {};
  // The source index counts even where an immediate makes it unused, as upstream.
  TW_TRY_STATUS(check_indices(loops, true, false, Mem::Acc));
  for (uint32_t o = 0; o < loops.outer; ++o)
    for (uint32_t i = 0; i < loops.inner; ++i)
      for (uint32_t k = loops.uop_begin; k < loops.uop_end; ++k)
        TW_TRY_STATUS(alu_step(alu, uop_[k].dst + o * loops.dst_outer + i * loops.dst_inner,
                               uop_[k].src + o * loops.src_outer + i * loops.src_inner));
  return {};
}

Status run_at(Machine& machine, const std::vector<Insn>& insns, size_t index) {
  Status done = machine.run(insns[index]);
  if (!done)
    done.error().what =
        fmt::format("{} {}", describe(machine.config(), insns, index), done.error().what);
  return done;
}

}  // namespace tilewright::vta
