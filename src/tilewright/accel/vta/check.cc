// Runs the network of modules and follows what every instruction touches. Micro-op loads are
// carried out, so that indices are exact.
#include "tilewright/accel/vta/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tilewright/accel/vta/check_memory.h"
#include "tilewright/accel/vta/check_network.h"
#include "tilewright/accel/vta/check_static.h"

namespace tilewright::vta {
namespace {

using namespace check_detail;

bool is_moving_store(const Insn& insn) {
  const auto* move = std::get_if<Transfer>(&insn.op);
  return move != nullptr && move->store && move->moves();
}

/// What OUT holds of an element, as designs differ on it.
enum class OutState : uint8_t {
  Never,   ///< nothing was written
  Fresh,   ///< what ACC holds, by an ALU operation or an accumulation
  Reset,   ///< ACC was reset since
  Loaded,  ///< ACC was loaded since
};

class Checker {
 public:
  Checker(const Program& program, const CheckOptions& options)
      : program_(program),
        config_(program.config),
        options_(options),
        uop_state_(depth(Mem::Uop)),
        inp_state_(depth(Mem::Inp)),
        wgt_state_(depth(Mem::Wgt)),
        acc_state_(depth(Mem::Acc)),
        out_state_(depth(Mem::Out)),
        out_holds_(depth(Mem::Out), OutState::Never),
        uops_(depth(Mem::Uop)),
        memory_(program.image) {}

  std::vector<Finding> run() {
    for (run_ = 0; run_ < program_.runs.size(); ++run_)
      if (!check_run(program_.runs[run_])) break;
    std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return std::pair(a.run, a.insn) < std::pair(b.run, b.insn);
    });
    if (findings_.size() > options_.max_findings) findings_.resize(options_.max_findings);
    return std::move(findings_);
  }

 private:
  size_t depth(Mem mem) const { return static_cast<size_t>(config_.depth(mem)); }
  SramState& state(Mem mem) {
    switch (mem) {
      case Mem::Uop:
        return uop_state_;
      case Mem::Wgt:
        return wgt_state_;
      case Mem::Inp:
        return inp_state_;
      case Mem::Out:
        return out_state_;
      case Mem::Acc:
      case Mem::Acc8:
        break;
    }
    return acc_state_;
  }

  void add(Rule rule, bool error, size_t insn, std::string text) {
    // Enough to show after sorting into stream order, but no flood from a program that is garbage.
    if (findings_.size() >= 10 * options_.max_findings + 1000) return;
    findings_.push_back({rule, error, run_, insn, std::move(text)});
  }
  void add(const std::vector<Network::Problem>& problems) {
    for (const auto& [insn, note] : problems) add(note.rule, note.error, insn, note.text);
  }
  void add(size_t insn, std::vector<Note> notes) {
    for (Note& note : notes) add(note.rule, note.error, insn, std::move(note.text));
  }

  // --- one run ---------------------------------------------------------------------------------

  /// Whether the next run can be looked at.
  bool check_run(const Run& run) {
    insns_ = &run.insns;
    apply_patches(run);
    check_forms();
    start_run();
    network_.emplace(config_, run.insns);
    network_->run([this](uint32_t insn, const Actor& actor) {
      insn_ = insn;
      actor_ = actor;
      act((*insns_)[insn]);
    });
    const std::vector<Network::Problem> stuck = network_->stuck();
    add(stuck);
    add(network_->queues());
    return stuck.empty();
  }

  void apply_patches(const Run& run) {
    for (const Patch& patch : run.patches) {
      const uint64_t end = patch.address + patch.data.size();
      if (patch.address < program_.base || end < patch.address || end > program_.end()) {
        add(Rule::DramRange, true, 0,
            fmt::format("a patch of {} bytes at {:#x} is outside of the image", patch.data.size(),
                        patch.address));
        continue;
      }
      if (memory_.data() == program_.image.data()) {
        patched_ = program_.image;
        memory_ = patched_;
      }
      patched_.replace(patch.address - program_.base, patch.data.size(), patch.data);
      device_wrote_.remove(patch.address, end);
    }
  }

  void check_forms() {
    stored_here_.clear();
    size_t finishes = 0;
    for (size_t i = 0; i < insns_->size(); ++i) {
      const Insn& insn = (*insns_)[i];
      add(i, check_form(program_, insn, options_.portable));
      if (is_moving_store(insn)) {
        const auto& move = std::get<Transfer>(insn.op);
        if (runnable(program_, move) && move.y_size > 0) stored_here_.add(begin(move), end(move));
      }
      if (!std::holds_alternative<Finish>(insn.op)) continue;
      ++finishes;
      if (i + 1 != insns_->size())
        add(Rule::FinishOrder, true, i,
            fmt::format("FINISH is not the last of {} instructions", insns_->size()));
    }
    if (finishes != 1)
      add(Rule::FinishOrder, true, insns_->empty() ? 0 : insns_->size() - 1,
          fmt::format("the stream has {} FINISH instructions, not one", finishes));
  }

