// Tokens between made-up queues, against brute force over the order that they give.
#include "tilewright/accel/common/tokens.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <set>

#include "tilewright/base/rng.h"

namespace tilewright::accel {
namespace {

constexpr size_t kMost = 1024;  ///< instructions that the oracle can take
using Row = std::bitset<kMost>;
constexpr int kMemories = 3;

/// Queues that all read and write all memories.
Queues made_up(int count, TokenPaths paths) {
  Queues out;
  for (int m = 0; m < kMemories; ++m) out.memories.push_back(fmt::format("m{}", m));
  for (int q = 0; q < count; ++q) out.list.push_back({fmt::format("q{}", q), {0, 1, 2}, {0, 1, 2}});
  out.paths = paths;
  return out;
}

/// Three and four queues with tokens between all pairs, and as a chain.
std::vector<Queues> designs() {
  return {made_up(3, TokenPaths::AnyPair), made_up(4, TokenPaths::AnyPair),
          made_up(3, TokenPaths::Neighbours), made_up(4, TokenPaths::Neighbours)};
}

struct Stream {
  std::vector<int> queue;
  std::vector<Footprint> footprints;

  void add(int q, Footprint footprint) {
    queue.push_back(q);
    footprints.push_back(std::move(footprint));
  }
};

Stream random_stream(const Queues& queues, Rng& rng, size_t length) {
  Stream stream;
  const int64_t space = rng.between(4, 24);
  for (size_t i = 0; i < length; ++i) {
    Footprint footprint;
    for (int64_t k = rng.between(0, 2); k > 0; --k) {
      Access access;
      access.memory = static_cast<int>(rng.below(kMemories));
      access.address = static_cast<uint64_t>(rng.below(space));
      access.rows = static_cast<uint32_t>(rng.between(0, 3));
      access.width = static_cast<uint64_t>(rng.between(0, 3));
      access.pitch = static_cast<uint64_t>(rng.between(0, 6));
      access.write = rng.chance(0.4);
      footprint.push_back(access);
    }
    stream.add(static_cast<int>(rng.below(queues.size())), footprint);
  }
  return stream;
}

/// Every place touched, and whether it is written.
std::map<std::pair<int, uint64_t>, bool> touched(const Footprint& footprint) {
  std::map<std::pair<int, uint64_t>, bool> out;
  for (const Access& access : footprint)
    for (uint32_t row = 0; row < access.rows; ++row)
      for (uint64_t at = 0; at < access.width; ++at) {
        bool& entry = out[{access.memory, access.address + row * access.pitch + at}];
        entry = entry || access.write;
      }
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

std::vector<Edge> conflicts_of(const Stream& stream) {
  std::vector<Edge> out;
  for (size_t j = 0; j < stream.queue.size(); ++j)
    for (size_t i = 0; i < j; ++i)
      if (touch_the_same(stream.footprints[i], stream.footprints[j])) out.push_back({i, j});
  return out;
}

/// What the slots mean: the k-th token given is the k-th taken, of each pair of queues.
struct Meaning {
  std::vector<int> queue;
  std::vector<Edge> tokens;
  bool balanced = true;
  size_t last = 0;  ///< slots
};

Meaning meaning_of(const Queues& queues, const std::vector<Slot>& slots) {
  Meaning out;
  out.last = slots.size();
  std::map<std::pair<int, int>, std::array<std::vector<size_t>, 2>> pairs;  // (from, to)
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    out.queue.push_back(slot.queue);
    for (int q = 0; q < 32; ++q) {
      if (slot.gives >> q & 1) pairs[{slot.queue, q}][0].push_back(i);
      if (slot.takes >> q & 1) pairs[{q, slot.queue}][1].push_back(i);
    }
  }
  for (const auto& [pair, ends] : pairs) {
    const bool legal = pair.first < queues.size() && pair.second < queues.size() &&
                       queues.linked(pair.first, pair.second);
    if (!legal || ends[0].size() != ends[1].size()) out.balanced = false;
    for (size_t k = 0; k < std::min(ends[0].size(), ends[1].size()); ++k)
      out.tokens.push_back({ends[0][k], ends[1][k]});
  }
  return out;
}

/// happens[i] has j: i is complete before j starts. Empty if there is a cycle.
std::vector<Row> happens_before(const Meaning& meaning, size_t without) {
  const size_t n = meaning.queue.size();
  std::vector<std::vector<size_t>> next(n);
  std::vector<size_t> waiting(n, 0);
  std::array<size_t, kMaxQueues> last;
  last.fill(n);
  const auto edge = [&](size_t from, size_t to) {
    next[from].push_back(to);
    ++waiting[to];
  };
  for (size_t i = 0; i < n; ++i) {
    size_t& before = last[static_cast<size_t>(meaning.queue[i])];
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

/// Where the given instructions are in `slots`.
std::vector<size_t> places(const std::vector<Slot>& slots) {
  std::vector<size_t> out;
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].given != kNoOp) {
      EXPECT_EQ(slots[i].given, out.size()) << "out of order";
      out.push_back(i);
    }
  return out;
}

/// The first pair that has to be ordered and is not; empty if there is none. `last`: the queue
/// that ends after all others; -1: none.
std::string unordered_pair(const std::vector<Slot>& slots, const std::vector<Edge>& conflicts,
                           const std::vector<Row>& happens, int last) {
  const std::vector<size_t> at = places(slots);
  for (const Edge& pair : conflicts)
    if (!happens[at[pair.from]].test(at[pair.to]))
      return fmt::format("{} and {}", pair.from, pair.to);
  size_t end = slots.size();
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].queue == last) end = i;
  for (size_t i = 0; last >= 0 && i < at.size(); ++i)
    if (slots[at[i]].queue != last && (end == slots.size() || !happens[at[i]].test(end)))
      return fmt::format("{} and the end", i);
  return {};
}

