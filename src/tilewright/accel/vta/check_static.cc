#include "tilewright/accel/vta/check_static.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::vta::check_detail {
namespace {

constexpr uint64_t kAcc8Limit = uint64_t{1} << 30;  // where the published simulator wraps

class Notes {
 public:
  Notes(std::vector<Note>& notes, bool portable) : notes_(notes), portable_(portable) {}
  void error(Rule rule, std::string text) { notes_.push_back({rule, true, std::move(text)}); }
  /// Accepted by the format, but not the same everywhere.
  void warn(std::string text) {
    if (portable_) notes_.push_back({Rule::NotPortable, false, std::move(text)});
  }
  /// A feature that this design does not have.
  void missing(std::string text) {
    if (portable_) notes_.push_back({Rule::NotPortable, true, std::move(text)});
  }

 private:
  std::vector<Note>& notes_;
  bool portable_;
};

void check_flags(const Config& config, const Insn& insn, Notes& notes) {
  const std::vector<Module> chain = modules(config);
  const Module module = module_of(config, insn);
  const Deps& deps = insn.deps;
  if (module == chain.front() && (deps.pop_prev || deps.push_prev))
    notes.error(Rule::IllegalFlag, "a load has no previous module, but has the flag of one");
  if (module == chain.back() && (deps.pop_next || deps.push_next))
    notes.error(Rule::IllegalFlag, "a store has no next module, but has the flag of one");
}

/// Elements of SRAM from the start on, in 64 bits.
uint64_t sram_elements(const Transfer& move) {
  return (uint64_t{move.x_pad_left} + move.x_size + move.x_pad_right) *
         (uint64_t{move.y_pad_top} + move.y_size + move.y_pad_bottom);
}

struct Bytes {
  uint64_t begin = 0, end = 0;
};
/// From the first row's start to the last row's end.
Bytes dram_hull(const Config& config, const Transfer& move) {
  const auto element = static_cast<uint64_t>(config.element_bytes(move.mem));
  const uint64_t begin = move.dram * element;
  if (move.y_size == 0) return {begin, begin};
  return {begin, begin + ((move.y_size - 1) * uint64_t{move.x_stride} + move.x_size) * element};
}

bool has_pads(const Transfer& move) {
  return (move.y_pad_top | move.y_pad_bottom | move.x_pad_left | move.x_pad_right) != 0;
}

bool kind_allowed(const Transfer& move) {
  return move.store ? move.mem == Mem::Out && !has_pads(move) : move.mem != Mem::Out;
}

bool dram_inside(const Program& program, const Transfer& move) {
  const Bytes hull = dram_hull(program.config, move);
  return hull.begin == hull.end || (hull.begin >= program.base && hull.end <= program.end());
}

bool sram_inside(const Config& config, const Transfer& move) {
  return move.sram + sram_elements(move) <= static_cast<uint64_t>(config.depth(move.mem));
}

void check_kind(const Transfer& move, Notes& notes) {
  if (move.store && move.mem != Mem::Out)
    notes.error(Rule::BadTransfer, fmt::format("stores {}; only out can be", name(move.mem)));
  if (move.store && has_pads(move)) notes.error(Rule::BadTransfer, "a store with padding");
  if (!move.store && move.mem == Mem::Out)
    notes.error(Rule::BadTransfer, "loads out; it can only be stored");
}

void check_transfer_portable(const Config& config, const Transfer& move, Notes& notes) {
  if (move.mem == Mem::Uop && (move.y_size != 1 || has_pads(move)))
    notes.warn(fmt::format("a micro-op load of {} rows{}: some designs load the first row only",
                           move.y_size, has_pads(move) ? " with padding" : ""));
  if (move.mem == Mem::Wgt && has_pads(move))
    notes.warn("a weight load with padding: some designs leave it out");
  if (move.mem != Mem::Acc8) return;
  if (!config.has_acc8) notes.missing("loads acc8, which this design does not have");
  if (dram_hull(config, move).end > kAcc8Limit)
    notes.warn("loads acc8 from above 1 GiB: the published simulator wraps there");
}

void check_transfer(const Program& program, const Transfer& move, Notes& notes) {
  if (!move.moves()) {
    if (has_pads(move)) notes.warn("an empty transfer with padding: some designs write the zeros");
    return;
  }
  check_kind(move, notes);
  const Config& config = program.config;
  check_transfer_portable(config, move, notes);
  if (!sram_inside(config, move))
    notes.error(Rule::SramRange,
                fmt::format("touches {} elements from {}, but {} has {}", sram_elements(move),
                            move.sram, name(move.mem), config.depth(move.mem)));
  const Bytes hull = dram_hull(config, move);
  if (!dram_inside(program, move))
    notes.error(Rule::DramRange,
                fmt::format("touches DRAM {:#x}..{:#x}, but the image is {:#x}..{:#x}", hull.begin,
                            hull.end, program.base, program.end()));
}

void check_loops(const Config& config, const Loops& loops, Notes& notes) {
  if (loops.uop_begin > loops.uop_end ||
      loops.uop_end > static_cast<uint64_t>(config.depth(Mem::Uop)))
    notes.error(Rule::SramRange, fmt::format("micro-ops {}..{}, but there are {}", loops.uop_begin,
                                             loops.uop_end, config.depth(Mem::Uop)));
  else if (loops.steps() == 0)
    notes.warn(fmt::format("no steps ({} x {} x {}): counters of some designs run away",
                           loops.outer, loops.inner, loops.uop_end - loops.uop_begin));
}

void check_alu(const Config& config, const Alu& alu, Notes& notes) {
  if (alu.op == AluOp::Mul && !config.has_mul)
    notes.missing("multiplies on the ALU, which this design does not have");
  if (alu.op != AluOp::Shr || !alu.use_imm || alu.loops.steps() == 0) return;
  if (alu.imm < -31 || alu.imm > 31)
    notes.error(Rule::ShiftRange, fmt::format("shifts by {}; -31..31 are defined", alu.imm));
  else if (alu.imm < -16 || alu.imm > 15)
    notes.warn(fmt::format("shifts by {}: some designs only do -16..15", alu.imm));
}

const Loops& loops_of(const Insn& insn) {
  const Gemm* gemm = std::get_if<Gemm>(&insn.op);
  return gemm != nullptr ? gemm->loops : std::get<Alu>(insn.op).loops;
}

/// One operand of a step.
struct Operand {
  std::string_view name;
  Mem mem;
  uint32_t Uop::* index;
  uint32_t Loops::* outer;
  uint32_t Loops::* inner;
  bool used;  ///< not: only some designs look at it
};

std::vector<Operand> operands(const Insn& insn) {
  const Operand dst = {"destination",     Mem::Acc,          &Uop::dst,
                       &Loops::dst_outer, &Loops::dst_inner, true};
  if (const Gemm* gemm = std::get_if<Gemm>(&insn.op))
    return {dst,
            {"input", Mem::Inp, &Uop::src, &Loops::src_outer, &Loops::src_inner, !gemm->reset},
            {"weight", Mem::Wgt, &Uop::wgt, &Loops::wgt_outer, &Loops::wgt_inner, !gemm->reset}};
  // The published simulator checks the source index of immediate operations, too.
  return {dst, {"source", Mem::Acc, &Uop::src, &Loops::src_outer, &Loops::src_inner, true}};
}

/// A step of the two loops and the micro-ops in them.
struct Step {
  uint32_t outer = 0, inner = 0, uop = 0;
};

class Steps {
 public:
  Steps(const Loops& loops, std::span<const Uop> uops) : loops_(loops), uops_(uops) {}

