// Random programs that every implementation must run alike, for tests: legal, race-free, portable
// (docs/vta.md), with everything in them that has a field: pads, strides, loops, micro-ops,
// immediate and register operations, empty transfers, tokens.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/vta/program.h"
#include "tilewright/accel/vta/testing/random_config.h"
#include "tilewright/accel/vta/testing/token_weaver.h"
#include "tilewright/base/check.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta::testing {

struct RandomProgramOptions {
  int insns = 30;      ///< per run, about; loads that fill the memories and no-ops come on top
  int runs = 1;        ///< launches; each but the first begins with new inputs
  int max_steps = 64;  ///< per GEMM and ALU instruction
  Weave weave = Weave::Random;
};

class RandomProgram {
 public:
  RandomProgram(Rng& rng, const Config& config, const RandomProgramOptions& options)
      : rng_(rng), config_(config), options_(options) {}

  Program make() {
    lay_out();
    Program program;
    program.config = config_;
    program.producer = "random";
    for (int run = 0; run < options_.runs; ++run) {
      program.runs.push_back(make_run());
      if (run > 0) program.runs.back().patches.push_back(new_inputs());
    }
    program.base = kBase;
    program.image = image_;
    append_uops(program.image);
    program.inputs.push_back({"inp", inp_area_.address, inp_area_.bytes});
    program.outputs.push_back({"out", out_area_.address, out_area_.bytes});
    return program;
  }

 private:
  static constexpr uint64_t kBase = 4096, kPage = 4096;
  static constexpr int64_t kAreaElements = 48;

  /// A part of DRAM, page-aligned.
  struct Area {
    uint64_t address = 0, bytes = 0;
  };
  /// The part of an on-chip memory that a program uses.
  struct Window {
    uint32_t begin = 0, size = 0;
  };
  /// Micro-ops that are in the micro-op memory.
  struct Kernel {
    uint32_t begin = 0;
    std::vector<Uop> uops;
  };
  /// One step of a GEMM or ALU instruction.
  struct Step {
    uint32_t dst, src, wgt;
  };
  /// Loops over micro-ops that are in the micro-op memory.
  struct Choice {
    Loops loops;
    std::vector<Uop> uops;
    std::vector<Step> steps;
  };

