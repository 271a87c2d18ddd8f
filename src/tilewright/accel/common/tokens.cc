#include "tilewright/accel/common/tokens.h"

#include <algorithm>
#include <utility>

#include "tilewright/accel/common/hazards.h"
#include "tilewright/base/check.h"

namespace tilewright::accel {
namespace {

/// Place in the stream: instruction i of the input has (i + 1) << kSlotBits, no-ops before it have
/// the values between it and the one before. 0: none.
using SlotKey = uint64_t;
constexpr int kSlotBits = 20;

SlotKey key_of(uint32_t stamp) { return SlotKey{stamp} << kSlotBits; }
bool is_given(SlotKey key) { return (key & ((SlotKey{1} << kSlotBits) - 1)) == 0; }
uint32_t bit(int queue) { return uint32_t{1} << queue; }

/// Vector clock: per queue, the last instruction that is complete.
using Stamps = std::array<SlotKey, kMaxQueues>;

void join(Stamps& clock, const Stamps& other) {
  for (size_t q = 0; q < clock.size(); ++q) clock[q] = std::max(clock[q], other[q]);
}

struct Node {
  SlotKey key = 0;
  uint32_t takes = 0, gives = 0;
  Stamps known{};  ///< complete before this one starts; the entry of its own queue is unused
};

/// The tokens from one queue to another.
struct PathState {
  bool bounded = false;         ///< tokens are sparse, and who gives waits when too many are out
  size_t given = 0;             ///< so far; only counted if bounded
  std::vector<SlotKey> takers;  ///< of each token; only kept if bounded
};

/// The queues whose tokens reach queue `q` through `neighbour`, itself first.
std::vector<int> side_of(const Queues& queues, int q, int neighbour) {
  if (queues.paths == TokenPaths::AnyPair) return {neighbour};
  std::vector<int> out;
  for (int a = neighbour; a >= 0 && a < queues.size(); a += neighbour - q) out.push_back(a);
  return out;
}

class Linker {
 public:
  Linker(const Queues& queues, size_t count) : queues_(queues), slots_(count + 1) {
    for (int q = 0; q < queues.size(); ++q)
      for (int n = 0; n < queues.size(); ++n)
        if (queues.linked(n, q))
          sides_[static_cast<size_t>(q)][static_cast<size_t>(n)] = side_of(queues, q, n);
  }

  void bound(int from, int to) { path(from, to).bounded = true; }
  void add(int q, Stamps needs, uint32_t index, bool given);
  void finish(int q);
  /// Two queues between which more than the permitted number of tokens can be out at once.
  bool find_overflow(int& from, int& to) const;
  std::vector<Slot> result() const;

 private:
  using Order = std::vector<Node>;