  bool advance(Step& step) const {
    if (++step.uop < uops_.size()) return true;
    step.uop = 0;
    if (++step.inner < loops_.inner) return true;
    step.inner = 0;
    return ++step.outer < loops_.outer;
  }
  uint64_t dst(const Step& s) const {
    return uops_[s.uop].dst + uint64_t{s.outer} * loops_.dst_outer +
           uint64_t{s.inner} * loops_.dst_inner;
  }
  uint64_t src(const Step& s) const {
    return uops_[s.uop].src + uint64_t{s.outer} * loops_.src_outer +
           uint64_t{s.inner} * loops_.src_inner;
  }
  /// First steps that stand for all: what follows within two steps depends on the micro-op and on
  /// which loops turn over in between, and each way to turn over that happens at all happens from
  /// one of these.
  std::vector<Step> starts() const {
    std::vector<Step> all;
    const auto count = static_cast<uint32_t>(uops_.size());
    for (uint32_t k = 0; k < count; ++k) all.push_back({0, 0, k});
    for (uint32_t back = 1; back <= 2 && back < loops_.inner; ++back)
      for (uint32_t k = count > 2 ? count - 2 : 0; k < count; ++k)
        all.push_back({0, loops_.inner - back, k});
    return all;
  }

 private:
  const Loops& loops_;
  std::span<const Uop> uops_;
};

void check_distances(const Insn& insn, const Steps& steps, Notes& notes) {
  const Alu* alu = std::get_if<Alu>(&insn.op);
  const bool reads_src = alu != nullptr && !alu->use_imm;
  bool dst_done = false, src_done = !reads_src;
  for (const Step& first : steps.starts()) {
    Step step = first;
    for (int distance = 1; distance <= 2 && steps.advance(step); ++distance) {
      if (!dst_done && steps.dst(step) == steps.dst(first)) {
        dst_done = true;
        notes.warn(
            fmt::format("acc {} is the destination again {} step(s) later; some designs need "
                        "3 steps between",
                        steps.dst(first), distance));
      }
      if (!src_done && steps.src(step) == steps.dst(first)) {
        src_done = true;
        notes.warn(
            fmt::format("acc {} is a source {} step(s) after it is written; some designs "
                        "need 3 steps between",
                        steps.dst(first), distance));
      }
    }
    if (dst_done && src_done) return;
  }
}

void check_immediate(const Alu& alu, std::span<const Uop> uops, Notes& notes) {
  if (!alu.use_imm) return;
  const Loops& loops = alu.loops;
  const bool same_loops = (loops.outer < 2 || loops.dst_outer == loops.src_outer) &&
                          (loops.inner < 2 || loops.dst_inner == loops.src_inner);
  for (const Uop& uop : uops)
    if (uop.src != uop.dst)
      return notes.warn(
          fmt::format("an immediate operation with source {} but destination {}: some "
                      "designs read the source",
                      uop.src, uop.dst));
  if (!same_loops)
    notes.warn(
        "an immediate operation whose source and destination move differently: some designs "
        "read the source");
}

std::span<const Uop> range_of(const Insn& insn, std::span<const Uop> uops) {
  const Loops& loops = loops_of(insn);
  return uops.subspan(loops.uop_begin, loops.uop_end - loops.uop_begin);
}

}  // namespace

