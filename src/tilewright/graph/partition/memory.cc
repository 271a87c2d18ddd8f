// The memory plan: each value gets a block that lives from the step that writes it to the last one
// that reads it, then blocks are packed (arena.h).
//
//   a = f(x), b = g(a), c = h(b):      a lives in steps 0 and 1, b from step 1 on; c may lie where
//                                      a was
//   b = Relu(a), a read nowhere else:  b takes over the block of a
//   y = Concat(a, b) without a copy:   one block, with the places of a and b in it
#include "tilewright/graph/partition/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/elementwise.h"
#include "tilewright/graph/partition/arena.h"
#include "tilewright/graph/partition/views.h"

namespace tilewright::graph {
namespace {

constexpr int64_t kAlign = 64;
int64_t align_up(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// A piece of memory: alive from the step that writes it first to the last that reads it.
struct Block {
  int64_t bytes = 0;
  int first = 0, last = 0;
  bool shared = false;                              ///< by the parts of one value
  std::vector<std::pair<ValueId, int64_t>> values;  ///< and where in the block each begins
};

/// Where values lie that groups without code place inside others.
std::vector<SubRange> placed_parts(const Graph& graph, const std::vector<Group>& groups) {
  std::vector<SubRange> part(graph.values.size());
  for (auto g = groups.rbegin(); g != groups.rend(); ++g) {
    if (g->kind != GroupKind::Alias) continue;
    const auto parts = parts_of(graph, graph.nodes[static_cast<size_t>(g->anchor)]);
    // What is placed under another shape was made there.
    if (!parts && part[static_cast<size_t>(g->outputs[0])].whole >= 0)
      part[static_cast<size_t>(g->inputs[0])] = {g->inputs[0], g->outputs[0], 0};
    if (!parts) continue;
    for (const SubRange& range : *parts) part[static_cast<size_t>(range.value)] = range;
  }
  return part;
}

class ArenaPlanner {
 public:
  ArenaPlanner(const Graph& graph, const std::vector<Group>& groups)
      : graph_(graph), groups_(groups) {
    plan_.offset.assign(graph.values.size(), -1);
    plan_.alias.assign(graph.values.size(), -1);
    plan_.in_place.assign(graph.values.size(), -1);
    plan_.made_in.assign(graph.values.size(), -1);
    block_of_.assign(graph.values.size(), -1);
    part_ = placed_parts(graph, groups);
    for (const SubRange& part : part_)
      if (part.whole >= 0) shared_.insert(whole_of(part.whole).whole);
    find_made_in();
  }

  std::vector<Block>& blocks() {
    find_last_reads();
    const std::vector<bool> output = is_output(graph_);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (ValueId id : groups_[g].outputs) {
        if (shared_.contains(whole_of(id).whole)) {
          if (!output[index(id)]) join(id, static_cast<int>(g));
        } else if (groups_[g].kind == GroupKind::Alias) {
          // The root's block, if it has one, already lives as long as its aliases are read.
          const ValueId from = groups_[g].inputs[0];
          const ValueId root = plan_.alias[index(from)];
          plan_.alias[index(id)] = root >= 0 ? root : from;
          block_of_[index(id)] = block_of_[index(from)];
          if (block_of_[index(id)] >= 0)
            block(id).values.emplace_back(id, whole_of(plan_.alias[index(id)]).offset);
        } else if (!output[index(id)] && plan_.made_in[index(id)] < 0 &&
                   !take_over(id, static_cast<int>(g))) {
          make_block(id, static_cast<int>(g));
        }
      }
    }
    return blocks_;
  }

  MemoryPlan run() {
    std::vector<Lifetime> lifetimes;
    for (const Block& b : blocks()) lifetimes.push_back({b.bytes, b.first, b.last});
    const Arena arena = pack_arena(lifetimes);
    plan_.arena_bytes = arena.bytes;
    plan_.lower_bound = arena.lower_bound;
    plan_.optimal = arena.optimal;
    for (size_t i = 0; i < blocks_.size(); ++i)
      for (const auto& [id, from] : blocks_[i].values)
        plan_.offset[index(id)] = arena.offset[i] + from;
    return std::move(plan_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  Block& block(ValueId id) { return blocks_[static_cast<size_t>(block_of_[index(id)])]; }
  const tensor::TensorType& type(ValueId id) const { return graph_.values[index(id)].type; }

  /// What a kernel makes, and an output of the graph is under another shape, lies in that output.
  void find_made_in() {
    const std::vector<bool> output = is_output(graph_);
    std::set<ValueId> kernels;  // made by them, with a place of their own
    for (const Group& group : groups_) {
      if (group.kind == GroupKind::Kernel)
        for (ValueId id : group.outputs)
          if (!output[index(id)] && !shared_.contains(whole_of(id).whole)) kernels.insert(id);
      if (group.kind != GroupKind::Alias || group.outputs.size() != 1) continue;
      const ValueId from = group.inputs[0], to = group.outputs[0];
      if (kernels.erase(from) > 0 && output[index(to)]) plan_.made_in[index(from)] = to;
    }
  }

  /// The outermost value that holds `id`, and where in it `id` begins.
  SubRange whole_of(ValueId id) const {
    SubRange at{id, id, 0};
    for (SubRange up = part_[index(id)]; up.whole >= 0; up = part_[index(up.whole)])
      at = {id, up.whole, at.offset + up.offset};
    return at;
  }

  /// A part, or a whole that has parts: all of them are one block, alive from the first that is
  /// written to the last that is read.
  void join(ValueId id, int step) {
    const SubRange at = whole_of(id);
    if (block_of_[index(at.whole)] < 0) make_block(at.whole, step);
    Block& b = block(at.whole);
    b.shared = true;
    b.last = std::max({b.last, step, last_read_[index(id)]});
    if (id == at.whole) return;
    block_of_[index(id)] = block_of_[index(at.whole)];
    b.values.emplace_back(id, at.offset);
  }

  /// Last step that reads each value, through its aliases.
  void find_last_reads() {
    last_read_.assign(graph_.values.size(), -1);
    for (size_t g = 0; g < groups_.size(); ++g)
      for (ValueId id : groups_[g].inputs) last_read_[index(id)] = static_cast<int>(g);
    for (size_t g = groups_.size(); g-- > 0;)
      if (groups_[g].kind == GroupKind::Alias)
        for (ValueId id : groups_[g].outputs)
          last_read_[index(groups_[g].inputs[0])] =
              std::max(last_read_[index(groups_[g].inputs[0])], last_read_[index(id)]);
  }

  void make_block(ValueId id, int step) {
    Block b;
    b.bytes = align_up(
        std::max<int64_t>(storage_bytes(type(id).dtype, element_count(type(id).shape)), 1));
    b.first = step;
    b.last = std::max(step, last_read_[index(id)]);
    b.values = {{id, 0}};
    block_of_[index(id)] = static_cast<int>(blocks_.size());
    blocks_.push_back(std::move(b));
  }

  /// Lets `id` take over the memory of an input that dies here. Safe where every node is
  /// elementwise: an element is read for the last time just before its place is written.
  bool take_over(ValueId id, int step) {
    const Group& group = groups_[static_cast<size_t>(step)];
    if (group.kind != GroupKind::Kernel || group.outputs.size() != 1) return false;
    for (int n : group.nodes)
      if (!is_elementwise(graph_.nodes[static_cast<size_t>(n)])) return false;
    for (ValueId input : group.inputs) {
      if (block_of_[index(input)] < 0 || block(input).shared || type(input).shape != type(id).shape)
        continue;
      if (bit_width(type(input).dtype) != bit_width(type(id).dtype)) continue;
      if (block(input).last != step) continue;
      plan_.in_place[index(id)] = input;
      block_of_[index(id)] = block_of_[index(input)];
      block(id).last = std::max(step, last_read_[index(id)]);
      block(id).values.emplace_back(id, 0);
      return true;
    }
    return false;
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  MemoryPlan plan_;
  std::vector<SubRange> part_;
  std::set<ValueId> shared_;  ///< wholes with parts
  std::vector<int> last_read_, block_of_;
  std::vector<Block> blocks_;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const std::vector<Group>& groups) {
  return ArenaPlanner(graph, groups).run();
}

Status verify_plan(const Graph& graph, const std::vector<Group>& groups, const MemoryPlan& plan) {
  // Replays the steps: who owns each byte range now. Independent of how the plan was made.
  std::map<ValueId, std::pair<int64_t, int64_t>> alive;
  std::vector<int> reads_left(graph.values.size(), 0);
  const auto root = [&](ValueId id) {
    const ValueId from = plan.alias[static_cast<size_t>(id)];
    return from >= 0 ? from : id;
  };
  const std::vector<SubRange> part = placed_parts(graph, groups);
  const auto holds = [&](ValueId whole, ValueId id) {
    while (id >= 0 && id != whole) id = part[static_cast<size_t>(id)].whole;
    return id == whole;
  };
  for (const Group& group : groups)
    for (ValueId id : group.inputs) ++reads_left[static_cast<size_t>(root(id))];
  for (const Group& group : groups) {
    std::vector<ValueId> dying;
    for (ValueId id : group.inputs)
      if (--reads_left[static_cast<size_t>(root(id))] == 0) dying.push_back(root(id));
    for (ValueId id : group.outputs) {
      const size_t v = static_cast<size_t>(id);
      if (plan.offset[v] < 0 || plan.alias[v] >= 0) continue;
      const tensor::TensorType& type = graph.values[v].type;
      const int64_t bytes = storage_bytes(type.dtype, element_count(type.shape));
      const int64_t from = plan.offset[v], to = from + bytes;
      if (from % kAlign != 0 || to > plan.arena_bytes)
        return fail(ErrorKind::Invalid,
                    fmt::format("'{}' at bytes {}..{} of {}", graph.values[v].name, from, to,
                                plan.arena_bytes));
      if (part[v].whole >= 0 &&
          from != plan.offset[static_cast<size_t>(part[v].whole)] + part[v].offset)
        return fail(ErrorKind::Invalid,
                    fmt::format("'{}' at byte {} is not inside '{}'", graph.values[v].name, from,
                                graph.values[static_cast<size_t>(part[v].whole)].name));
      for (const auto& [other, range] : alive) {
        const bool takes_over = plan.in_place[v] >= 0 && root(plan.in_place[v]) == other &&
                                std::count(dying.begin(), dying.end(), other) > 0;
        if (holds(id, other) || holds(other, id)) continue;
        if (!takes_over && from < range.second && range.first < to)
          return fail(ErrorKind::Invalid,
                      fmt::format("'{}' overwrites '{}'", graph.values[v].name,
                                  graph.values[static_cast<size_t>(other)].name));
      }
      if (reads_left[v] > 0) alive[id] = {from, to};
    }
    for (ValueId id : dying) alive.erase(id);
  }
  return {};
}

}  // namespace tilewright::graph
