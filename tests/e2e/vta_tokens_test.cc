// Every dependence of compiled code, dropped: found by the checker or a simulator, or proven
// redundant because the tokens that are left still order all conflicting instructions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <optional>
#include <set>

#include "tests/e2e/vta_network.h"
#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/accel/vta/sim/tsim.h"

namespace tilewright::e2e {
namespace {

using vta::Insn;
using vta::Mem;

/// Flag of an instruction: by which queue of the chain it goes, and in which direction.
enum class Flag { PopPrev, PopNext, PushPrev, PushNext };
constexpr std::array<Flag, 4> kFlags = {Flag::PopPrev, Flag::PopNext, Flag::PushPrev,
                                        Flag::PushNext};

bool& flag_of(vta::Deps& deps, Flag flag) {
  switch (flag) {
    case Flag::PopPrev:
      return deps.pop_prev;
    case Flag::PopNext:
      return deps.pop_next;
    case Flag::PushPrev:
      return deps.push_prev;
    default:
      return deps.push_next;
  }
}

/// Places of every instruction's module in the chain.
std::vector<size_t> places(const vta::Config& config, const std::vector<Insn>& insns) {
  const std::vector<vta::Module> chain = modules(config);
  std::vector<size_t> places;
  for (const Insn& insn : insns)
    places.push_back(static_cast<size_t>(
        std::find(chain.begin(), chain.end(), module_of(config, insn)) - chain.begin()));
  return places;
}

struct Pair {
  size_t push = 0, pop = 0;
  Flag push_flag = Flag::PushNext, pop_flag = Flag::PopPrev;
};

/// The k-th push into a queue is what its k-th pop takes.
std::vector<Pair> match(const vta::Config& config, std::vector<Insn> insns) {
  const std::vector<size_t> place = places(config, insns);
  std::vector<Pair> pairs;
  for (size_t queue = 0; queue + 1 < modules(config).size(); ++queue)
    for (const bool forward : {true, false}) {
      const size_t from = forward ? queue : queue + 1, to = forward ? queue + 1 : queue;
      const Flag push = forward ? Flag::PushNext : Flag::PushPrev;
      const Flag pop = forward ? Flag::PopPrev : Flag::PopNext;
      std::vector<size_t> pushes, pops;
      for (size_t i = 0; i < insns.size(); ++i) {
        if (place[i] == from && flag_of(insns[i].deps, push)) pushes.push_back(i);
        if (place[i] == to && flag_of(insns[i].deps, pop)) pops.push_back(i);
      }
      EXPECT_EQ(pushes.size(), pops.size());
      for (size_t k = 0; k < std::min(pushes.size(), pops.size()); ++k)
        pairs.push_back({pushes[k], pops[k], push, pop});
    }
  return pairs;
}

/// What an instruction reads and writes, element by element (SRAM) and byte by byte (DRAM).
struct Touched {
  std::set<std::pair<Mem, uint32_t>> reads, writes;
  std::set<uint64_t> dram_reads, dram_writes;
};

void add_transfer(const vta::Config& config, const vta::Transfer& t, Touched& touched) {
  const Mem on_chip = t.mem == Mem::Acc8 ? Mem::Acc : t.mem;
  for (uint32_t e = 0; e < t.sram_elements(); ++e)
    (t.store ? touched.reads : touched.writes).insert({on_chip, t.sram + e});
  const auto bytes = static_cast<uint64_t>(config.element_bytes(t.mem));
  for (uint32_t y = 0; t.moves() && y < t.y_size; ++y)
    for (uint64_t b = 0; b < t.x_size * bytes; ++b)
      (t.store ? touched.dram_writes : touched.dram_reads)
          .insert((t.dram + uint64_t{y} * t.x_stride) * bytes + b);
}

void add_steps(const vta::Loops& loops, const std::vector<vta::Uop>& uops, bool gemm, bool reset,
               bool imm, Touched& touched) {
  for (uint32_t u = loops.uop_begin; u < loops.uop_end; ++u) touched.reads.insert({Mem::Uop, u});
  for (uint32_t o = 0; o < loops.outer; ++o)
    for (uint32_t i = 0; i < loops.inner; ++i)
      for (uint32_t u = loops.uop_begin; u < loops.uop_end; ++u) {
        const uint32_t dst = uops[u].dst + o * loops.dst_outer + i * loops.dst_inner;
        const uint32_t src = uops[u].src + o * loops.src_outer + i * loops.src_inner;
        touched.reads.insert({Mem::Acc, dst});
        touched.writes.insert({Mem::Acc, dst});
        touched.writes.insert({Mem::Out, dst});
        if (gemm && !reset) {
          touched.reads.insert({Mem::Inp, src});
          touched.reads.insert({Mem::Wgt, uops[u].wgt + o * loops.wgt_outer + i * loops.wgt_inner});
        }
        if (!gemm && !imm) touched.reads.insert({Mem::Acc, src});
      }
}

/// Of every instruction; micro-ops are read from the image as the stream loads them.
std::vector<Touched> touched_by(const vta::Program& program) {
  const vta::Config& config = program.config;
  std::vector<vta::Uop> uops(static_cast<size_t>(config.depth(Mem::Uop)));
  std::vector<Touched> all;
  for (const Insn& insn : program.runs[0].insns) {
    Touched& touched = all.emplace_back();
    if (const auto* t = std::get_if<vta::Transfer>(&insn.op)) {
      add_transfer(config, *t, touched);
      for (uint32_t e = 0; t->mem == Mem::Uop && e < t->sram_elements(); ++e) {
        uint32_t word = 0;
        std::memcpy(&word, program.image.data() + ((t->dram + e) * uint64_t{4} - program.base), 4);
        uops[t->sram + e] = decode_uop(config, word);
      }
    } else if (const auto* g = std::get_if<vta::Gemm>(&insn.op)) {
      add_steps(g->loops, uops, true, g->reset, false, touched);
    } else if (const auto* a = std::get_if<vta::Alu>(&insn.op)) {
      add_steps(a->loops, uops, false, false, a->use_imm, touched);
    }
  }
  return all;
}

template <class T>
bool meet(const std::set<T>& a, const std::set<T>& b) {
  if (a.size() > b.size()) return meet(b, a);
  return std::any_of(a.begin(), a.end(), [&](const T& x) { return b.contains(x); });
}

bool conflicting(const Touched& a, const Touched& b) {
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes) ||
         meet(a.dram_writes, b.dram_writes) || meet(a.dram_writes, b.dram_reads) ||
         meet(a.dram_reads, b.dram_writes);
}

using Order = std::vector<std::pair<size_t, size_t>>;  ///< first must be complete before second

/// Conflicting pairs of different modules in the order of the stream; all before FINISH.
Order conflicts(const vta::Program& program) {
  const std::vector<Insn>& insns = program.runs[0].insns;
  const std::vector<Touched> touched = touched_by(program);
  const std::vector<size_t> place = places(program.config, insns);
  Order order;
  for (size_t b = 0; b < insns.size(); ++b)
    for (size_t a = 0; a < b; ++a)
      if (place[a] != place[b] && (b + 1 == insns.size() || conflicting(touched[a], touched[b])))
        order.emplace_back(a, b);
  return order;
}

/// What is complete before each instruction, as counts per module; nothing on deadlock.
std::optional<std::vector<std::array<size_t, 4>>> clocks(const vta::Config& config,
                                                         std::vector<Insn> insns) {
  const std::vector<size_t> place = places(config, insns);
  using Clock = std::array<size_t, 4>;
  std::array<std::vector<size_t>, 4> streams;
  for (size_t i = 0; i < insns.size(); ++i) streams[place[i]].push_back(i);
  std::array<size_t, 4> next{};
  std::array<Clock, 4> now{};
  std::array<std::deque<Clock>, 4> forward, backward;  // forward[m]: from m to m + 1
  std::vector<Clock> known(insns.size());
  size_t done = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t m = 0; m < 4; ++m) {
      if (next[m] == streams[m].size()) continue;
      const size_t i = streams[m][next[m]];
      const vta::Deps& deps = insns[i].deps;
      if (deps.pop_prev && (m == 0 || forward[m - 1].empty())) continue;
      if (deps.pop_next && backward[m].empty()) continue;
      const auto take = [&](std::deque<Clock>& queue) {
        for (size_t k = 0; k < 4; ++k) now[m][k] = std::max(now[m][k], queue.front()[k]);
        queue.pop_front();
      };
      if (deps.pop_prev) take(forward[m - 1]);
      if (deps.pop_next) take(backward[m]);
      known[i] = now[m];
      now[m][m] = ++next[m];
      if (deps.push_next) forward[m].push_back(now[m]);
      if (deps.push_prev && m > 0) backward[m - 1].push_back(now[m]);
      progress = true;
      ++done;
    }
  }
  if (done != insns.size()) return std::nullopt;
  return known;
}