bool runnable(const Program& program, const Transfer& move) {
  return kind_allowed(move) && sram_inside(program.config, move) && dram_inside(program, move);
}

std::vector<Note> check_form(const Program& program, const Insn& insn, bool portable) {
  std::vector<Note> list;
  Notes notes(list, portable);
  if (const Status status = fits(program.config, insn); !status)
    notes.error(Rule::FieldRange, status.error().what);
  check_flags(program.config, insn, notes);
  if (const auto* move = std::get_if<Transfer>(&insn.op)) check_transfer(program, *move, notes);
  if (const auto* gemm = std::get_if<Gemm>(&insn.op))
    check_loops(program.config, gemm->loops, notes);
  if (const auto* alu = std::get_if<Alu>(&insn.op)) {
    check_loops(program.config, alu->loops, notes);
    check_alu(program.config, *alu, notes);
  }
  return list;
}

std::vector<Note> check_indices(const Config& config, const Insn& insn, std::span<const Uop> uops,
                                bool portable) {
  std::vector<Note> list;
  Notes notes(list, portable);
  const Loops& loops = loops_of(insn);
  for (const Operand& operand : operands(insn)) {
    uint64_t largest = 0;
    for (const Uop& uop : range_of(insn, uops))
      largest = std::max<uint64_t>(largest, uop.*operand.index);
    largest += uint64_t{loops.outer - 1} * (loops.*operand.outer) +
               uint64_t{loops.inner - 1} * (loops.*operand.inner);
    const auto depth = static_cast<uint64_t>(config.depth(operand.mem));
    if (largest < depth) continue;
    std::string text = fmt::format("{} index reaches {}, but {} has {} elements", operand.name,
                                   largest, name(operand.mem), depth);
    if (operand.used)
      notes.error(Rule::SramRange, std::move(text));
    else
      notes.warn(text + " (a reset need not read it, but some designs do)");
  }
  return list;
}

std::vector<Note> check_steps(const Insn& insn, std::span<const Uop> uops) {
  std::vector<Note> list;
  Notes notes(list, /*portable=*/true);
  const std::span<const Uop> range = range_of(insn, uops);
  check_distances(insn, Steps(loops_of(insn), range), notes);
  if (const Alu* alu = std::get_if<Alu>(&insn.op)) check_immediate(*alu, range, notes);
  return list;
}

}  // namespace tilewright::vta::check_detail
