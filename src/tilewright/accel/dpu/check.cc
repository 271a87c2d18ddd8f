#include "tilewright/accel/dpu/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "tilewright/accel/common/hazards.h"
#include "tilewright/accel/dpu/operands.h"

namespace tilewright::dpu {
namespace {

constexpr size_t kTokenLimit = 255;  // counters of 8 bits

constexpr std::array<std::string_view, kUnits> kUnitNames = {"LOAD", "SAVE", "CONV", "MISC"};

bool has_bit(unsigned mask, size_t unit) { return (mask >> unit & 1) != 0; }

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

/// What is complete before an instruction begins: per unit, its last instruction, from 1.
using Known = std::array<uint32_t, kUnits>;

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
    const std::vector<Known> known = check_tokens(run.insns, linear);
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

  /// One direction between two units.
  struct Path {
    std::deque<Known> tokens;      ///< what the giver knew when it was done
    std::vector<uint32_t> takers;  ///< stamps of the instructions that took
    size_t given = 0, last_giver = 0;
    bool reported = false;
  };

  /// Runs the stream one instruction at a time: the k-th token taken is the k-th given, whatever
  /// instructions take. Returns what each knows to be complete; fewer if one waits for ever.
  std::vector<Known> check_tokens(const std::vector<Insn>& insns, const Linear& linear) {
    std::array<std::array<Path, kUnits>, kUnits> paths;
    std::array<Known, kUnits> now{};
    std::vector<Known> known;
    for (size_t i = 0; i < linear.queue.size(); ++i) {
      const auto unit = static_cast<size_t>(linear.queue[i]);
      const auto stamp = static_cast<uint32_t>(i + 1);
      for (size_t a = 0; a < kUnits; ++a) {
        if (!has_bit(insns[i].dpon, a)) continue;
        Path& path = paths[a][unit];
        if (path.tokens.empty()) {
          add(Rule::Deadlock, i,
              fmt::format("waits for token {} of {}, but {} are given before it",
                          path.takers.size() + 1, kUnitNames[a], path.given));
          return known;
        }
        for (size_t u = 0; u < kUnits; ++u)
          now[unit][u] = std::max(now[unit][u], path.tokens.front()[u]);
        path.tokens.pop_front();
        path.takers.push_back(stamp);
      }
      known.push_back(now[unit]);
      now[unit][unit] = stamp;
      for (size_t b = 0; b < kUnits; ++b)
        if (has_bit(insns[i].dpby, b)) give(paths[unit][b], unit, b, now[unit], i);
    }
    for (size_t a = 0; a < kUnits; ++a)
      for (size_t b = 0; b < kUnits; ++b)
        if (const Path& path = paths[a][b]; !path.tokens.empty())
          add(Rule::LeftoverToken, path.last_giver,
              fmt::format("{} of {} tokens from {} to {} are left at the end", path.tokens.size(),
                          path.given, kUnitNames[a], kUnitNames[b]));
    return known;
  }

  void give(Path& path, size_t from, size_t to, const Known& knows, size_t insn) {
    path.tokens.push_back(knows);
    path.last_giver = insn;
    ++path.given;
    // The most there can be under any timing: all given so far, less those that the giver knows
    // to be taken.
    const auto taken = static_cast<size_t>(
        std::upper_bound(path.takers.begin(), path.takers.end(), knows[to]) - path.takers.begin());
    if (path.given - taken < kTokenLimit || path.reported) return;
    path.reported = true;
    add(Rule::TokenOverflow, insn,
        fmt::format("{} tokens from {} to {} can be outstanding here; fewer than {} are safe",
                    path.given - taken, kUnitNames[from], kUnitNames[to], kTokenLimit));
  }

  void check_races(const std::vector<Insn>& insns, const Linear& linear,
                   const std::vector<Known>& known) {
    const accel::Queues design = queues();
    const std::vector<accel::Waits> waits =
        accel::find_waits(design, linear.queue, linear.footprints);
    for (size_t i = 0; i < waits.size(); ++i)
      for (size_t u = 0; u < kUnits; ++u) {
        if (u == static_cast<size_t>(linear.queue[i]) || waits[i][u] <= known[i][u]) continue;
        const size_t rival = waits[i][u] - 1;
        add(Rule::Race, i,
            fmt::format("{} and instruction {} ({}) meet in {}, and no chain of tokens orders them",
                        op_name(insns[i].op), rival, op_name(insns[rival].op),
                        meeting(design, linear.footprints[rival], linear.footprints[i])));
      }
  }

  static std::string meeting(const accel::Queues& design, const accel::Footprint& a,
                             const accel::Footprint& b) {
    for (const accel::Access& x : a)
      for (const accel::Access& y : b)
        if (accel::conflict(x, y))
          return fmt::format("{}, {}..{}", design.memories[static_cast<size_t>(x.memory)],
                             std::max(accel::hull(x).begin, accel::hull(y).begin),
                             std::min(accel::hull(x).end, accel::hull(y).end));
    return "memory";
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
