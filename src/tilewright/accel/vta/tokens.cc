#include "tilewright/accel/vta/tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/vta/hazards.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

/// Place in the stream: instruction i of the input has (i + 1) << kSlotBits, no-ops before it have
/// the values between it and the one before. 0: none.
using SlotKey = uint64_t;
constexpr int kSlotBits = 20;

SlotKey key_of(uint32_t stamp) { return SlotKey{stamp} << kSlotBits; }
bool is_given(SlotKey key) { return (key & ((SlotKey{1} << kSlotBits) - 1)) == 0; }

/// Vector clock: per module, the last instruction that is complete.
using Stamps = std::array<SlotKey, kMaxModules>;

void join(Stamps& clock, const Stamps& other) {
  for (size_t m = 0; m < clock.size(); ++m) clock[m] = std::max(clock[m], other[m]);
}

struct Node {
  SlotKey key = 0;
  Insn insn;
  Stamps known{};  ///< complete before this one starts; the entry of its own module is unused
};

/// Queues by the module that pushes and the direction: 0 to the previous, 1 to the next module.
struct QueueState {
  bool bounded = false;          ///< tokens are sparse, and who pushes waits when too many are out
  size_t pushes = 0;             ///< so far; only counted if bounded
  std::vector<SlotKey> poppers;  ///< of each token; only kept if bounded
};

class Linker {
 public:
  Linker(const Config& config, const TokenOptions& options, size_t count)
      : chain_(modules(config)), options_(options), slots_(count + 1) {}

  int place(const Insn& insn, const Config& config) const {
    const auto at = std::find(chain_.begin(), chain_.end(), module_of(config, insn));
    TW_CHECK(at != chain_.end());
    return static_cast<int>(at - chain_.begin());
  }
  int length() const { return static_cast<int>(chain_.size()); }
  void bound(int module, int direction) { queue(module, direction).bounded = true; }

  void add(int m, const Insn& insn, Stamps needs, uint32_t index, bool given);
  void finish(int m);
  /// The queue in which more than the permitted number of tokens can be out at once.
  bool find_overflow(int& module, int& direction) const;
  Annotated result(size_t count) const;

 private:
  using Order = std::vector<Node>;

  Order& order(int m) { return orders_[static_cast<size_t>(m)]; }
  Stamps& now(int m) { return now_[static_cast<size_t>(m)]; }
  QueueState& queue(int m, int direction) {
    return queues_[static_cast<size_t>(m)][direction > 0 ? 1 : 0];
  }
  bool inside(int m) const { return m >= 0 && m < length(); }
  Node& find(int m, SlotKey key);
  SlotKey fresh_key(uint32_t stamp);
  void link(int from_module, SlotKey from, int m, Node& to);
  SlotKey satisfy(int m, int direction, const Stamps& needs);
  SlotKey pass_through(int m, int direction, SlotKey from, SlotKey own);
  SlotKey pass_through_last(int m, int direction, SlotKey from);
  SlotKey relieve(int m, int direction);

  std::vector<Module> chain_;
  TokenOptions options_;
  std::vector<uint32_t> slots_;  ///< no-ops so far before each instruction
  uint32_t current_ = 0;         ///< index of the instruction being added
  std::array<Order, kMaxModules> orders_;
  std::array<Stamps, kMaxModules> now_{};  ///< what the next instruction of a module knows
  std::array<std::array<QueueState, 2>, kMaxModules> queues_;
};

Node& Linker::find(int m, SlotKey key) {
  Order& nodes = order(m);
  const auto at = std::lower_bound(nodes.begin(), nodes.end(), key,
                                   [](const Node& node, SlotKey k) { return node.key < k; });
  TW_CHECK(at != nodes.end() && at->key == key);
  return *at;
}

SlotKey Linker::fresh_key(uint32_t stamp) { return key_of(stamp) + ++slots_[stamp]; }

/// One token from instruction `from` of a neighbouring module to `to`.
void Linker::link(int from_module, SlotKey from, int m, Node& to) {
  Node& source = find(from_module, from);
  const bool to_next = m > from_module;
  bool& push = to_next ? source.insn.deps.push_next : source.insn.deps.push_prev;
  bool& pop = to_next ? to.insn.deps.pop_prev : to.insn.deps.pop_next;
  TW_CHECK(!push && !pop, "two tokens of one queue in one instruction");
  push = pop = true;
  join(to.known, source.known);
  SlotKey& known = to.known[static_cast<size_t>(from_module)];
  known = std::max(known, from);
  QueueState& state = queue(from_module, m - from_module);
  if (!state.bounded) return;
  ++state.pushes;
  state.poppers.push_back(to.key);
}

