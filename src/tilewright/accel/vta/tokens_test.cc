#include "tilewright/accel/vta/tokens.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <set>

#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

constexpr size_t kMost = 1024;  ///< instructions that the oracle can take
using Row = std::bitset<kMost>;

Config design(bool pipeline4) {
  Config config;
  config.extensions.pipeline4 = pipeline4;
  return config;
}

/// An instruction that `module` executes; what it touches is said by a footprint of its own.
Insn insn_of(Module module) {
  Insn insn;
  Transfer transfer;
  transfer.x_size = transfer.y_size = 1;
  switch (module) {
    case Module::Load:
      insn.op = transfer;
      break;
    case Module::Compute:
      insn.op = Gemm{};
      break;
    case Module::Alu:
      insn.op = Alu{};
      break;
    case Module::Store:
      transfer.store = true;
      transfer.mem = Mem::Out;
      insn.op = transfer;
      break;
  }
  return insn;
}

struct Stream {
  std::vector<Insn> insns;
  std::vector<Footprint> footprints;

  void add(Module module, Footprint footprint) {
    insns.push_back(insn_of(module));
    footprints.push_back(std::move(footprint));
  }
};

SramRange sram(Mem mem, uint32_t begin, uint32_t end, bool write) {
  return SramRange{mem, begin, end, write};
}

Stream random_stream(const Config& config, Rng& rng, size_t length) {
  const std::vector<Module> chain = modules(config);
  Stream stream;
  const int64_t space = rng.between(4, 24);
  for (size_t i = 0; i < length; ++i) {
    Footprint footprint;
    for (int64_t k = rng.between(0, 2); k > 0; --k) {
      if (rng.chance(0.4)) {
        DramRows rows;
        rows.address = static_cast<uint64_t>(rng.below(space));
        rows.rows = static_cast<uint32_t>(rng.between(1, 3));
        rows.width = static_cast<uint64_t>(rng.between(1, 3));
        rows.pitch = static_cast<uint64_t>(rng.between(0, 6));
        rows.write = rng.chance(0.4);
        footprint.dram.push_back(rows);
      } else {
        const auto begin = static_cast<uint32_t>(rng.below(space));
        const auto size = static_cast<uint32_t>(rng.between(0, 4));
        const Mem mem = rng.chance(0.5) ? Mem::Inp : rng.chance(0.5) ? Mem::Acc : Mem::Acc8;
        footprint.sram.push_back(sram(mem, begin, begin + size, rng.chance(0.4)));
      }
    }
    stream.add(chain[static_cast<size_t>(rng.below(std::ssize(chain)))], footprint);
  }
  return stream;
}

/// Every place touched, and whether it is written.
std::map<std::pair<int, uint64_t>, bool> touched(const Footprint& footprint) {
  std::map<std::pair<int, uint64_t>, bool> out;
  const auto touch = [&](int space, uint64_t at, bool write) {
    bool& entry = out[std::pair(space, at)];
    entry = entry || write;
  };
  for (const SramRange& range : footprint.sram)
    for (uint32_t at = range.begin; at < range.end; ++at)
      touch(static_cast<int>(range.mem == Mem::Acc8 ? Mem::Acc : range.mem), at, range.write);
  for (const DramRows& rows : footprint.dram)
    for (uint32_t row = 0; row < rows.rows; ++row)
      for (uint64_t at = 0; at < rows.width; ++at)
        touch(-1, rows.address + row * rows.pitch + at, rows.write);
  return out;
}

bool touch_the_same(const Footprint& a, const Footprint& b) {
  const auto left = touched(a), right = touched(b);
  return std::any_of(left.begin(), left.end(), [&](const auto& entry) {
    const auto found = right.find(entry.first);
    return found != right.end() && (entry.second || found->second);
  });
}

struct Edge {
  size_t from = 0, to = 0;
};

/// What the annotated stream means: order inside modules, and k-th push to k-th pop of each queue.
struct Meaning {
  std::vector<int> place;
  std::vector<Edge> tokens;
  bool balanced = true;
};