  Order& order(int q) { return orders_[static_cast<size_t>(q)]; }
  Stamps& now(int q) { return now_[static_cast<size_t>(q)]; }
  PathState& path(int from, int to) {
    return paths_[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }
  const std::vector<int>& side(int q, int neighbour) const {
    return sides_[static_cast<size_t>(q)][static_cast<size_t>(neighbour)];
  }
  Node& find(int q, SlotKey key);
  SlotKey fresh_key(uint32_t stamp);
  void link(int source_queue, SlotKey from, int q, Node& to);
  SlotKey satisfy(int q, int asker, const Stamps& needs);
  SlotKey pass_through(int q, int source_queue, int asker, SlotKey from, SlotKey own);
  SlotKey pass_through_last(int q, int source_queue, int asker, SlotKey from);
  SlotKey relieve(int q, int taker);
  void drop_implied(const Stamps& needs, Stamps& from);

  const Queues& queues_;
  std::vector<uint32_t> slots_;  ///< no-ops so far before each instruction
  uint32_t current_ = 0;         ///< index of the instruction being added
  std::array<Order, kMaxQueues> orders_;
  std::array<Stamps, kMaxQueues> now_{};  ///< what the next instruction of a queue knows
  std::array<std::array<PathState, kMaxQueues>, kMaxQueues> paths_;
  std::array<std::array<std::vector<int>, kMaxQueues>, kMaxQueues> sides_;
};

Node& Linker::find(int q, SlotKey key) {
  Order& nodes = order(q);
  const auto at = std::lower_bound(nodes.begin(), nodes.end(), key,
                                   [](const Node& node, SlotKey k) { return node.key < k; });
  TW_CHECK(at != nodes.end() && at->key == key);
  return *at;
}

SlotKey Linker::fresh_key(uint32_t stamp) { return key_of(stamp) + ++slots_[stamp]; }

/// One token from instruction `from` of `source_queue` to `to`, in queue `q`.
void Linker::link(int source_queue, SlotKey from, int q, Node& to) {
  Node& source = find(source_queue, from);
  TW_CHECK(!(source.gives & bit(q)) && !(to.takes & bit(source_queue)),
           "two tokens between the same queues in one instruction");
  source.gives |= bit(q);
  to.takes |= bit(source_queue);
  join(to.known, source.known);
  SlotKey& known = to.known[static_cast<size_t>(source_queue)];
  known = std::max(known, from);
  PathState& state = path(source_queue, q);
  if (!state.bounded) return;
  ++state.given;
  state.takers.push_back(to.key);
}

/// The first instruction of queue `q` that is complete only after everything in `needs` of `q` and
/// of the queues behind it, as `asker` sees them. Adds no-ops where no instruction passes the order
/// on.
SlotKey Linker::satisfy(int q, int asker, const Stamps& needs) {
  const SlotKey own = needs[static_cast<size_t>(q)];
  const std::vector<int>& queues = side(asker, q);
  SlotKey carrier = 0;
  bool missing = false;
  for (size_t i = 1; i < queues.size(); ++i) {
    const int a = queues[i];
    const SlotKey need = needs[static_cast<size_t>(a)];
    if (need == 0) continue;
    const auto at = std::partition_point(order(q).begin(), order(q).end(), [&](const Node& node) {
      return node.known[static_cast<size_t>(a)] < need;
    });
    missing = missing || at == order(q).end();
    if (at != order(q).end()) carrier = std::max(carrier, at->key);
  }
  if (missing) carrier = pass_through(q, queues[1], asker, satisfy(queues[1], q, needs), own);
  SlotKey found = std::max(own, carrier);
  // On a bounded path, the last instruction gives: its token stands for all before it.
  if (path(q, asker).bounded) found = order(q).back().key;
  return found;
}

/// Makes an instruction of queue `q` wait for `from`, so that it can pass the order on to `asker`:
/// the one that is waited for anyway (`own`, 0: none), or a no-op as early as the order of the
/// tokens on both paths allows. Early, because whatever stands before the no-op delays whoever
/// asks.
SlotKey Linker::pass_through(int q, int source_queue, int asker, SlotKey from, SlotKey own) {
  if (path(q, asker).bounded || path(source_queue, q).bounded)
    return pass_through_last(q, source_queue, asker, from);
  Order& nodes = order(q);
  // Tokens of one path are matched in order: the new one is the last that queue `q` takes from the
  // one side, and the last that it gives to the other.
  const auto last = std::find_if(nodes.rbegin(), nodes.rend(), [&](const Node& node) {
    return node.key <= from || (node.takes & bit(source_queue)) || (node.gives & bit(asker));
  });
  const SlotKey after = std::max(from, last == nodes.rend() ? 0 : last->key);
  auto at = nodes.end();
  if (own > after) {
    at = std::partition_point(nodes.begin(), nodes.end(),
                              [&](const Node& node) { return node.key < own; });
  } else {
    Node node;
    node.key = fresh_key(static_cast<uint32_t>(after >> kSlotBits));
    at = std::partition_point(nodes.begin(), nodes.end(),
                              [&](const Node& other) { return other.key < node.key; });
    node.known = at == nodes.begin() ? Stamps{} : std::prev(at)->known;
    at = nodes.insert(at, node);
  }
  link(source_queue, from, q, *at);
  // Nobody asked those behind it yet, except queues that are past `from` themselves.
  const Stamps known = at->known;
  for (auto it = at; it != nodes.end(); ++it) join(it->known, known);
  join(now(q), known);
  return at->key;
}

/// The same where a path is bounded: a no-op at the end of what the queue has so far.
SlotKey Linker::pass_through_last(int q, int source_queue, int asker, SlotKey from) {
  Node node;
  node.known = now(q);
  SlotKey relief = relieve(q, asker);
  if (relief != 0 && path(asker, q).bounded) relief = order(asker).back().key;
  node.key = fresh_key(current_);
  link(source_queue, from, q, node);
  if (relief != 0) link(asker, relief, q, node);
  now(q) = node.known;
  order(q).push_back(node);
  return order(q).back().key;
}

/// The instruction of queue `taker` that a new one of queue `q` has to wait for, so that it can
/// give one more token to it; 0: none.
SlotKey Linker::relieve(int q, int taker) {
  const PathState& state = path(q, taker);
  const auto limit = static_cast<size_t>(queues_.most_tokens);
  if (!state.bounded || state.given + 1 < limit) return 0;
  const SlotKey known = now(q)[static_cast<size_t>(taker)];
  const auto taken = static_cast<size_t>(
      std::upper_bound(state.takers.begin(), state.takers.end(), known) - state.takers.begin());
  // Besides the token of the new instruction there can be one for a no-op that is added with it.
  if (state.given + 2 - taken <= limit) return 0;
  return state.takers[state.given - (limit + 1) / 2];
}

/// Leaves out the sources of tokens (`from`, by queue) whose order another one brings along.
void Linker::drop_implied(const Stamps& needs, Stamps& from) {
  const auto covered = [&](int a) {
    const SlotKey need = needs[static_cast<size_t>(a)];
    if (need <= from[static_cast<size_t>(a)]) return true;
    for (int b = 0; b < queues_.size(); ++b) {
      const SlotKey key = from[static_cast<size_t>(b)];
      if (key != 0 && find(b, key).known[static_cast<size_t>(a)] >= need) return true;
    }
    return false;
  };
  for (SlotKey& source : from) {
    if (source == 0) continue;
    const SlotKey kept = std::exchange(source, 0);
    bool all = true;
    for (int a = 0; a < queues_.size(); ++a) all = all && covered(a);
    if (!all) source = kept;
  }
}

/// Adds an instruction that waits for `needs`: input `index`, or a no-op before it.
void Linker::add(int q, Stamps needs, uint32_t index, bool given) {
  current_ = index;
  Stamps from{};
  needs[static_cast<size_t>(q)] = 0;
  for (int n = 0; n < queues_.size(); ++n) {
    if (!queues_.linked(n, q)) continue;
    if (const SlotKey relief = relieve(q, n)) {
      SlotKey& need = needs[static_cast<size_t>(n)];
      need = std::max(need, relief);
    }
    bool wanted = false;
    for (const int a : side(q, n)) {
      SlotKey& need = needs[static_cast<size_t>(a)];
      if (need <= now(q)[static_cast<size_t>(a)]) need = 0;
      wanted = wanted || need != 0;
    }
    if (wanted) from[static_cast<size_t>(n)] = satisfy(n, q, needs);
  }
  // In a chain, one side knows of the other only what it heard from this queue.
  if (queues_.paths == TokenPaths::AnyPair) drop_implied(needs, from);
  Node node;
  node.known = now(q);
  node.key = given ? key_of(index + 1) : fresh_key(index);
  for (int n = 0; n < queues_.size(); ++n)
    if (from[static_cast<size_t>(n)] != 0) link(n, from[static_cast<size_t>(n)], q, node);
  now(q) = node.known;
  order(q).push_back(node);
}

/// A no-op of queue `q` that waits for the end of all others, if something is left to wait for.
void Linker::finish(int q) {
  Stamps needs{};
  bool wanted = false;
  for (int a = 0; a < queues_.size(); ++a) {
    if (a == q || order(a).empty()) continue;
    needs[static_cast<size_t>(a)] = order(a).back().key;
    wanted = wanted || order(a).back().key > now(q)[static_cast<size_t>(a)];
  }
  if (wanted) add(q, needs, static_cast<uint32_t>(slots_.size() - 1), false);
}

bool Linker::find_overflow(int& from, int& to) const {
  for (from = 0; from < queues_.size(); ++from) {
    for (to = 0; to < queues_.size(); ++to) {
      if (!queues_.linked(from, to)) continue;
      std::vector<SlotKey> takers;
      for (const Node& node : orders_[static_cast<size_t>(to)])
        if (node.takes & bit(from)) takers.push_back(node.key);
      int64_t given = 0;
      for (const Node& node : orders_[static_cast<size_t>(from)]) {
        if (!(node.gives & bit(to))) continue;
        const SlotKey known = node.known[static_cast<size_t>(to)];
        const auto taken = std::upper_bound(takers.begin(), takers.end(), known) - takers.begin();
        if (++given - taken > queues_.most_tokens) return true;
      }
    }
  }
  return false;
}

std::vector<Slot> Linker::result() const {
  std::vector<std::pair<const Node*, int>> nodes;
  for (int q = 0; q < queues_.size(); ++q)
    for (const Node& node : orders_[static_cast<size_t>(q)]) nodes.emplace_back(&node, q);
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a.first->key < b.first->key; });
  std::vector<Slot> out;
  out.reserve(nodes.size());
  for (const auto& [node, queue] : nodes)
    out.push_back({queue, is_given(node->key) ? (node->key >> kSlotBits) - 1 : kNoOp, node->takes,
                   node->gives});
  return out;
}

}  // namespace