  uint64_t element(const Transfer& move) const {
    return static_cast<uint64_t>(config_.element_bytes(move.mem));
  }
  uint64_t begin(const Transfer& move) const { return move.dram * element(move); }
  uint64_t end(const Transfer& move) const {
    return begin(move) +
           ((move.y_size - 1) * uint64_t{move.x_stride} + move.x_size) * element(move);
  }

  /// The host waits for FINISH between runs: everything before is complete.
  void start_run() {
    dram_.clear();
    for (SramState* each : {&uop_state_, &inp_state_, &wgt_state_, &acc_state_, &out_state_})
      std::fill(each->cells.begin(), each->cells.end(), Cell{});
  }

  // --- what instructions touch -----------------------------------------------------------------

  void act(const Insn& insn) {
    if (const auto* move = std::get_if<Transfer>(&insn.op)) {
      if (move->moves() && runnable(program_, *move)) act_transfer(*move);
    } else if (const auto* gemm = std::get_if<Gemm>(&insn.op)) {
      if (loops_usable(insn, gemm->loops)) act_gemm(*gemm);
    } else if (const auto* alu = std::get_if<Alu>(&insn.op)) {
      if (loops_usable(insn, alu->loops)) act_alu(*alu);
    } else {
      act_finish();
    }
  }

  std::string describe(const Rival& rival) const {
    return fmt::format("insn {} ({}) {} it", network_->insn_of(rival.module, rival.seq),
                       name(network_->module(rival.module)), rival.write ? "writes" : "reads");
  }

  /// Goes over elements of a memory: races, definedness, and `each(element)`. Whether all that is
  /// read is defined.
  template <class F>
  bool touch(Mem mem, const ElementSet& elements, bool write, F&& each) {
    SramState& memory = state(mem);
    bool raced = false, undefined = false, old = false;
    elements.for_each([&](uint32_t at) {
      const std::optional<Rival> rival = memory.cells[at].access(actor_, write);
      if (rival && !raced) {
        raced = true;
        report_race(mem, at, write, *rival);
      }
      uint32_t& written = memory.written_run[at];
      if (!write && written == 0 && !undefined) {
        undefined = true;
        add(Rule::Undefined, true, insn_,
            fmt::format("reads {}[{}], which nothing wrote", vta::name(mem), at));
      } else if (!write && written > 0 && written <= run_ && !old && options_.portable) {
        old = true;
        add(Rule::NotPortable, false, insn_,
            fmt::format("reads {}[{}], which only run {} wrote: some targets lose memories between "
                        "runs",
                        vta::name(mem), at, written - 1));
      }
      // A place that was reported counts as written, so that one mistake is one finding.
      if (write || undefined) written = static_cast<uint32_t>(run_) + 1;
      each(at);
    });
    return !undefined;
  }
  bool touch(Mem mem, const ElementSet& elements, bool write) {
    return touch(mem, elements, write, [](uint32_t) {});
  }

  void report_race(Mem mem, uint32_t at, bool write, const Rival& rival) {
    // Only the published simulator reads ACC in a store; everyone else reads OUT.
    const auto store = static_cast<uint8_t>(network_->size() - 1);
    const bool of_store = mem == Mem::Acc && (actor_.module == store || rival.module == store);
    if (of_store && (!options_.portable || store_raced_)) return;
    store_raced_ = store_raced_ || mem == Mem::Out;
    add(of_store ? Rule::NotPortable : Rule::Race, true, insn_,
        fmt::format("{} {}[{}], and {}: no chain of tokens orders them{}",
                    write ? "writes" : "reads", vta::name(mem), at, describe(rival),
                    of_store ? "; the published simulator stores what acc holds" : ""));
  }

  void act_transfer(const Transfer& move) {
    touch_dram(move);
    scratch_.clear(depth(move.mem));
    scratch_.add_range(move.sram, move.sram + move.sram_elements());
    if (move.store) return act_store();
    const Mem mem = move.mem == Mem::Acc8 ? Mem::Acc : move.mem;
    touch(mem, scratch_, /*write=*/true, [&](uint32_t at) {
      if (mem == Mem::Acc && out_holds_[at] != OutState::Never) out_holds_[at] = OutState::Loaded;
    });
    if (mem == Mem::Uop) load_uops(move);
  }

