#include "tilewright/accel/dpu/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tilewright/accel/common/order.h"
#include "tilewright/accel/dpu/operands.h"

namespace tilewright::dpu {
namespace {

std::string all_texts(const Error& error) {
  std::string text = error.what;
  for (const Error& other : error.others) text += "; " + other.what;
  return text;
}

/// Words that were written: one bit each.
class Bits {
 public:
  explicit Bits(size_t size = 0) : bits_(size) {}
  /// Nothing if there is no whole place in between.
  void set(uint64_t begin, uint64_t end) {
    end = std::min<uint64_t>(end, bits_.size());
    if (begin < end)
      std::fill(bits_.begin() + static_cast<ptrdiff_t>(begin),
                bits_.begin() + static_cast<ptrdiff_t>(end), true);
  }
  /// The first place of [begin, end) that is not set, or `end`.
  uint64_t first_clear(uint64_t begin, uint64_t end) const {
    while (begin < end && begin < bits_.size() && bits_[begin]) ++begin;
    return begin;
  }

 private:
  std::vector<bool> bits_;
};

/// What one stream has: its instructions with their units and footprints.
struct Linear {
  std::vector<int> queue;
  std::vector<accel::Footprint> footprints;
};

Rule rule_of(accel::TokenRule rule) {
  switch (rule) {
    case accel::TokenRule::Deadlock:
      return Rule::Deadlock;
    case accel::TokenRule::Leftover:
      return Rule::LeftoverToken;
    case accel::TokenRule::Overflow:
      return Rule::TokenOverflow;
  }
  return Rule::Deadlock;
}

class Checker {
 public:
  Checker(const Program& program, size_t most) : program_(program), most_(most) {
    for (size_t r = 0; r < kRegs; ++r)
      ddr_[r] = Bits(static_cast<Reg>(r) == Reg::Output || static_cast<Reg>(r) == Reg::Swap
                         ? program.regions[r].bytes / kLanes
                         : 0);
  }

  std::vector<Finding> check() {
    for (run_ = 0; run_ < program_.runs.size(); ++run_) {
      const Run& run = program_.runs[run_];
      for (const Patch& patch : run.patches) patched(patch);
      check_run(run);
    }
    std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return std::pair(a.run, a.insn) < std::pair(b.run, b.insn);
    });
    if (findings_.size() > most_) findings_.resize(most_);
    return std::move(findings_);
  }

 private:
  void add(Rule rule, size_t insn, std::string text) {
    findings_.push_back({rule, run_, insn, std::move(text)});
  }

  void patched(const Patch& patch) {
    for (const Reg reg : {Reg::Output, Reg::Swap}) {
      const Region& region = program_.regions[static_cast<size_t>(reg)];
      const uint64_t begin = std::max(patch.address, region.address);
      const uint64_t end =
          std::min(patch.address + patch.data.size(), region.address + region.bytes);
      if (begin < end)
        ddr_[static_cast<size_t>(reg)].set((begin - region.address + kLanes - 1) / kLanes,
                                           (end - region.address) / kLanes);
    }
  }

  void check_run(const Run& run) {
    const size_t before = findings_.size();
    const Linear linear = check_each(run.insns);
    // What an instruction touches is only known if it is right by itself.
    if (findings_.size() > before) return;
    const std::vector<accel::Waits> known = check_tokens(run.insns, linear);
    if (known.size() == linear.queue.size()) check_races(run.insns, linear, known);
    check_defined(linear);
  }

  /// Instructions by themselves: fields, INITs, ranges, END.
  Linear check_each(const std::vector<Insn>& insns) {
    Linear linear;
    Inits inits;
    if (insns.empty() || !std::holds_alternative<End>(insns.back().op))
      add(Rule::Order, insns.empty() ? 0 : insns.size() - 1, "the stream does not end with END");
    for (size_t i = 0; i < insns.size(); ++i) {
      const Insn& insn = insns[i];
      if (Status status = check_fields(insn, ""); !status) {
        add(Rule::Field, i, all_texts(status.error()));
        continue;
      }
      if (std::holds_alternative<End>(insn.op)) {
        if (i + 1 < insns.size())
          add(Rule::Order, i, fmt::format("END, but {} follow", insns.size() - 1 - i));
        continue;
      }
      inits.update(insn.op);
      if (!inits.complete_for(insn.op)) {
        add(Rule::Order, i, fmt::format("{} comes before its INIT", op_name(insn.op)));
        continue;
      }
      const Status ranges = check_ranges(program_.config, insn, inits);
      const Status ddr = check_ddr(program_.config, program_.regions, insn);
      if (!ranges) add(Rule::Range, i, all_texts(ranges.error()));
      if (!ddr) add(Rule::Range, i, all_texts(ddr.error()));
      if (!ranges || !ddr) continue;
      linear.queue.push_back(static_cast<int>(unit_of(insn)));
      linear.footprints.push_back(footprint(program_.config, insn, inits));
    }
    return linear;
  }