/// Most tokens that can be out at once between two queues, over all executions.
int64_t most_outstanding(const Meaning& meaning, const std::vector<Row>& happens) {
  int64_t most = 0;
  for (const Edge& given : meaning.tokens) {
    int64_t outstanding = 0;
    for (const Edge& other : meaning.tokens) {
      if (meaning.queue[other.from] != meaning.queue[given.from]) continue;
      if (meaning.queue[other.to] != meaning.queue[given.to]) continue;
      const bool there = other.from <= given.from;
      outstanding += there && !happens[other.to].test(given.from) ? 1 : 0;
    }
    most = std::max(most, outstanding);
  }
  return most;
}

/// Tokens that any order with these conflicts needs at least, if they can go anywhere: the pairs of
/// different queues with nothing between them.
size_t fewest(const Stream& stream, const std::vector<Edge>& conflicts) {
  const size_t n = stream.queue.size();
  std::vector<Row> direct(n), before(n);
  for (const Edge& pair : conflicts) direct[pair.from].set(pair.to);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j)
      if (stream.queue[i] == stream.queue[j]) direct[i].set(j);
  for (size_t i = n; i-- > 0;)
    for (size_t j = i + 1; j < n; ++j)
      if (direct[i].test(j)) (before[i] |= before[j]).set(j);
  size_t count = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      bool between = false;
      for (size_t k = i + 1; k < j; ++k) between |= before[i].test(k) && before[k].test(j);
      count += stream.queue[i] != stream.queue[j] && direct[i].test(j) && !between ? 1 : 0;
    }
  return count;
}