  void act_store() {
    store_raced_ = false;
    check_out_state();
    touch(Mem::Out, scratch_, /*write=*/false);
    // Definedness of ACC follows from that of OUT.
    if (options_.portable)
      scratch_.for_each([&](uint32_t at) {
        if (const auto rival = acc_state_.cells[at].access(actor_, false); rival && !store_raced_) {
          report_race(Mem::Acc, at, false, *rival);
          store_raced_ = true;
        }
      });
    store_raced_ = false;
  }

  void check_out_state() {
    if (!options_.portable) return;
    std::array<bool, 4> seen{};
    scratch_.for_each([&](uint32_t at) {
      const OutState holds = out_holds_[at];
      if (holds == OutState::Never || holds == OutState::Fresh) return;
      if (seen.at(static_cast<size_t>(holds))) return;
      seen.at(static_cast<size_t>(holds)) = true;
      add(Rule::NotPortable, false, insn_,
          fmt::format("stores out[{}], whose accumulator was {} since an ALU operation or "
                      "accumulation wrote it: designs store different values",
                      at, holds == OutState::Reset ? "reset" : "loaded"));
    });
  }

  void touch_dram(const Transfer& move) {
    if (move.y_size == 0) return;
    const uint64_t size = element(move);
    const uint64_t width = move.x_size * size, pitch = move.x_stride * size;
    if (!move.store && !stored_here_.overlaps(begin(move), end(move))) return;
    const bool dense = pitch == width || move.y_size == 1;
    const uint64_t rows = dense ? 1 : move.y_size, row = dense ? width * move.y_size : width;
    bool raced = false;
    for (uint64_t y = 0; y < rows; ++y) {
      const uint64_t at = begin(move) + y * pitch;
      const auto race = dram_.access(at, at + row, actor_, move.store);
      if (move.store) device_wrote_.add(at, at + row);
      if (!race || raced) continue;
      raced = true;
      add(Rule::Race, true, insn_,
          fmt::format("{} DRAM {:#x}, and {}: no chain of tokens orders them",
                      move.store ? "writes" : "reads", race->address, describe(race->rival)));
    }
  }

  void load_uops(const Transfer& move) {
    if (move.y_size > 0 && device_wrote_.overlaps(begin(move), end(move)))
      add(Rule::Undefined, true, insn_,
          fmt::format("loads micro-ops from DRAM {:#x}..{:#x}, which the program itself stores to: "
                      "their indices are not known before it runs",
                      begin(move), end(move)));
    size_t to = move.sram;
    const auto zeros = [&](uint64_t count) {
      for (; count > 0; --count) uops_[to++] = {};
    };
    zeros(uint64_t{move.y_pad_top} * move.sram_width());
    for (uint64_t y = 0; y < move.y_size; ++y) {
      zeros(move.x_pad_left);
      for (uint64_t x = 0; x < move.x_size; ++x)
        uops_[to++] = uop_at(begin(move) + (y * move.x_stride + x) * element(move));
      zeros(move.x_pad_right);
    }
    zeros(uint64_t{move.y_pad_bottom} * move.sram_width());
  }
  Uop uop_at(uint64_t address) const {
    uint32_t word = 0;
    for (size_t b = 0; b < 4; ++b)
      word |= uint32_t{static_cast<unsigned char>(memory_[address - program_.base + b])} << (8 * b);
    return decode_uop(config_, word);
  }

  /// Whether the steps are known and inside of the memories; the micro-ops count as read.
  bool loops_usable(const Insn& insn, const Loops& loops) {
    if (loops.uop_begin > loops.uop_end || loops.uop_end > uops_.size() || loops.steps() == 0)
      return false;
    scratch_.clear(uops_.size());
    scratch_.add_range(loops.uop_begin, loops.uop_end);
    if (!touch(Mem::Uop, scratch_, /*write=*/false)) return false;
    std::vector<Note> beyond = check_indices(config_, insn, uops_, options_.portable);
    const bool inside =
        std::none_of(beyond.begin(), beyond.end(), [](const Note& note) { return note.error; });
    add(insn_, std::move(beyond));
    if (options_.portable) add(insn_, check_steps(insn, uops_));
    return inside;
  }