Meaning meaning_of(const Config& config, const std::vector<Insn>& insns) {
  const std::vector<Module> chain = modules(config);
  Meaning out;
  std::map<std::pair<int, int>, std::vector<size_t>> pushes, pops;  // by (from, to)
  for (size_t i = 0; i < insns.size(); ++i) {
    const Module module = module_of(config, insns[i]);
    const auto m = static_cast<int>(std::find(chain.begin(), chain.end(), module) - chain.begin());
    out.place.push_back(m);
    const Deps& deps = insns[i].deps;
    if (deps.push_prev) pushes[{m, m - 1}].push_back(i);
    if (deps.push_next) pushes[{m, m + 1}].push_back(i);
    if (deps.pop_prev) pops[{m - 1, m}].push_back(i);
    if (deps.pop_next) pops[{m + 1, m}].push_back(i);
  }
  std::set<std::pair<int, int>> queues;
  for (const auto& entry : pushes) queues.insert(entry.first);
  for (const auto& entry : pops) queues.insert(entry.first);
  for (const std::pair<int, int>& queue : queues) {
    const std::vector<size_t>&from = pushes[queue], &to = pops[queue];
    const auto outside = [&](int m) { return m < 0 || m >= std::ssize(chain); };
    if (from.size() != to.size() || outside(queue.first) || outside(queue.second))
      out.balanced = false;
    for (size_t k = 0; k < std::min(from.size(), to.size()); ++k)
      out.tokens.push_back({from[k], to[k]});
  }
  return out;
}

/// happens[i] has j: i is complete before j starts. Empty if there is a cycle.
std::vector<Row> happens_before(const Meaning& meaning, size_t without) {
  const size_t n = meaning.place.size();
  std::vector<std::vector<size_t>> next(n);
  std::vector<size_t> waiting(n, 0);
  std::array<size_t, 4> last;
  last.fill(n);
  const auto edge = [&](size_t from, size_t to) {
    next[from].push_back(to);
    ++waiting[to];
  };
  for (size_t i = 0; i < n; ++i) {
    size_t& before = last[static_cast<size_t>(meaning.place[i])];
    if (before < n) edge(before, i);
    before = i;
  }
  for (size_t t = 0; t < meaning.tokens.size(); ++t)
    if (t != without) edge(meaning.tokens[t].from, meaning.tokens[t].to);
  std::vector<size_t> order;
  for (size_t i = 0; i < n; ++i)
    if (waiting[i] == 0) order.push_back(i);
  for (size_t k = 0; k < order.size(); ++k)
    for (size_t to : next[order[k]])
      if (--waiting[to] == 0) order.push_back(to);
  if (order.size() < n) return {};
  std::vector<Row> happens(n);
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    for (size_t to : next[*it]) (happens[*it] |= happens[to]).set(to);
  return happens;
}

/// The first pair that has to be ordered and is not; empty if there is none.
std::string unordered_pair(const Stream& stream, const Annotated& result,
                           const std::vector<Edge>& conflicts, const std::vector<Row>& happens) {
  for (const Edge& pair : conflicts)
    if (!happens[result.index[pair.from]].test(result.index[pair.to]))
      return fmt::format("{} and {}", pair.from, pair.to);
  for (size_t i = 0; i < stream.insns.size(); ++i)
    if (!happens[result.index[i]].test(result.insns.size() - 1))
      return fmt::format("{} and FINISH", i);
  return {};
}

std::vector<Edge> conflicts_of(const Stream& stream) {
  std::vector<Edge> out;
  for (size_t j = 0; j < stream.insns.size(); ++j)
    for (size_t i = 0; i < j; ++i)
      if (touch_the_same(stream.footprints[i], stream.footprints[j])) out.push_back({i, j});
  return out;
}

/// Most tokens that can be in a queue at once, over all executions.
int64_t most_outstanding(const Meaning& meaning, const std::vector<Row>& happens) {
  int64_t most = 0;
  for (const Edge& pushed : meaning.tokens) {
    int64_t outstanding = 0;
    for (const Edge& other : meaning.tokens) {
      if (meaning.place[other.from] != meaning.place[pushed.from]) continue;
      if (meaning.place[other.to] != meaning.place[pushed.to]) continue;
      const bool there = other.from <= pushed.from;
      outstanding += there && !happens[other.to].test(pushed.from) ? 1 : 0;
    }
    most = std::max(most, outstanding);
  }
  return most;
}

TEST(Tokens, OrdersConflictsAndNothingElse) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Config config = design(seed % 2 == 0);
    const Stream stream = random_stream(config, rng, static_cast<size_t>(rng.between(0, 40)));
    const auto result = insert_tokens(config, stream.insns, stream.footprints);
    ASSERT_TRUE(result) << to_string(result.error());
    const Meaning meaning = meaning_of(config, result->insns);
    EXPECT_TRUE(meaning.balanced);
    EXPECT_TRUE(std::holds_alternative<Finish>(result->insns.back().op));
    EXPECT_EQ(result->insns.back().deps, Deps());
    const std::vector<Edge> conflicts = conflicts_of(stream);
    const auto happens = happens_before(meaning, meaning.tokens.size());
    ASSERT_EQ(happens.size(), result->insns.size()) << "deadlock";
    EXPECT_EQ(unordered_pair(stream, *result, conflicts, happens), "");
    for (const Edge& token : meaning.tokens) EXPECT_LT(token.from, token.to);
    for (size_t t = 0; t < meaning.tokens.size(); ++t) {
      const auto without = happens_before(meaning, t);
      EXPECT_NE(unordered_pair(stream, *result, conflicts, without), "")
          << "token " << meaning.tokens[t].from << " -> " << meaning.tokens[t].to
          << " is redundant";
    }
    for (size_t i = 0; i < stream.insns.size(); ++i) {
      if (i > 0) {
        EXPECT_LT(result->index[i - 1], result->index[i]);
      }
      Insn plain = result->insns[result->index[i]];
      plain.deps = {};
      EXPECT_EQ(plain, stream.insns[i]);
    }
  }
}