/// The first instruction of module `m` that is complete only after everything in `needs` of `m` and
/// of the modules beyond it. Adds no-ops where no instruction passes the order on.
SlotKey Linker::satisfy(int m, int direction, const Stamps& needs) {
  const SlotKey own = needs[static_cast<size_t>(m)];
  SlotKey carrier = 0;
  bool missing = false;
  for (int a = m + direction; inside(a); a += direction) {
    const SlotKey need = needs[static_cast<size_t>(a)];
    if (need == 0) continue;
    const auto at = std::partition_point(order(m).begin(), order(m).end(), [&](const Node& node) {
      return node.known[static_cast<size_t>(a)] < need;
    });
    missing = missing || at == order(m).end();
    if (at != order(m).end()) carrier = std::max(carrier, at->key);
  }
  if (missing) carrier = pass_through(m, direction, satisfy(m + direction, direction, needs), own);
  SlotKey found = std::max(own, carrier);
  // Of a bounded queue, the last instruction pushes: its token stands for all before it.
  if (queue(m, -direction).bounded) found = order(m).back().key;
  return found;
}

/// Makes an instruction of module `m` wait for `from`, so that it can pass the order on: the one
/// that is waited for anyway (`own`, 0: none), or a no-op as early as the order of the tokens in
/// both queues allows. Early, because whatever stands before the no-op delays whoever asks.
SlotKey Linker::pass_through(int m, int direction, SlotKey from, SlotKey own) {
  if (queue(m, -direction).bounded || queue(m + direction, -direction).bounded)
    return pass_through_last(m, direction, from);
  Order& nodes = order(m);
  // Tokens of one queue are matched in order: the new one is the last that module `m` pops from the
  // one side, and the last that it pushes to the other.
  const auto last = std::find_if(nodes.rbegin(), nodes.rend(), [&](const Node& node) {
    const Deps& deps = node.insn.deps;
    return node.key <= from ||
           (direction > 0 ? deps.pop_next || deps.push_prev : deps.pop_prev || deps.push_next);
  });
  const SlotKey after = std::max(from, last == nodes.rend() ? 0 : last->key);
  auto at = nodes.end();
  if (own > after) {
    at = std::partition_point(nodes.begin(), nodes.end(),
                              [&](const Node& node) { return node.key < own; });
  } else {
    Node node;
    node.key = fresh_key(static_cast<uint32_t>(after >> kSlotBits));
    node.insn = no_op(chain_[static_cast<size_t>(m)]);
    at = std::partition_point(nodes.begin(), nodes.end(),
                              [&](const Node& other) { return other.key < node.key; });
    node.known = at == nodes.begin() ? Stamps{} : std::prev(at)->known;
    at = nodes.insert(at, std::move(node));
  }
  link(m + direction, from, m, *at);
  // Nobody asked those behind it yet, except modules that are past `from` themselves.
  const Stamps known = at->known;
  for (auto it = at; it != nodes.end(); ++it) join(it->known, known);
  join(now(m), known);
  return at->key;
}

/// The same where a queue is bounded: a no-op at the end of what the module has so far.
SlotKey Linker::pass_through_last(int m, int direction, SlotKey from) {
  Node node;
  node.known = now(m);
  node.insn = no_op(chain_[static_cast<size_t>(m)]);
  SlotKey relief = relieve(m, -direction);
  if (relief != 0 && queue(m - direction, direction).bounded)
    relief = order(m - direction).back().key;
  node.key = fresh_key(current_);
  link(m + direction, from, m, node);
  if (relief != 0) link(m - direction, relief, m, node);
  now(m) = node.known;
  order(m).push_back(std::move(node));
  return order(m).back().key;
}

/// The instruction of the neighbour that a new one of module `m` has to wait for, so that it can
/// push one more token to it; 0: none.
SlotKey Linker::relieve(int m, int direction) {
  if (!inside(m + direction)) return 0;
  const QueueState& state = queue(m, direction);
  const auto limit = static_cast<size_t>(options_.max_outstanding);
  if (!state.bounded || state.pushes + 1 < limit) return 0;
  const SlotKey known = now(m)[static_cast<size_t>(m + direction)];
  const auto popped = static_cast<size_t>(
      std::upper_bound(state.poppers.begin(), state.poppers.end(), known) - state.poppers.begin());
  // Besides the token of the new instruction there can be one for a no-op that is added with it.
  if (state.pushes + 2 - popped <= limit) return 0;
  return state.poppers[state.pushes - (limit + 1) / 2];
}

/// Adds an instruction that waits for `needs`: input `index`, or a no-op before it.
void Linker::add(int m, const Insn& insn, Stamps needs, uint32_t index, bool given) {
  current_ = index;
  std::array<SlotKey, 2> from{};
  for (int direction : {-1, 1}) {
    if (const SlotKey relief = relieve(m, direction)) {
      SlotKey& need = needs[static_cast<size_t>(m + direction)];
      need = std::max(need, relief);
    }
    bool wanted = false;
    for (int a = m + direction; inside(a); a += direction) {
      SlotKey& need = needs[static_cast<size_t>(a)];
      if (need <= now(m)[static_cast<size_t>(a)]) need = 0;
      wanted = wanted || need != 0;
    }
    if (wanted) from[direction > 0] = satisfy(m + direction, direction, needs);
  }
  Node node;
  node.insn = insn;
  node.insn.deps = {};
  node.known = now(m);
  node.key = given ? key_of(index + 1) : fresh_key(index);
  for (int direction : {-1, 1})
    if (from[direction > 0] != 0) link(m + direction, from[direction > 0], m, node);
  now(m) = node.known;
  order(m).push_back(std::move(node));
}