  void collect(ElementSet& into, Mem mem, const Loops& loops, uint32_t Uop::* index,
               uint32_t outer_step, uint32_t inner_step, uint32_t outer) const {
    into.clear(static_cast<size_t>(config_.depth(mem)));
    for (uint32_t k = loops.uop_begin; k < loops.uop_end; ++k) into.add(uops_[k].*index);
    into.repeat(loops.inner, inner_step);
    into.repeat(outer, outer_step);
  }
  void collect_dst(ElementSet& into, const Loops& loops, uint32_t outer) const {
    collect(into, Mem::Acc, loops, &Uop::dst, loops.dst_outer, loops.dst_inner, outer);
  }

  void write_acc(const ElementSet& dst, OutState holds) {
    touch(Mem::Out, dst, /*write=*/true, [&](uint32_t at) { out_holds_[at] = holds; });
    touch(Mem::Acc, dst, /*write=*/true);
    store_raced_ = false;
  }

  void act_gemm(const Gemm& gemm) {
    const Loops& loops = gemm.loops;
    ElementSet& dst = second_;
    collect_dst(dst, loops, loops.outer);
    if (gemm.reset) return write_acc(dst, OutState::Reset);
    collect(scratch_, Mem::Inp, loops, &Uop::src, loops.src_outer, loops.src_inner, loops.outer);
    touch(Mem::Inp, scratch_, /*write=*/false);
    collect(scratch_, Mem::Wgt, loops, &Uop::wgt, loops.wgt_outer, loops.wgt_inner, loops.outer);
    touch(Mem::Wgt, scratch_, /*write=*/false);
    if (gemm.replace_first) {
      ElementSet& replaced = scratch_;
      collect_dst(replaced, loops, 1);
      ElementSet read = dst;
      read.remove(replaced);
      touch(Mem::Acc, read, /*write=*/false);
    } else {
      touch(Mem::Acc, dst, /*write=*/false);
    }
    write_acc(dst, OutState::Fresh);
  }

  void act_alu(const Alu& alu) {
    const Loops& loops = alu.loops;
    collect_dst(second_, loops, loops.outer);
    touch(Mem::Acc, second_, /*write=*/false);
    if (!alu.use_imm) {
      collect(scratch_, Mem::Acc, loops, &Uop::src, loops.src_outer, loops.src_inner, loops.outer);
      touch(Mem::Acc, scratch_, /*write=*/false);
    }
    write_acc(second_, OutState::Fresh);
  }

  void act_finish() {
    const Clock& known = *actor_.clock;
    const size_t store = network_->size() - 1;
    if (known[store] < network_->last_store())
      add(Rule::FinishOrder, true, insn_,
          fmt::format("FINISH is not ordered after the last STORE: it waits for {} of {} "
                      "instructions of the store module",
                      known[store], network_->last_store()));
    for (size_t m = 0; m < network_->size(); ++m) {
      if (m == actor_.module || known[m] >= network_->total(m)) continue;
      if (m == store && known[store] < network_->last_store()) continue;
      add(Rule::FinishOrder, false, insn_,
          fmt::format("FINISH is not ordered after the last instruction of {}: it waits for {} of "
                      "{}; the published simulator drops the others",
                      name(network_->module(m)), known[m], network_->total(m)));
    }
  }

  const Program& program_;
  const Config& config_;
  const CheckOptions options_;
  std::vector<Finding> findings_;

  // Contents that outlive a run.
  SramState uop_state_, inp_state_, wgt_state_, acc_state_, out_state_;
  std::vector<OutState> out_holds_;
  std::vector<Uop> uops_;
  std::string_view memory_;
  std::string patched_;
  ByteRanges device_wrote_;

  // The run.
  size_t run_ = 0;
  const std::vector<Insn>* insns_ = nullptr;
  ByteRanges stored_here_;
  std::optional<Network> network_;
  DramState dram_;

  // The instruction in progress.
  uint32_t insn_ = 0;
  Actor actor_;
  bool store_raced_ = false;
  ElementSet scratch_, second_;
};

}  // namespace

std::vector<Finding> check_program(const Program& program, const CheckOptions& options) {
  if (const Status status = check(program.config); !status)
    return {
        {Rule::FieldRange, true, 0, 0, "the configuration is not legal: " + status.error().what}};
  return Checker(program, options).run();
}

std::string_view name(Rule rule) {
  constexpr std::array<std::string_view, 13> kNames = {
      "field-range",  "illegal-flag", "deadlock",    "leftover-token", "token-overflow",
      "sram-range",   "dram-range",   "race",        "finish-order",   "undefined",
      "bad-transfer", "shift-range",  "not-portable"};
  return kNames.at(static_cast<size_t>(rule));
}

}  // namespace tilewright::vta
