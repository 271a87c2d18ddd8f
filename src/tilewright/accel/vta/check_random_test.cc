// The checker against brute force: order as reachability in the graph of all instructions,
// conflicts as common elements of every pair.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/testing/random_program.h"

namespace tilewright::vta {
namespace {

using namespace testing;  // NOLINT: the helpers of this layer

std::string print(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings)
    text += std::string(name(f.rule)) + " " + std::to_string(f.insn) + " " + f.text + "\n";
  return text;
}

/// Every place an instruction touches: memory and element, or DRAM and unit of bytes; true:
/// written.
using Touched = std::map<std::pair<int, uint64_t>, bool>;
constexpr int kDram = 100;

class BruteForce {
 public:
  explicit BruteForce(const Program& program) : program_(program), config_(program.config) {
    unit_ = 4096;
    for (const Mem mem : {Mem::Uop, Mem::Wgt, Mem::Inp, Mem::Acc, Mem::Out, Mem::Acc8})
      unit_ = std::min(unit_, static_cast<uint64_t>(config_.element_bytes(mem)));
    for (const Insn& insn : insns()) touched_.push_back(touch(insn));
  }

  const std::vector<Insn>& insns() const { return program_.runs[0].insns; }

  /// A pair that conflicts with no path of program order and tokens between them. Which pushes and
  /// pops belong together follows from their order in each module.
  bool has_race(const std::vector<Insn>& stream) const {
    const size_t n = stream.size();
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
    std::map<int, std::vector<size_t>> of_module, pushes, pops;
    for (size_t i = 0; i < n; ++i) {
      const int m = static_cast<int>(place(stream[i]));
      if (!of_module[m].empty()) before[of_module[m].back()][i] = true;
      of_module[m].push_back(i);
      // Queue 2m: from m to m + 1; queue 2m + 1: back.
      if (stream[i].deps.push_next) pushes[2 * m].push_back(i);
      if (stream[i].deps.push_prev) pushes[2 * m - 1].push_back(i);
      if (stream[i].deps.pop_prev) pops[2 * m - 2].push_back(i);
      if (stream[i].deps.pop_next) pops[2 * m + 1].push_back(i);
    }
    for (const auto& [queue, list] : pushes)
      for (size_t k = 0; k < std::min(list.size(), pops[queue].size()); ++k)
        before[list[k]][pops[queue][k]] = true;
    for (size_t k = 0; k < n; ++k)
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; before[i][k] && j < n; ++j)
          if (before[k][j]) before[i][j] = true;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i + 1; j < n; ++j)
        if (!before[i][j] && !before[j][i] && conflict(touched_[i], touched_[j])) return true;
    return false;
  }

  size_t place(const Insn& insn) const {
    const auto chain = modules(config_);
    return static_cast<size_t>(std::find(chain.begin(), chain.end(), module_of(config_, insn)) -
                               chain.begin());
  }

 private:
  static bool conflict(const Touched& a, const Touched& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& entry) {
      const auto found = b.find(entry.first);
      return found != b.end() && (entry.second || found->second);
    });
  }

  Touched touch(const Insn& insn) {
    Touched all;
    if (const auto* move = std::get_if<Transfer>(&insn.op)) touch(*move, all);
    if (const auto* gemm = std::get_if<Gemm>(&insn.op))
      touch(
          gemm->loops,
          [&](uint64_t a, uint64_t s, uint64_t w) {
            write_acc(a, all);
            if (gemm->reset) return;
            all[{static_cast<int>(Mem::Inp), s}];
            all[{static_cast<int>(Mem::Wgt), w}];
          },
          all);
    if (const auto* alu = std::get_if<Alu>(&insn.op))
      touch(
          alu->loops,
          [&](uint64_t a, uint64_t s, uint64_t) {
            write_acc(a, all);
            if (!alu->use_imm) all[{static_cast<int>(Mem::Acc), s}];
          },
          all);
    return all;
  }
  static void write_acc(uint64_t a, Touched& all) {
    all[{static_cast<int>(Mem::Acc), a}] = true;
    all[{static_cast<int>(Mem::Out), a}] = true;
  }

  void touch(const Transfer& move, Touched& all) {
    if (!move.moves()) return;
    const auto size = static_cast<uint64_t>(config_.element_bytes(move.mem));
    for (uint64_t y = 0; y < move.y_size; ++y)
      for (uint64_t x = 0; x < move.x_size; ++x)
        for (uint64_t b = 0; b < size; b += unit_) {
          bool& written = all[{kDram, (move.dram + y * move.x_stride + x) * size + b}];
          written = written || move.store;
        }
    const Mem mem = move.mem == Mem::Acc8 ? Mem::Acc : move.mem;
    const uint32_t rows = move.y_pad_top + move.y_size + move.y_pad_bottom;
    for (uint32_t i = 0; i < rows * move.sram_width(); ++i) {
      const uint32_t at = move.sram + i;
      all[{static_cast<int>(mem), at}] = !move.store;
      if (move.store) all[{static_cast<int>(Mem::Acc), at}];  // as the published simulator does
      if (mem == Mem::Uop)
        uops_[at] = program_.image.substr((move.dram + i) * 4 - program_.base, 4);
    }
  }

  template <class F>
  void touch(const Loops& loops, F&& step, Touched& all) {
    for (uint32_t k = loops.uop_begin; k < loops.uop_end; ++k) {
      all[{static_cast<int>(Mem::Uop), k}];
      uint32_t word = 0;
      for (size_t b = 4; b-- > 0;) word = word << 8 | static_cast<unsigned char>(uops_.at(k)[b]);
      const Uop uop = decode_uop(config_, word);
      for (uint64_t o = 0; o < loops.outer; ++o)
        for (uint64_t i = 0; i < loops.inner; ++i)
          step(uop.dst + o * loops.dst_outer + i * loops.dst_inner,
               uop.src + o * loops.src_outer + i * loops.src_inner,
               uop.wgt + o * loops.wgt_outer + i * loops.wgt_inner);
    }
  }

  const Program& program_;
  const Config& config_;
  uint64_t unit_ = 1;
  std::map<uint32_t, std::string> uops_;
  std::vector<Touched> touched_;
};

