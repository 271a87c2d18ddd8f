#include "tilewright/graph/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/graph/edit.h"

namespace tilewright::graph {
namespace {

constexpr int64_t kAlign = 64;
int64_t align_up(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// A piece of memory: alive from the step that writes it first to the last that reads it.
struct Block {
  int64_t bytes = 0;
  int first = 0, last = 0;
  int64_t offset = -1;
  std::vector<ValueId> values;
};

bool overlap_in_time(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<Group>& groups) : graph_(graph), groups_(groups) {
    plan_.offset.assign(graph.values.size(), -1);
    plan_.alias.assign(graph.values.size(), -1);
    plan_.in_place.assign(graph.values.size(), -1);
    block_of_.assign(graph.values.size(), -1);
  }

  std::vector<Block>& blocks() {
    find_last_reads();
    const std::vector<bool> output = is_output(graph_);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (ValueId id : groups_[g].outputs) {
        if (groups_[g].kind == GroupKind::Alias) {
          // The root's block, if it has one, already lives as long as its aliases are read.
          const ValueId from = groups_[g].inputs[0];
          const ValueId root = plan_.alias[index(from)];
          plan_.alias[index(id)] = root >= 0 ? root : from;
          block_of_[index(id)] = block_of_[index(from)];
          if (block_of_[index(id)] >= 0) block(id).values.push_back(id);
        } else if (!output[index(id)] && !take_over(id, static_cast<int>(g))) {
          make_block(id, static_cast<int>(g));
        }
      }
    }
    return blocks_;
  }

  /// Best fit in the given order. Gives the arena's size.
  int64_t place(const std::vector<int>& order) {
    int64_t arena = 0;
    std::vector<int> placed;
    for (int b : order) {
      Block& mine = blocks_[static_cast<size_t>(b)];
      std::vector<std::pair<int64_t, int64_t>> busy;
      for (int other : placed) {
        const Block& theirs = blocks_[static_cast<size_t>(other)];
        if (overlap_in_time(mine, theirs))
          busy.emplace_back(theirs.offset, theirs.offset + theirs.bytes);
      }
      std::sort(busy.begin(), busy.end());
      int64_t end = 0, best = -1, best_gap = 0;
      for (const auto& [from, to] : busy) {
        const int64_t gap = from - end;
        if (gap >= mine.bytes && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
        end = std::max(end, to);
      }
      mine.offset = best >= 0 ? best : end;
      arena = std::max(arena, mine.offset + mine.bytes);
      placed.push_back(b);
    }
    return arena;
  }

  MemoryPlan run() {
    blocks();
    plan_.lower_bound = lower_bound();
    std::vector<int> order(blocks_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    const auto by = [&](auto key) {
      std::vector<int> sorted = order;
      std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
        return key(blocks_[static_cast<size_t>(a)]) > key(blocks_[static_cast<size_t>(b)]);
      });
      return sorted;
    };
    const std::vector<std::vector<int>> orders = {
        by([](const Block& b) { return b.bytes; }),
        by([](const Block& b) { return b.bytes * (b.last - b.first + 1); }),
        by([](const Block& b) { return int64_t{b.last} - b.first; }),
        order,
    };
    size_t best = 0;
    int64_t best_bytes = -1;
    for (size_t i = 0; i < orders.size() && best_bytes != plan_.lower_bound; ++i) {
      const int64_t bytes = place(orders[i]);
      if (best_bytes < 0 || bytes < best_bytes) best = i, best_bytes = bytes;
    }
    plan_.arena_bytes = place(orders[best]);
    for (const Block& b : blocks_)
      for (ValueId id : b.values) plan_.offset[index(id)] = b.offset;
    return std::move(plan_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  Block& block(ValueId id) { return blocks_[static_cast<size_t>(block_of_[index(id)])]; }
  const tensor::TensorType& type(ValueId id) const { return graph_.values[index(id)].type; }

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
    b.values = {id};
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
      if (block_of_[index(input)] < 0 || type(input).shape != type(id).shape) continue;
      if (bit_width(type(input).dtype) != bit_width(type(id).dtype)) continue;
      if (block(input).last != step) continue;
      plan_.in_place[index(id)] = input;
      block_of_[index(id)] = block_of_[index(input)];
      block(id).last = std::max(step, last_read_[index(id)]);
      block(id).values.push_back(id);
      return true;
    }
    return false;
  }

  int64_t lower_bound() const {
    std::vector<int64_t> change(groups_.size() + 1, 0);
    for (const Block& b : blocks_) {
      change[static_cast<size_t>(b.first)] += b.bytes;
      change[static_cast<size_t>(b.last) + 1] -= b.bytes;
    }
    int64_t alive = 0, most = 0;
    for (int64_t delta : change) most = std::max(most, alive += delta);
    return most;
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  MemoryPlan plan_;
  std::vector<int> last_read_, block_of_;
  std::vector<Block> blocks_;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const std::vector<Group>& groups) {
  return Planner(graph, groups).run();
}

Status verify_plan(const Graph& graph, const std::vector<Group>& groups, const MemoryPlan& plan) {
  // Replays the steps: who owns each byte range now. Independent of how the plan was made.
  std::map<ValueId, std::pair<int64_t, int64_t>> alive;
  std::vector<int> reads_left(graph.values.size(), 0);
  const auto root = [&](ValueId id) {
    const ValueId from = plan.alias[static_cast<size_t>(id)];
    return from >= 0 ? from : id;
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
      for (const auto& [other, range] : alive) {
        const bool takes_over = plan.in_place[v] >= 0 && root(plan.in_place[v]) == other &&
                                std::count(dying.begin(), dying.end(), other) > 0;
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