/// Whether the tokens of `insns` order all of `order`.
bool ordered(const vta::Config& config, const std::vector<Insn>& insns, const Order& order) {
  const auto known = clocks(config, insns);
  if (!known) return false;
  const std::vector<size_t> place = places(config, insns);
  std::array<size_t, 4> count{};
  std::vector<size_t> number;  // in its module, from 1
  for (size_t m : place) number.push_back(++count[m]);
  return std::all_of(order.begin(), order.end(), [&](const auto& pair) {
    return (*known)[pair.second][place[pair.first]] >= number[pair.first];
  });
}

std::optional<std::string> results(const vta::Program& program, bool timed) {
  const auto device =
      timed ? make_tsim(program.config, program.end()) : make_fsim(program.config, program.end());
  if (!execute(*device, program)) return std::nullopt;
  std::string bytes;
  for (const vta::Region& region : program.outputs) {
    std::string part(region.bytes, '\0');
    if (!device->read(region.address, part.data(), region.bytes)) return std::nullopt;
    bytes += part;
  }
  return bytes;
}

struct Classes {
  int checker = 0, simulator = 0, redundant = 0, unexplained = 0;
};

class Dropper {
 public:
  explicit Dropper(const vta::Program& program)
      : program_(program), order_(conflicts(program)), want_(*results(program, false)) {}