  uint32_t below(uint64_t n) { return static_cast<uint32_t>(rng_.below(static_cast<int64_t>(n))); }
  uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }

  // --- DRAM ------------------------------------------------------------------------------------

  Area add_area(Mem mem) {
    const Area area = {kBase + image_.size(),
                       static_cast<uint64_t>(kAreaElements * config_.element_bytes(mem))};
    const bool zeros = mem == Mem::Out, small = rng_.chance(0.5);
    for (uint64_t i = 0; i < area.bytes; ++i) {
      // Small numbers in ACC: every fourth byte and sign.
      const uint32_t byte = below(256);
      const bool keep = mem != Mem::Acc || !small || i % 4 == 0;
      image_ += static_cast<char>(zeros || !keep ? 0 : byte);
    }
    image_.resize((image_.size() + kPage - 1) / kPage * kPage);
    return area;
  }

  void lay_out() {
    inp_area_ = add_area(Mem::Inp);
    wgt_area_ = add_area(Mem::Wgt);
    acc_area_ = add_area(Mem::Acc);
    acc8_area_ = add_area(Mem::Acc8);
    out_area_ = add_area(Mem::Out);
    uop_address_ = kBase + image_.size();
  }

  void append_uops(std::string& image) const {
    for (const uint32_t word : uop_words_)
      for (int b = 0; b < 4; ++b) image += static_cast<char>(word >> (8 * b) & 0xff);
  }

  Patch new_inputs() {
    const uint64_t bytes = 1 + below(inp_area_.bytes);
    Patch patch = {inp_area_.address + below(inp_area_.bytes - bytes + 1), {}};
    for (uint64_t i = 0; i < bytes; ++i) patch.data += static_cast<char>(below(256));
    return patch;
  }

  // --- one run ---------------------------------------------------------------------------------

  Run make_run() {
    weaver_.emplace(config_, options_.weave, rng_);
    kernels_.clear();
    uops_.assign(static_cast<size_t>(config_.depth(Mem::Uop)), {});
    inp_ = window(Mem::Inp);
    wgt_ = window(Mem::Wgt);
    acc_ = window(Mem::Acc);
    fresh_.assign(acc_.size, false);
    fill(Mem::Inp, inp_);
    fill(Mem::Wgt, wgt_);
    fill(Mem::Acc, acc_);
    for (int i = 0; i < options_.insns; ++i) add_random();
    store();
    Run run;
    run.insns = weaver_->finish();
    const size_t middle = run.insns.size() / 2;
    run.spans = {{"first half", 0, middle}, {"second half", middle, run.insns.size()}};
    return run;
  }

  Window window(Mem mem) {
    const auto depth = static_cast<uint32_t>(config_.depth(mem));
    const uint32_t size = std::min(depth, between(6, 24));
    return {rng_.chance(0.3) ? depth - size : below(depth - size + 1), size};
  }

  void add(const Insn& insn) { weaver_->add(insn, uops_); }

  void add_random() {
    switch (below(12)) {
      case 0:
        return load(Mem::Inp, inp_);
      case 1:
        return load(Mem::Wgt, wgt_);
      case 2:
        return load(config_.has_acc8 && rng_.chance(0.5) ? Mem::Acc8 : Mem::Acc, acc_);
      case 3:
        return gemm(/*reset=*/true);
      case 4:
      case 5:
      case 6:
        return gemm(/*reset=*/false);
      case 7:
      case 8:
        return alu_imm();
      case 9:
        return alu_reg();
      case 10:
        return store();
      default:
        return add_empty();
    }
  }

  void add_empty() {
    Transfer move;
    move.store = rng_.chance(0.25);
    constexpr Mem kMems[] = {Mem::Uop, Mem::Wgt, Mem::Inp, Mem::Acc};
    move.mem = move.store ? Mem::Out : kMems[below(4)];
    move.y_size = below(3);
    move.sram = below(1000);
    move.dram = below(1000);
    add({{}, move});
  }

  // --- transfers -------------------------------------------------------------------------------

  void fill(Mem mem, Window window) {
    const uint32_t cut = below(window.size + 1);
    for (const auto& [begin, size] : {std::pair(0u, cut), std::pair(cut, window.size - cut)}) {
      if (size == 0) continue;
      Transfer move;
      move.mem = mem;
      move.sram = window.begin + begin;
      move.y_size = 1;
      move.x_size = move.x_stride = size;
      place(move, area_of(mem));
      add({{}, move});
    }
  }

  Area area_of(Mem mem) {
    switch (mem) {
      case Mem::Wgt:
        return wgt_area_;
      case Mem::Acc:
        return acc_area_;
      case Mem::Acc8:
        return acc8_area_;
      case Mem::Inp:
        // Results as inputs: stores that later loads depend on.
        if (rng_.chance(0.3)) return out_area_;
        return inp_area_;
      default:
        return out_area_;
    }
  }

  /// Chooses where in DRAM a transfer starts; its rows shrink to what an area holds.
  void place(Transfer& move, Area area) {
    const auto element = static_cast<uint64_t>(config_.element_bytes(move.mem));
    uint64_t elements = area.bytes / element;
    const auto needed = [&] {
      return move.y_size == 0 ? 0 : uint64_t{move.y_size - 1} * move.x_stride + move.x_size;
    };
    if (needed() > elements && move.mem == Mem::Inp) {
      area = inp_area_;
      elements = kAreaElements;
    }
    if (needed() > elements) move.x_stride = 0;  // every row the same elements
    TW_CHECK(needed() <= elements, "{} elements", needed());
    move.dram = static_cast<uint32_t>(area.address / element) + below(elements - needed() + 1);
  }

  void load(Mem mem, Window window) {
    Transfer move;
    move.mem = mem;
    const uint32_t skip = below(window.size), room = window.size - skip;
    const uint32_t width = between(1, std::min(room, 15u)), rows = between(1, room / width);
    move.sram = window.begin + skip;
    move.x_size = between(1, width);
    move.y_size = rows;
    if (mem != Mem::Wgt) {
      move.x_pad_left = below(width - move.x_size + 1);
      move.x_pad_right = width - move.x_size - move.x_pad_left;
      move.y_pad_top = below(std::min(rows, 15u) + 1);
      move.y_pad_bottom = below(std::min(rows - move.y_pad_top, 15u) + 1);
      move.y_size = rows - move.y_pad_top - move.y_pad_bottom;
    }
    move.x_stride = below(8);  // first: the order of drawing is the same with every compiler
    if (rng_.chance(0.8)) move.x_stride += move.x_size;
    place(move, area_of(mem));
    const uint32_t end = skip + move.sram_elements();
    add({{}, move});
    if (mem == Mem::Acc || mem == Mem::Acc8)
      for (uint32_t i = skip; i < end; ++i) fresh_[i] = false;
  }

  /// A range of elements that an ALU operation or an accumulation wrote last.
  void store() {
    std::vector<uint32_t> starts;
    for (uint32_t i = 0; i < acc_.size; ++i)
      if (fresh_[i]) starts.push_back(i);
    if (starts.empty()) return;
    const uint32_t first = starts[below(starts.size())];
    uint32_t count = 1;
    while (first + count < acc_.size && fresh_[first + count] && rng_.chance(0.9)) ++count;
    Transfer move;
    move.store = true;
    move.mem = Mem::Out;
    move.sram = acc_.begin + first;
    move.x_size = between(1, count);
    move.y_size = between(1, count / move.x_size);
    move.x_stride = move.x_size + below(4);
    while ((move.y_size - 1) * move.x_stride + move.x_size > kAreaElements) --move.y_size;
    place(move, out_area_);
    add({{}, move});
  }

  // --- arithmetic ------------------------------------------------------------------------------

  static std::vector<Step> steps_of(const Loops& loops, const std::vector<Uop>& uops) {
    std::vector<Step> steps;
    for (uint32_t o = 0; o < loops.outer; ++o)
      for (uint32_t i = 0; i < loops.inner; ++i)
        for (const Uop& uop : uops)
          steps.push_back({uop.dst + o * loops.dst_outer + i * loops.dst_inner,
                           uop.src + o * loops.src_outer + i * loops.src_inner,
                           uop.wgt + o * loops.wgt_outer + i * loops.wgt_inner});
    return steps;
  }

  /// What GEMM, immediate and register ALU operations have in common.
  enum class Form { Gemm, Imm, Reg };

  bool allowed(Form form, const std::vector<Step>& steps) const {
    const Window src = form == Form::Gemm ? inp_ : acc_;
    const auto in = [](Window w, uint32_t at) { return at >= w.begin && at - w.begin < w.size; };
    for (size_t t = 0; t < steps.size(); ++t) {
      const Step& step = steps[t];
      if (!in(acc_, step.dst) || !in(src, step.src)) return false;
      if (form == Form::Gemm && !in(wgt_, step.wgt)) return false;
      for (size_t later = t + 1; later < std::min(t + 3, steps.size()); ++later) {
        if (steps[later].dst == step.dst) return false;
        if (form == Form::Reg && steps[later].src == step.dst) return false;
      }
    }
    return true;
  }

  std::vector<Uop> random_uops(Form form, uint32_t count) {
    std::vector<Uop> uops(count);
    const bool rising = rng_.chance(0.5);
    const uint32_t first = below(acc_.size);
    for (uint32_t k = 0; k < count; ++k) {
      Uop& uop = uops[k];
      uop.dst = acc_.begin + (rising ? (first + k) % acc_.size : below(acc_.size));
      if (form == Form::Gemm) {
        uop.src = inp_.begin + below(inp_.size);
        uop.wgt = wgt_.begin + below(wgt_.size);
      } else {
        uop.src = form == Form::Imm ? uop.dst : acc_.begin + below(acc_.size);
      }
    }
    return uops;
  }

  Loops random_loops(Form form, uint32_t uops) {
    const auto most = static_cast<uint32_t>(options_.max_steps) / std::max(uops, 1u);
    Loops loops;
    loops.outer = between(1, std::max(1u, std::min(most, 4u)));
    loops.inner = between(1, std::max(1u, std::min(most / loops.outer, 5u)));
    const auto factor = [this](Window w) { return below(std::min(w.size, 6u)); };
    loops.dst_outer = factor(acc_);
    loops.dst_inner = factor(acc_);
    loops.src_outer = form == Form::Gemm ? factor(inp_) : factor(acc_);
    loops.src_inner = form == Form::Gemm ? factor(inp_) : factor(acc_);
    if (form == Form::Imm) {
      loops.src_outer = loops.dst_outer;
      loops.src_inner = loops.dst_inner;
    }
    if (form == Form::Gemm) {
      loops.wgt_outer = factor(wgt_);
      loops.wgt_inner = factor(wgt_);
    }
    return loops;
  }

  /// Loops over a kernel that is in the micro-op memory, or is put there.
  Choice choose(Form form) {
    for (int attempt = 0; attempt < 30; ++attempt) {
      const bool reuse = !kernels_.empty() && rng_.chance(0.4);
      const auto room = std::min(8u, static_cast<uint32_t>(uops_.size()));
      const std::vector<Uop> uops =
          reuse ? kernels_[below(kernels_.size())].uops : random_uops(form, between(1, room));
      const Loops loops = random_loops(form, static_cast<uint32_t>(uops.size()));
      std::vector<Step> steps = steps_of(loops, uops);
      const bool aside =
          form != Form::Imm ||
          std::all_of(uops.begin(), uops.end(), [](const Uop& u) { return u.src == u.dst; });
      if (aside && allowed(form, steps)) return {with_kernel(loops, uops), uops, std::move(steps)};
    }
    const std::vector<Uop> one = random_uops(form, 1);
    return {with_kernel({}, one), one, steps_of({}, one)};
  }

  Loops with_kernel(Loops loops, const std::vector<Uop>& uops) {
    for (const Kernel& kernel : kernels_)
      if (kernel.uops == uops && rng_.chance(0.8)) return at(loops, kernel);
    Kernel kernel;
    kernel.uops = uops;
    kernel.begin = below(uops_.size() - uops.size() + 1);
    load_uops(kernel);
    return at(loops, kernel);
  }
  static Loops at(Loops loops, const Kernel& kernel) {
    loops.uop_begin = kernel.begin;
    loops.uop_end = kernel.begin + static_cast<uint32_t>(kernel.uops.size());
    return loops;
  }

  void load_uops(const Kernel& kernel) {
    const auto size = static_cast<uint32_t>(kernel.uops.size());
    const auto overlaps = [&](const Kernel& other) {
      return other.begin < kernel.begin + size && kernel.begin < other.begin + other.uops.size();
    };
    std::erase_if(kernels_, overlaps);
    kernels_.push_back(kernel);
    Transfer move;
    move.mem = Mem::Uop;
    move.sram = kernel.begin;
    move.dram = static_cast<uint32_t>(uop_address_ / 4 + uop_words_.size());
    move.y_size = 1;
    move.x_size = size;
    move.x_stride = rng_.chance(0.5) ? size : below(100);
    add({{}, move});
    for (uint32_t k = 0; k < size; ++k) {
      uop_words_.push_back(encode(config_, kernel.uops[k]));
      uops_[kernel.begin + k] = kernel.uops[k];
    }
  }

  void mark(const std::vector<Step>& steps, bool fresh) {
    for (const Step& step : steps) fresh_[step.dst - acc_.begin] = fresh;
  }

  void gemm(bool reset) {
    const Choice choice = choose(Form::Gemm);
    const bool first = !reset && config_.extensions.fused_reset && rng_.chance(0.4);
    add({{}, Gemm{reset, first, choice.loops}});
    mark(choice.steps, !reset);
  }

  void alu_imm() {
    const Choice choice = choose(Form::Imm);
    const int kinds = config_.has_mul ? 5 : 4;
    const auto op = static_cast<AluOp>(below(static_cast<uint64_t>(kinds)));
    int64_t imm = rng_.between(-32768, 32767);
    if (rng_.chance(0.6)) imm = rng_.between(-128, 127);
    if (op == AluOp::Shr) imm = rng_.between(-16, 15);
    add({{}, Alu{op, true, static_cast<int16_t>(imm), choice.loops}});
    mark(choice.steps, true);
  }

  void alu_reg() {
    Choice choice = choose(Form::Reg);
    auto op = static_cast<AluOp>(below(config_.has_mul ? 5 : 4));
    if (op == AluOp::Shr && !make_amounts(choice.steps)) op = AluOp::Add;
    // The amounts' own instructions may have taken the kernel's place.
    if (op == AluOp::Shr) choice.loops = with_kernel(choice.loops, choice.uops);
    add({{}, Alu{op, false, static_cast<int16_t>(below(100)), choice.loops}});
    mark(choice.steps, true);
  }

  /// Clips the sources of shifts to 0..15. Not possible where a shift changes a later one's amount.
  bool make_amounts(const std::vector<Step>& steps) {
    std::set<uint32_t> sources, targets;
    for (const Step& step : steps) {
      sources.insert(step.src);
      targets.insert(step.dst);
    }
    for (const uint32_t source : sources)
      if (targets.count(source) != 0) return false;
    if (sources.size() > uops_.size()) return false;
    std::vector<Uop> uops;
    for (const uint32_t source : sources) uops.push_back({source, source, 0});
    const Loops loops = with_kernel({}, uops);
    add({{}, Alu{AluOp::Max, true, 0, loops}});
    add({{}, Alu{AluOp::Min, true, 15, loops}});
    for (const uint32_t source : sources) fresh_[source - acc_.begin] = true;
    return true;
  }

  Rng& rng_;
  const Config config_;
  const RandomProgramOptions options_;
  std::string image_;
  Area inp_area_, wgt_area_, acc_area_, acc8_area_, out_area_;
  uint64_t uop_address_ = 0;
  std::vector<uint32_t> uop_words_;

  std::optional<TokenWeaver> weaver_;
  Window inp_, wgt_, acc_;
  std::vector<bool> fresh_;
  std::vector<Uop> uops_;  ///< contents of the micro-op memory
  std::vector<Kernel> kernels_;
};

inline Program random_program(Rng& rng, const Config& config,
                              const RandomProgramOptions& options = {}) {
  return RandomProgram(rng, config, options).make();
}

}  // namespace tilewright::vta::testing