/// FINISH has no flags in the portable form: a no-op before it takes the tokens.
void Linker::finish(int m) {
  const auto index = static_cast<uint32_t>(slots_.size() - 1);
  Stamps needs{};
  bool wanted = false;
  for (int a = 0; a < length(); ++a) {
    if (a == m || order(a).empty()) continue;
    needs[static_cast<size_t>(a)] = order(a).back().key;
    wanted = wanted || order(a).back().key > now(m)[static_cast<size_t>(a)];
  }
  if (wanted) add(m, no_op(chain_[static_cast<size_t>(m)]), needs, index, false);
  current_ = index;
  Node node;
  node.key = fresh_key(index);
  node.insn.op = Finish{};
  order(m).push_back(std::move(node));
}

bool Linker::find_overflow(int& module, int& direction) const {
  for (module = 0; module < length(); ++module) {
    for (direction = -1; direction <= 1; direction += 2) {
      const int taker = module + direction;
      if (!inside(taker)) continue;
      std::vector<SlotKey> poppers;
      for (const Node& node : orders_[static_cast<size_t>(taker)]) {
        const Deps& deps = node.insn.deps;
        if (direction > 0 ? deps.pop_prev : deps.pop_next) poppers.push_back(node.key);
      }
      int64_t pushes = 0;
      for (const Node& node : orders_[static_cast<size_t>(module)]) {
        const Deps& deps = node.insn.deps;
        if (!(direction > 0 ? deps.push_next : deps.push_prev)) continue;
        const SlotKey known = node.known[static_cast<size_t>(taker)];
        const auto popped =
            std::upper_bound(poppers.begin(), poppers.end(), known) - poppers.begin();
        if (++pushes - popped > options_.max_outstanding) return true;
      }
    }
  }
  return false;
}

Annotated Linker::result(size_t count) const {
  std::vector<const Node*> nodes;
  for (const Order& nodes_of_module : orders_)
    for (const Node& node : nodes_of_module) nodes.push_back(&node);
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->key < b->key; });
  Annotated out;
  out.index.resize(count);
  out.insns.reserve(nodes.size());
  for (const Node* node : nodes) {
    if (is_given(node->key)) out.index[(node->key >> kSlotBits) - 1] = out.insns.size();
    out.insns.push_back(node->insn);
  }
  return out;
}

Status check_input(const std::vector<Insn>& linear, const std::vector<Footprint>& footprints) {
  if (linear.size() != footprints.size())
    return fail(ErrorKind::Invalid, "each instruction needs its footprint",
                fmt::format("{} instructions, {} footprints", linear.size(), footprints.size()));
  for (size_t i = 0; i < linear.size(); ++i)
    if (std::holds_alternative<Finish>(linear[i].op))
      return fail(ErrorKind::Invalid,
                  fmt::format("instruction {} is FINISH, which is added here", i));
  return {};
}

}  // namespace

Insn no_op(Module module) {
  Insn insn;
  Transfer transfer;
  switch (module) {
    case Module::Load:
      transfer.mem = Mem::Inp;
      break;
    case Module::Compute:
      transfer.mem = Mem::Uop;
      break;
    case Module::Alu:
      transfer.mem = Mem::Acc;
      break;
    case Module::Store:
      transfer.store = true;
      transfer.mem = Mem::Out;
      break;
  }
  insn.op = transfer;
  return insn;
}

Result<Annotated> insert_tokens(const Config& config, const std::vector<Insn>& linear,
                                const std::vector<Footprint>& footprints,
                                const TokenOptions& options) {
  TW_TRY_STATUS(check_input(linear, footprints));
  const size_t count = linear.size();
  std::vector<std::pair<int, int>> bounded;
  std::vector<int> place(count);
  std::vector<Waits> waits;
  while (true) {
    Linker linker(config, options, count);
    for (const std::pair<int, int>& queue : bounded) linker.bound(queue.first, queue.second);
    if (waits.size() != count || count == 0) {
      for (size_t i = 0; i < count; ++i) place[i] = linker.place(linear[i], config);
      waits = options.serial ? std::vector<Waits>(count) : find_waits(place, footprints);
    }
    for (size_t i = 0; i < count; ++i) {
      Stamps needs{};
      for (size_t m = 0; m < kMaxModules; ++m) needs[m] = key_of(waits[i][m]);
      if (options.serial && i > 0 && place[i - 1] != place[i])
        needs[static_cast<size_t>(place[i - 1])] = key_of(static_cast<uint32_t>(i));
      linker.add(place[i], linear[i], needs, static_cast<uint32_t>(i), true);
    }
    Insn last;
    last.op = Finish{};
    linker.finish(linker.place(last, config));
    int module = 0, direction = 0;
    if (!linker.find_overflow(module, direction)) return linker.result(count);
    TW_CHECK(std::find(bounded.begin(), bounded.end(), std::pair(module, direction)) ==
             bounded.end());
    bounded.emplace_back(module, direction);
  }
}

}  // namespace tilewright::vta