TEST(TokensSlow, OrderConflictsAndNothingElse) {
  size_t tokens = 0;
  for (const Queues& queues : designs())
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      SCOPED_TRACE(fmt::format("{} queues, seed {}", queues.size(), seed));
      Rng rng(seed);
      const Stream stream = random_stream(queues, rng, static_cast<size_t>(rng.between(0, 40)));
      TokenOptions options;
      options.last = seed % 3 == 0 ? -1 : static_cast<int>(rng.below(queues.size()));
      const auto slots = insert_tokens(queues, stream.queue, stream.footprints, options);
      ASSERT_TRUE(slots) << to_string(slots.error());
      const Meaning meaning = meaning_of(queues, *slots);
      EXPECT_TRUE(meaning.balanced);
      EXPECT_EQ(places(*slots).size(), stream.queue.size());
      for (const Slot& slot : *slots)
        EXPECT_TRUE(slot.given == kNoOp || slot.queue == stream.queue[slot.given]);
      const std::vector<Edge> conflicts = conflicts_of(stream);
      const auto happens = happens_before(meaning, meaning.tokens.size());
      ASSERT_EQ(happens.size(), slots->size()) << "deadlock";
      EXPECT_EQ(unordered_pair(*slots, conflicts, happens, options.last), "");
      for (const Edge& token : meaning.tokens) EXPECT_LT(token.from, token.to);
      for (size_t t = 0; t < meaning.tokens.size(); ++t)
        EXPECT_NE(unordered_pair(*slots, conflicts, happens_before(meaning, t), options.last), "")
            << "token " << meaning.tokens[t].from << " -> " << meaning.tokens[t].to
            << " is redundant";
      tokens += meaning.tokens.size();
    }
  EXPECT_GT(tokens, 2000u);
}

TEST(Tokens, BetweenAllPairsAreTheFewest) {
  for (int count : {3, 4})
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed * 5);
      const Queues queues = made_up(count, TokenPaths::AnyPair);
      const Stream stream = random_stream(queues, rng, static_cast<size_t>(rng.between(0, 40)));
      const auto slots = insert_tokens(queues, stream.queue, stream.footprints);
      ASSERT_TRUE(slots) << to_string(slots.error());
      EXPECT_EQ(slots->size(), stream.queue.size()) << "no-ops";
      EXPECT_EQ(meaning_of(queues, *slots).tokens.size(), fewest(stream, conflicts_of(stream)));
    }
}

TEST(Tokens, NoOpsOnlyPassTokens) {
  Rng rng(5);
  const Queues queues = made_up(4, TokenPaths::Neighbours);
  const Stream stream = random_stream(queues, rng, 200);
  const auto slots = insert_tokens(queues, stream.queue, stream.footprints);
  ASSERT_TRUE(slots);
  size_t no_ops = 0;
  for (const Slot& slot : *slots) {
    if (slot.given != kNoOp) continue;
    EXPECT_NE(slot.takes, 0u);
    EXPECT_NE(slot.gives, 0u);
    ++no_ops;
  }
  EXPECT_GT(no_ops, 10u);
}

TEST(TokensSlow, OutstandingOnesAreBounded) {
  for (Queues queues : designs())
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed * 77);
      const Stream stream = random_stream(queues, rng, static_cast<size_t>(rng.between(20, 80)));
      queues.most_tokens = static_cast<int>(rng.between(2, 5));
      const auto slots = insert_tokens(queues, stream.queue, stream.footprints, {false, 0});
      ASSERT_TRUE(slots);
      const Meaning meaning = meaning_of(queues, *slots);
      EXPECT_TRUE(meaning.balanced);
      const auto happens = happens_before(meaning, meaning.tokens.size());
      ASSERT_EQ(happens.size(), slots->size()) << "deadlock";
      EXPECT_EQ(unordered_pair(*slots, conflicts_of(stream), happens, 0), "");
      EXPECT_LE(most_outstanding(meaning, happens), queues.most_tokens);
    }
}

