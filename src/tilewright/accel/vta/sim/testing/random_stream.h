// For tests: random streams that are right in stream order, made safe by one chain of tokens.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tilewright/accel/vta/isa.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta::testing {

/// An instruction that only passes tokens, on any module.
inline Insn no_op(Module module) {
  Transfer t;
  t.store = module == Module::Store;
  t.mem = module == Module::Store     ? Mem::Out
          : module == Module::Load    ? Mem::Inp
          : module == Module::Compute ? Mem::Uop
                                      : Mem::Acc;
  return {{}, t};
}

/// Orders all instructions one after the other: a token wherever the module changes, handed on by
/// no-ops where the modules are not neighbours.
inline std::vector<Insn> serialise(const Config& config, const std::vector<Insn>& insns) {
  const std::vector<Module> chain = modules(config);
  const auto place = [&](const Insn& insn) {
    size_t at = 0;
    while (chain[at] != module_of(config, insn)) ++at;
    return at;
  };
  std::vector<Insn> out;
  size_t from = 0;
  for (const Insn& insn : insns) {
    const size_t to = place(insn);
    if (out.empty()) from = to;
    if (from == to) out.push_back(insn);
    while (from != to) {
      const bool down = from < to;
      from = down ? from + 1 : from - 1;
      (down ? out.back().deps.push_next : out.back().deps.push_prev) = true;
      out.push_back(from == to ? insn : no_op(chain[from]));
      (down ? out.back().deps.pop_prev : out.back().deps.pop_next) = true;
    }
  }
  return out;
}

struct RandomStream {
  std::string dram;  ///< from address 0
  std::vector<Insn> insns;
};

/// Draws instructions of all kinds. Results of every step reach DRAM now and then.
class StreamMaker {
 public:
  StreamMaker(Rng& rng, const Config& config) : rng_(rng), config_(config) {
    dram_.resize(kDram);
    for (char& c : dram_) c = static_cast<char>(rng.next());
  }

  RandomStream make(int length) {
    // Mostly a small window of each memory, so that instructions meet each other's results.
    window_ = rng_.chance(0.8) ? 24 : int64_t{1} << 20;
    for (const Mem mem : {Mem::Wgt, Mem::Inp, Mem::Acc}) fill(mem);
    for (int i = 0; i < length; ++i) any();
    fill(Mem::Out);
    insns_.push_back({{}, Finish{}});
    return {dram_, serialise(config_, insns_)};
  }

 private:
  static constexpr size_t kDram = 1 << 18, kUops = 1 << 16;
  static constexpr int64_t kReach = 24;  ///< elements from the first to the last of a transfer

  uint32_t below(int64_t n) { return static_cast<uint32_t>(rng_.below(n)); }
  void add(std::variant<Transfer, Gemm, Alu, Finish> op) { insns_.push_back({{}, op}); }

  void any() {
    switch (below(8)) {
      case 0:
        return load(Mem::Inp);
      case 1:
        return load(Mem::Wgt);
      case 2:
        return load(config_.has_acc8 && rng_.chance(0.5) ? Mem::Acc8 : Mem::Acc);
      case 3:
      case 4:
        return gemm();
      case 5:
        return alu();
      case 6:
        return shift();
      default:
        return store();
    }
  }

  /// A box that fits SRAM and DRAM, with padding now and then.
  void load(Mem mem) {
    Transfer t;
    t.mem = mem;
    t.y_size = below(4);
    t.x_size = below(5);
    if (rng_.chance(0.5)) {
      t.y_pad_top = below(3), t.y_pad_bottom = below(3);
      t.x_pad_left = below(3), t.x_pad_right = below(3);
    }
    place(t);
  }
  void store() {
    Transfer t;
    t.store = true;
    t.mem = Mem::Out;
    t.y_size = below(4);
    t.x_size = 1 + below(4);
    place(t);
  }
  /// The whole window, in one row.
  void fill(Mem mem) {
    Transfer t;
    t.store = mem == Mem::Out;
    t.mem = mem;
    t.y_size = 1;
    t.x_size = static_cast<uint32_t>(std::min<int64_t>(depth(mem), 24));
    place(t);
  }
  void place(Transfer t) {
    const int64_t depth = this->depth(t.mem);
    while (t.sram_elements() > depth) t.y_size /= 2, t.x_size /= 2, t.y_pad_top = 0;
    t.x_stride = below(6);
    t.sram = below(depth - t.sram_elements() + 1);
    const int64_t elements = static_cast<int64_t>(kDram) / config_.element_bytes(t.mem);
    // Stores stay away from the micro-ops.
    const int64_t least = t.store ? kUops / config_.element_bytes(t.mem) : 0;
    t.dram = static_cast<uint32_t>(least + below(elements - least - kReach));
    add(t);
  }