TEST(Tokens, NoOpsOnlyPassTokens) {
  Rng rng(5);
  const Config config = design(true);
  const Stream stream = random_stream(config, rng, 200);
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  std::set<size_t> given(result->index.begin(), result->index.end());
  size_t no_ops = 0;
  for (size_t i = 0; i + 1 < result->insns.size(); ++i) {
    if (given.contains(i)) continue;
    const auto* transfer = std::get_if<Transfer>(&result->insns[i].op);
    ASSERT_NE(transfer, nullptr);
    EXPECT_FALSE(transfer->moves());
    EXPECT_NE(result->insns[i].deps, Deps());
    ++no_ops;
  }
  EXPECT_GT(no_ops, 10u);
}

TEST(Tokens, NoOpIsExecutedByItsModule) {
  for (bool pipeline4 : {false, true})
    for (Module module : modules(design(pipeline4)))
      EXPECT_EQ(module_of(design(pipeline4), no_op(module)), module);
}

TEST(Tokens, DoubleBufferingNeedsOneTokenEachWay) {
  const Config config = design(false);
  Stream stream;
  for (uint32_t i = 0; i < 6; ++i) {
    const uint32_t half = i % 2 * 8;
    stream.add(Module::Load, {{sram(Mem::Inp, half, half + 8, true)}, {}});
    stream.add(Module::Compute, {{sram(Mem::Inp, half, half + 8, false)}, {}});
  }
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  for (size_t i = 0; i < 6; ++i) {
    const Deps load = result->insns[result->index[2 * i]].deps;
    const Deps gemm = result->insns[result->index[2 * i + 1]].deps;
    EXPECT_EQ(load, (Deps{.pop_next = i >= 2, .push_next = true})) << i;
    EXPECT_EQ(gemm, (Deps{.pop_prev = true, .push_prev = i + 2 < 6})) << i;
  }
  EXPECT_EQ(result->insns.size(), 13u) << "FINISH follows the last load by the last GEMM";
}

TEST(Tokens, LoadAfterStorePassesThroughCompute) {
  const Config config = design(false);
  Stream stream;
  const DramRows written{0, 16, 16, 4, true}, read{32, 16, 16, 1, false};
  stream.add(Module::Store, {{}, {written}});
  stream.add(Module::Compute, {});
  stream.add(Module::Load, {{}, {read}});
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  // STORE, no-op, GEMM, LOAD: compute waits before its last instruction, which LOAD does not need.
  EXPECT_EQ(result->index, (std::vector<size_t>{0, 2, 3}));
  EXPECT_EQ(result->insns[0].deps, (Deps{.push_prev = true}));
  EXPECT_EQ(result->insns[1].deps, (Deps{.pop_next = true, .push_prev = true}));
  EXPECT_EQ(result->insns[3].deps, (Deps{.pop_next = true, .push_next = true}));
  // Rows that lie between the written ones do not conflict.
  stream.footprints[0].dram[0].pitch = 48;
  const auto apart = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->insns[apart->index[2]].deps, (Deps{.push_next = true}));
}

TEST(Tokens, RelayOfAStoreDoesNotWaitForTheNextTile) {
  const Config config = design(true);
  Stream stream;
  constexpr size_t kPasses = 8, kPerTile = kPasses + 2;
  for (uint32_t tile = 0; tile < 4; ++tile) {
    const uint32_t half = tile % 2 * 64;
    stream.add(Module::Compute, {{sram(Mem::Out, half, half + 64, true)}, {}});
    for (size_t pass = 0; pass < kPasses; ++pass)
      stream.add(Module::Alu, {{sram(Mem::Out, half, half + 64, true)}, {}});
    stream.add(Module::Store, {{sram(Mem::Out, half, half + 64, false)}, {}});
  }
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  // GEMM of tile 2 writes what tile 0 stores: the ALU passes that on before it begins tile 1.
  const size_t store = result->index[kPerTile - 1], next = result->index[kPerTile + 1];
  ASSERT_LT(store, next);
  const auto relay = std::find_if(
      result->insns.begin() + static_cast<std::ptrdiff_t>(store),
      result->insns.begin() + static_cast<std::ptrdiff_t>(next), [&](const Insn& insn) {
        return module_of(config, insn) == Module::Alu && insn.deps.pop_next && insn.deps.push_prev;
      });
  EXPECT_NE(relay, result->insns.begin() + static_cast<std::ptrdiff_t>(next));
}