TEST(Tokens, WhoNeverWaitsDoesNotFloodOthers) {
  for (const Queues& queues : designs()) {
    Stream stream;
    for (uint64_t i = 0; i < 400; ++i) {
      stream.add(0, {{0, i * 16, 16, 16, 1, true}});
      stream.add(1, {{0, i * 16, 16, 16, 1, false}});
    }
    const auto slots = insert_tokens(queues, stream.queue, stream.footprints);
    ASSERT_TRUE(slots);
    const Meaning meaning = meaning_of(queues, *slots);
    const auto happens = happens_before(meaning, meaning.tokens.size());
    ASSERT_EQ(happens.size(), slots->size());
    EXPECT_LE(most_outstanding(meaning, happens), 254);
    EXPECT_GT(most_outstanding(meaning, happens), 100) << "but they do run ahead";
  }
}

TEST(Tokens, SerialOrdersEveryPair) {
  for (const Queues& queues : designs()) {
    Rng rng(3);
    const Stream stream = random_stream(queues, rng, 60);
    const auto slots = insert_tokens(queues, stream.queue, stream.footprints, {true, -1});
    ASSERT_TRUE(slots);
    const Meaning meaning = meaning_of(queues, *slots);
    EXPECT_TRUE(meaning.balanced);
    const auto happens = happens_before(meaning, meaning.tokens.size());
    ASSERT_EQ(happens.size(), slots->size());
    const std::vector<size_t> at = places(*slots);
    for (size_t i = 1; i < at.size(); ++i) EXPECT_TRUE(happens[at[i - 1]].test(at[i])) << i;
  }
}

TEST(Tokens, OneQueueNeedsNone) {
  const Queues queues = made_up(1, TokenPaths::AnyPair);
  const Footprint all = {one_row(0, 0, 10, true)};
  const auto slots = insert_tokens(queues, {0, 0}, {all, all}, {false, 0});
  ASSERT_TRUE(slots);
  ASSERT_EQ(slots->size(), 2u);
  for (const Slot& slot : *slots) EXPECT_EQ(slot.takes | slot.gives, 0u);
}

TEST(Tokens, RefuseWrongInput) {
  const auto refused = [](const Queues& queues, const std::vector<int>& queue,
                          const std::vector<Footprint>& footprints) {
    const auto slots = insert_tokens(queues, queue, footprints);
    return slots ? std::string() : to_string(slots.error());
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  Queues queues = made_up(2, TokenPaths::AnyPair);
  queues.list[1].writes = {2};
  expect(refused(queues, {0}, {}), "1 instructions, 0 footprints");
  expect(refused(queues, {2}, {{}}), "instruction 0 is in no queue");
  expect(refused(queues, {0}, {{one_row(3, 0, 1, false)}}), "touches memory 3");
  expect(refused(queues, {1}, {{one_row(0, 0, 1, true)}}),
         "writes memory 'm0', which queue 'q1' cannot");
  EXPECT_EQ(refused(queues, {1}, {{one_row(0, 0, 1, false)}}), "");
  queues.list[0].reads = {5};
  expect(refused(queues, {}, {}), "queue 'q0' names memory 5");
  expect(refused({}, {}, {}), "0 queues");
}

/// Tiles of a long program: what is loaded, used and stored moves through all memories.
TEST(TokensSlow, LongStreamsTakeLinearTime) {
  for (const Queues& queues : designs()) {
    Stream stream;
    for (uint64_t i = 0; stream.queue.size() < 50000; ++i) {
      const uint64_t in = i % 2 * 1024, out = i % 3 * 600;
      stream.add(0, {one_row(1, in, in + 1000, true), {0, i % 500 * 8192, 1024, 256, 16, false}});
      for (uint64_t k = 0; k < 4; ++k)
        stream.add(1, {one_row(1, in + k * 100, in + k * 100 + 700, false),
                       one_row(2, out + k * 150, out + k * 150 + 150, true)});
      stream.add(
          2, {one_row(2, out, out + 600, false), {0, (i + 100) % 500 * 8192, 1024, 512, 14, true}});
    }
    const auto slots = insert_tokens(queues, stream.queue, stream.footprints);
    ASSERT_TRUE(slots);
    EXPECT_TRUE(meaning_of(queues, *slots).balanced);
  }
}

}  // namespace
}  // namespace tilewright::accel