constexpr bool Deps::* kFlags[] = {&Deps::pop_prev, &Deps::pop_next, &Deps::push_prev,
                                   &Deps::push_next};

Config small_config(Rng& rng) {
  return random_config(
      rng, {.max_log_block = 2, .max_log_batch = 1, .extensions = true, .features = true});
}

bool has_error(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.error; });
}
/// Whether a race was reported, be it one of the published simulator only.
bool has_race(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
    return f.rule == Rule::Race || (f.rule == Rule::NotPortable && f.error);
  });
}

TEST(RandomPrograms, AreCleanAndRaceFreeByBruteForce) {
  Rng rng(1);
  for (int i = 0; i < 40; ++i) {
    const Config config = small_config(rng);
    const Program program =
        random_program(rng, config, {.insns = 20, .weave = static_cast<Weave>(i % 3)});
    const std::vector<Finding> findings = check_program(program);
    EXPECT_TRUE(findings.empty()) << label(config) << "\n" << print(findings);
    EXPECT_FALSE(BruteForce(program).has_race(program.runs[0].insns));
  }
}

TEST(RandomPrograms, HaveEverythingInThem) {
  Rng rng(2);
  std::set<std::string> seen;
  for (int i = 0; i < 60; ++i) {
    const Config config = random_config(rng, {.extensions = true, .features = true});
    const Program program = random_program(rng, config, {.runs = 2});
    ASSERT_TRUE(validate(program));
    EXPECT_EQ(program.runs.size(), 2u);
    for (const Insn& insn : program.runs[0].insns) {
      const std::string text = disassemble(config, insn);
      seen.insert(text.substr(0, text.find(' ')));
      for (const char* part : {" pad ", "pop_prev", "pop_next", "push_prev", "push_next", " none",
                               " imm ", "[pop_prev pop_next"})
        if (text.find(part) != std::string::npos) seen.insert(part);
    }
  }
  for (const char* part :
       {"load.inp",  "load.wgt",   "load.acc",   "load.acc8", "load.uop", "store.out",
        "gemm",      "gemm.reset", "gemm.first", "alu.min",   "alu.max",  "alu.add",
        "alu.shr",   "alu.mul",    "finish",     " pad ",     "pop_prev", "pop_next",
        "push_prev", "push_next",  " none",      " imm "})
    EXPECT_TRUE(seen.count(part)) << part;
}