TEST(Tokens, OutstandingTokensAreBounded) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed * 77);
    const Config config = design(seed % 2 == 0);
    const Stream stream = random_stream(config, rng, static_cast<size_t>(rng.between(20, 80)));
    TokenOptions options;
    options.max_outstanding = static_cast<int>(rng.between(2, 5));
    const auto result = insert_tokens(config, stream.insns, stream.footprints, options);
    ASSERT_TRUE(result);
    const Meaning meaning = meaning_of(config, result->insns);
    EXPECT_TRUE(meaning.balanced);
    const auto happens = happens_before(meaning, meaning.tokens.size());
    ASSERT_EQ(happens.size(), result->insns.size()) << "deadlock";
    EXPECT_EQ(unordered_pair(stream, *result, conflicts_of(stream), happens), "");
    EXPECT_LE(most_outstanding(meaning, happens), options.max_outstanding);
  }
}

TEST(Tokens, StoresThatNeverWaitDoNotFloodAQueue) {
  const Config config = design(false);
  Stream stream;
  for (uint64_t i = 0; i < 400; ++i) {
    stream.add(Module::Store, {{}, {{i * 16, 16, 16, 1, true}}});
    stream.add(Module::Compute, {{}, {{i * 16, 16, 16, 1, false}}});
  }
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  const Meaning meaning = meaning_of(config, result->insns);
  const auto happens = happens_before(meaning, meaning.tokens.size());
  ASSERT_EQ(happens.size(), result->insns.size());
  EXPECT_LE(most_outstanding(meaning, happens), 254);
  EXPECT_GT(most_outstanding(meaning, happens), 100) << "but they do run ahead";
}

TEST(Tokens, SerialOrdersEveryPair) {
  for (bool pipeline4 : {false, true}) {
    Rng rng(3);
    const Config config = design(pipeline4);
    const Stream stream = random_stream(config, rng, 60);
    TokenOptions options;
    options.serial = true;
    const auto result = insert_tokens(config, stream.insns, stream.footprints, options);
    ASSERT_TRUE(result);
    const Meaning meaning = meaning_of(config, result->insns);
    EXPECT_TRUE(meaning.balanced);
    const auto happens = happens_before(meaning, meaning.tokens.size());
    ASSERT_EQ(happens.size(), result->insns.size());
    for (size_t i = 1; i < stream.insns.size(); ++i)
      EXPECT_TRUE(happens[result->index[i - 1]].test(result->index[i])) << i;
  }
}

TEST(Tokens, EmptyStreamIsFinish) {
  const auto result = insert_tokens(design(false), {}, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->insns.size(), 1u);
}

TEST(Tokens, RefusesWrongInput) {
  Insn finish;
  finish.op = Finish{};
  EXPECT_EQ(insert_tokens(design(false), {finish}, {{}}).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(insert_tokens(design(false), {insn_of(Module::Load)}, {}).error().kind,
            ErrorKind::Invalid);
}

/// Tiles of a long program: what is loaded, used and stored moves through all memories.
TEST(Tokens, LongStreamsTakeLinearTime) {
  const Config config = design(false);
  Stream stream;
  for (uint32_t i = 0; stream.insns.size() < 50000; ++i) {
    const uint32_t inp = i % 2 * 1024, acc = i % 3 * 600;
    const uint64_t from = i % 500 * 8192;
    stream.add(Module::Load,
               {{sram(Mem::Inp, inp, inp + 1000, true)}, {{from, 1024, 256, 16, false}}});
    for (uint32_t k = 0; k < 4; ++k)
      stream.add(Module::Compute, {{sram(Mem::Inp, inp + k * 100, inp + k * 100 + 700, false),
                                    sram(Mem::Out, acc + k * 150, acc + k * 150 + 150, true)},
                                   {}});
    stream.add(Module::Store, {{sram(Mem::Out, acc, acc + 600, false)},
                               {{(i + 100) % 500 * 8192, 1024, 512, 14, true}}});
  }
  const auto result = insert_tokens(config, stream.insns, stream.footprints);
  ASSERT_TRUE(result);
  EXPECT_TRUE(meaning_of(config, result->insns).balanced);
}

}  // namespace
}  // namespace tilewright::vta