  bool sound() const {
    return ordered(program_.config, program_.runs[0].insns, order_) &&
           check_program(program_).empty();
  }
  /// Classifies the program without some flags.
  void without(const std::vector<std::pair<size_t, Flag>>& flags, Classes& classes) const {
    vta::Program changed = program_;
    for (const auto& [insn, flag] : flags) flag_of(changed.runs[0].insns[insn].deps, flag) = false;
    const bool wrong = results(changed, false) != want_ || results(changed, true) != want_;
    if (!check_program(changed).empty()) {
      ++classes.checker;
    } else if (wrong) {
      ++classes.simulator;  // the checker must not be weaker than a simulator
    } else if (ordered(changed.config, changed.runs[0].insns, order_)) {
      ++classes.redundant;
    } else {
      ++classes.unexplained;
    }
  }

 private:
  const vta::Program& program_;
  Order order_;
  std::string want_;
};

void drop_all(const vta::Program& program, const std::string& what) {
  ASSERT_EQ(program.runs.size(), 1u);
  const Dropper dropper(program);
  ASSERT_TRUE(dropper.sound()) << what;
  std::vector<Insn> insns = program.runs[0].insns;
  Classes bits, pairs;
  for (size_t i = 0; i < insns.size(); ++i)
    for (const Flag flag : kFlags)
      if (flag_of(insns[i].deps, flag)) dropper.without({{i, flag}}, bits);
  for (const Pair& pair : match(program.config, insns))
    dropper.without({{pair.push, pair.push_flag}, {pair.pop, pair.pop_flag}}, pairs);
  for (const auto& [name, c] : {std::pair("bits", bits), std::pair("pairs", pairs)}) {
    fmt::print(
        "{}, {} instructions, {}: {} found by the checker, {} by a simulator only, "
        "{} redundant, {} unexplained\n",
        what, insns.size(), name, c.checker, c.simulator, c.redundant, c.unexplained);
    EXPECT_EQ(c.simulator, 0) << what << " " << name << ": the checker missed them";
    EXPECT_EQ(c.unexplained, 0) << what << " " << name;
    EXPECT_GT(c.checker, 0) << what << " " << name;
  }
  EXPECT_EQ(bits.redundant, 0) << "a queue cannot be balanced without one end";
}

Network one_layer() {
  Layers l(3);
  return make_network(l.finish(l.relu(l.conv(l.input({1, 32, 12, 12}), 32, 3, 1, 1))));
}

Network residual_block() {
  Layers l(4);
  const ValueId x = l.relu(l.conv(l.input({1, 32, 10, 10}), 32, 3, 1, 1));
  return make_network(l.finish(l.relu(l.b.node("Add", {l.conv(x, 32, 3, 1, 1), x}))));
}

/// Small memories, so that layers are cut into several tiles.
vta::Config small(const std::string& base) {
  vta::Config config = *vta::builtin_config(base);
  config.log_inp_buff -= 4;
  config.log_wgt_buff -= 4;
  config.log_acc_buff -= 4;
  EXPECT_TRUE(check(config));
  return config;
}

void drop_in(const Network& network, const vta::Config& config, const std::string& what) {
  const auto model = compile_network(network, config);
  ASSERT_TRUE(model) << to_string(model.error());
  for (const auto& [name, launch] : model->launches)
    drop_all(compile::vta_code(launch)->program, what);
}

TEST(VtaTokens, OneLayer) { drop_in(one_layer(), *vta::builtin_config("vta"), "one layer"); }
TEST(VtaTokens, OneLayerInTiles) {
  drop_in(one_layer(), small("vta"), "one layer, small memories");
}
TEST(VtaTokens, ResidualBlock) {
  drop_in(residual_block(), small("vta"), "residual block, small memories");
}
TEST(VtaTokens, FourModules) {
  drop_in(residual_block(), small("vta-extended"), "residual block, four modules");
}

}  // namespace
}  // namespace tilewright::e2e