Result<std::vector<Slot>> insert_tokens(const Queues& queues, const std::vector<int>& queue,
                                        const std::vector<Footprint>& footprints,
                                        const TokenOptions& options) {
  TW_TRY_STATUS(check(queues));
  TW_TRY_STATUS(check_accesses(queues, queue, footprints));
  TW_CHECK(options.last < queues.size(), "queue {}", options.last);
  const size_t count = queue.size();
  const std::vector<Waits> waits =
      options.serial ? std::vector<Waits>(count) : find_waits(queues, queue, footprints);
  std::vector<std::pair<int, int>> bounded;
  while (true) {
    Linker linker(queues, count);
    for (const auto& [from, to] : bounded) linker.bound(from, to);
    for (size_t i = 0; i < count; ++i) {
      Stamps needs{};
      for (size_t q = 0; q < kMaxQueues; ++q) needs[q] = key_of(waits[i][q]);
      if (options.serial && i > 0)
        needs[static_cast<size_t>(queue[i - 1])] = key_of(static_cast<uint32_t>(i));
      linker.add(queue[i], needs, static_cast<uint32_t>(i), true);
    }
    if (options.last >= 0) linker.finish(options.last);
    int from = 0, to = 0;
    if (!linker.find_overflow(from, to)) return linker.result();
    TW_CHECK(std::find(bounded.begin(), bounded.end(), std::pair(from, to)) == bounded.end());
    bounded.emplace_back(from, to);
  }
}

}  // namespace tilewright::accel