TEST(DroppedFlags, AreAllFound) {
  Rng rng(3);
  size_t dropped = 0;
  for (int i = 0; i < 12; ++i) {
    Program program = random_program(rng, small_config(rng),
                                     {.insns = 15, .weave = i % 2 ? Weave::Serial : Weave::Random});
    for (Insn& insn : program.runs[0].insns)
      for (bool Deps::* const flag : kFlags) {
        if (!(insn.deps.*flag)) continue;
        insn.deps.*flag = false;
        EXPECT_TRUE(has_error(check_program(program))) << disassemble(program.config, insn);
        insn.deps.*flag = true;
        ++dropped;
      }
  }
  EXPECT_GT(dropped, 300u);
}

/// The k-th push and the k-th pop of each queue, as (instruction, flag) pairs.
struct Pair {
  size_t push, pop;
  bool Deps::* push_flag;
  bool Deps::* pop_flag;
};
std::vector<Pair> matched_pairs(const Program& program, const BruteForce& brute) {
  std::vector<Pair> pairs;
  const std::vector<Insn>& insns = program.runs[0].insns;
  for (size_t m = 0; m + 1 < modules(program.config).size(); ++m)
    for (const bool up : {true, false}) {
      const auto push = up ? &Deps::push_next : &Deps::push_prev;
      const auto pop = up ? &Deps::pop_prev : &Deps::pop_next;
      std::vector<size_t> pushes, pops;
      for (size_t i = 0; i < insns.size(); ++i) {
        const size_t at = brute.place(insns[i]);
        if (at == (up ? m : m + 1) && insns[i].deps.*push) pushes.push_back(i);
        if (at == (up ? m + 1 : m) && insns[i].deps.*pop) pops.push_back(i);
      }
      EXPECT_EQ(pushes.size(), pops.size());
      for (size_t k = 0; k < pops.size(); ++k) pairs.push_back({pushes[k], pops[k], push, pop});
    }
  return pairs;
}

TEST(DroppedPairs, AreRacesExactlyWhenBruteForceSaysSo) {
  Rng rng(4);
  size_t races = 0, redundant = 0;
  for (int i = 0; i < 24; ++i) {
    Program program =
        random_program(rng, small_config(rng), {.insns = 12, .weave = static_cast<Weave>(i % 3)});
    const BruteForce brute(program);
    std::vector<Insn>& insns = program.runs[0].insns;
    for (const Pair& pair : matched_pairs(program, brute)) {
      insns[pair.push].deps.*pair.push_flag = false;
      insns[pair.pop].deps.*pair.pop_flag = false;
      const std::vector<Finding> findings = check_program(program);
      const bool race = brute.has_race(insns);
      EXPECT_EQ(has_race(findings), race) << label(program.config) << "\n" << print(findings);
      ++(race ? races : redundant);
      insns[pair.push].deps.*pair.push_flag = true;
      insns[pair.pop].deps.*pair.pop_flag = true;
    }
  }
  EXPECT_GT(races, 50u);
  EXPECT_GT(redundant, 50u);
}

TEST(RandomPrograms, GarbledOnesNeverCrashTheChecker) {
  Rng rng(5);
  for (int i = 0; i < 150; ++i) {
    Program program = random_program(rng, small_config(rng), {.insns = 10, .runs = 2});
    for (int64_t edits = rng.between(1, 6); edits > 0; --edits) {
      std::vector<Insn>& insns = program.runs[static_cast<size_t>(rng.below(2))].insns;
      Insn& insn = insns[static_cast<size_t>(rng.below(static_cast<int64_t>(insns.size())))];
      Word word = encode(program.config, insn);
      word.at(static_cast<size_t>(rng.below(2))) ^= uint64_t{1} << rng.below(64);
      if (const Result<Insn> decoded = decode(program.config, word)) insn = *decoded;
      program.image[static_cast<size_t>(rng.below(static_cast<int64_t>(program.image.size())))] ^=
          8;
    }
    for (const Finding& finding : check_program(program)) EXPECT_FALSE(finding.text.empty());
  }
}

}  // namespace
}  // namespace tilewright::vta