  /// Factors and bases so that all steps stay below `depth`.
  void axis(int64_t depth, const Loops& loops, uint32_t& outer, uint32_t& inner, uint32_t& base) {
    outer = below(std::max<int64_t>(1, depth / 4 / loops.outer));
    inner = below(std::max<int64_t>(1, depth / 4 / loops.inner));
    base = static_cast<uint32_t>(depth) - (loops.outer - 1) * outer - (loops.inner - 1) * inner;
  }
  uint32_t count(double zero) { return rng_.chance(zero) ? 0 : 1 + below(4); }

  /// Loads random micro-ops for `loops` below the limits and fills the range in.
  void uops(Loops& loops, const Uop& limit) {
    const uint32_t n = std::min<uint32_t>(1 + below(5), static_cast<uint32_t>(depth(Mem::Uop)));
    Transfer t;
    t.mem = Mem::Uop;
    t.y_size = 1;
    t.x_size = n;
    t.sram = below(depth(Mem::Uop) - n + 1);
    t.dram = next_uop_;
    next_uop_ += n;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t word =
          encode(config_, Uop{below(limit.dst), below(limit.src), below(limit.wgt)});
      std::memcpy(dram_.data() + (t.dram + i) * 4, &word, 4);
    }
    loops.uop_begin = t.sram + (rng_.chance(0.2) ? below(n) : 0);
    loops.uop_end = t.sram + n;
    add(t);
  }
  int64_t depth(Mem mem) const { return std::min(config_.depth(mem), window_); }

  Loops counts() {
    Loops loops;
    loops.outer = count(0.05);
    loops.inner = count(0.05);
    return loops;
  }
  void gemm() {
    Gemm g;
    g.reset = rng_.chance(0.2);
    g.replace_first = config_.extensions.fused_reset && rng_.chance(0.4);
    g.loops = counts();
    Loops& l = g.loops;
    const Loops bound{0, 0, std::max(l.outer, 1u), std::max(l.inner, 1u)};
    Uop limit;
    axis(depth(Mem::Acc), bound, l.dst_outer, l.dst_inner, limit.dst);
    axis(depth(Mem::Inp), bound, l.src_outer, l.src_inner, limit.src);
    axis(depth(Mem::Wgt), bound, l.wgt_outer, l.wgt_inner, limit.wgt);
    uops(l, limit);
    add(g);
  }
  void alu() {
    Alu a;
    const AluOp ops[] = {AluOp::Min, AluOp::Max, AluOp::Add, AluOp::Mul, AluOp::Shr};
    a.use_imm = rng_.chance(0.5);
    a.op = ops[below(a.use_imm ? 5 : 4)];
    if (a.op == AluOp::Mul && !config_.has_mul) a.op = AluOp::Add;
    a.imm = a.op == AluOp::Shr ? static_cast<int16_t>(rng_.between(-31, 31))
                               : static_cast<int16_t>(rng_.next());
    a.loops = counts();
    Loops& l = a.loops;
    const Loops bound{0, 0, std::max(l.outer, 1u), std::max(l.inner, 1u)};
    Uop limit{0, 0, 1};
    axis(depth(Mem::Acc), bound, l.dst_outer, l.dst_inner, limit.dst);
    axis(depth(Mem::Acc), bound, l.src_outer, l.src_inner, limit.src);
    uops(l, limit);
    add(a);
  }
  /// One step with micro-op `uop` and without loops.
  Loops single(const Uop& uop) {
    Loops l;
    uops(l, {1, 1, 1});
    const Transfer& t = std::get<Transfer>(insns_.back().op);
    l.uop_begin = t.sram;
    l.uop_end = t.sram + 1;
    const uint32_t word = encode(config_, uop);
    std::memcpy(dram_.data() + t.dram * 4, &word, 4);
    return l;
  }
  /// A register shift by an element whose lanes are clipped to -31..31 just before.
  void shift() {
    const uint32_t amount = below(depth(Mem::Acc)), dst = below(depth(Mem::Acc));
    const Loops clip = single({amount, amount, 0});
    add(Alu{AluOp::Min, true, 31, clip});
    add(Alu{AluOp::Max, true, -31, clip});
    add(Alu{AluOp::Shr, false, 0, single({dst, amount, 0})});
  }

  Rng& rng_;
  const Config& config_;
  std::string dram_;
  std::vector<Insn> insns_;
  int64_t window_ = 0;      ///< elements of each memory in use
  uint32_t next_uop_ = 64;  ///< in DRAM; units: words
};

}  // namespace tilewright::vta::testing