  /// What each instruction knows to be complete; fewer than instructions if one waits for ever.
  std::vector<accel::Waits> check_tokens(const std::vector<Insn>& insns, const Linear& linear) {
    std::vector<accel::Ordered> ordered;
    for (size_t i = 0; i < linear.queue.size(); ++i)
      ordered.push_back({linear.queue[i], insns[i].dpon, insns[i].dpby});
    accel::TokenOrder order = accel::order_by_tokens(queues(), ordered);
    for (const accel::TokenFinding& finding : order.findings)
      add(rule_of(finding.rule), finding.insn, finding.text);
    return std::move(order.known);
  }

  void check_races(const std::vector<Insn>& insns, const Linear& linear,
                   const std::vector<accel::Waits>& known) {
    for (const accel::Race& race :
         accel::find_races(queues(), linear.queue, linear.footprints, known))
      add(Rule::Race, race.insn,
          fmt::format("{} and instruction {} ({}) meet in {}, and no chain of tokens orders them",
                      op_name(insns[race.insn].op), race.rival, op_name(insns[race.rival].op),
                      race.where));
  }

  void check_defined(const Linear& linear) {
    std::vector<Bits> chip;
    for (int m = 0; m < kMemories; ++m)
      chip.emplace_back(static_cast<size_t>(program_.config.fm_words(m)));
    chip.emplace_back(static_cast<size_t>(program_.config.pm_depth));
    for (size_t i = 0; i < linear.footprints.size(); ++i) {
      for (const accel::Access& access : linear.footprints[i])
        if (!access.write && !is_defined(chip, access, i)) break;
      for (const accel::Access& access : linear.footprints[i]) {
        if (!access.write) continue;
        const bool on_chip = access.memory < kDdrMemory;
        const auto memory = static_cast<size_t>(access.memory);
        Bits& bits = on_chip ? chip[memory] : ddr_[memory - kDdrMemory];
        const uint64_t unit = on_chip ? 1 : kLanes;
        for (uint32_t row = 0; row < access.rows; ++row) {
          const uint64_t begin = access.address + row * access.pitch;
          bits.set(begin / unit, (begin + access.width) / unit);
        }
      }
    }
  }

  bool is_defined(const std::vector<Bits>& chip, const accel::Access& access, size_t insn) {
    const bool on_chip = access.memory < kDdrMemory;
    const auto memory = static_cast<size_t>(access.memory);
    const size_t reg = on_chip ? 0 : memory - kDdrMemory;
    // Inputs and parameters are there before the first launch.
    if (!on_chip && reg != static_cast<size_t>(Reg::Output) &&
        reg != static_cast<size_t>(Reg::Swap))
      return true;
    const Bits& bits = on_chip ? chip[memory] : ddr_[reg];
    const uint64_t unit = on_chip ? 1 : kLanes;
    for (uint32_t row = 0; row < access.rows; ++row) {
      const uint64_t begin = (access.address + row * access.pitch) / unit;
      const uint64_t end = (access.address + row * access.pitch + access.width + unit - 1) / unit;
      const uint64_t clear = bits.first_clear(begin, end);
      if (clear == end) continue;
      add(Rule::Undefined, insn,
          fmt::format("reads {}, {}, which nothing wrote", queues().memories[memory],
                      clear * unit));
      return false;
    }
    return true;
  }

  const Program& program_;
  size_t most_, run_ = 0;
  std::array<Bits, kRegs> ddr_;  ///< written by a patch or launch, in units of 16 bytes
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view name(Rule rule) {
  constexpr std::array<std::string_view, 8> kNames = {
      "field",          "order", "deadlock", "leftover-token",
      "token-overflow", "range", "race",     "undefined"};
  return kNames.at(static_cast<size_t>(rule));
}

std::vector<Finding> check_program(const Program& program, size_t most) {
  return Checker(program, most).check();
}

}  // namespace tilewright::dpu
