// A group's key is the index of its anchor. Every value a group reads from outside is produced by a
// node of a smaller index, and what a group hands out is produced at or after its anchor. So groups
// sorted by key are in topological order, whatever was fused.
#include "tilewright/graph/partition/fuse.h"

#include <algorithm>
#include <set>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/elementwise.h"
#include "tilewright/graph/ir/fold.h"
#include "tilewright/graph/partition/views.h"

namespace tilewright::graph {
namespace {

using tensor::Fusion;

/// Reductions that read each input element once: what feeds them can be computed on the way.
const std::set<std::string> kReadsOnce = {"ArgMax",
                                          "ArgMin",
                                          "GlobalAveragePool",
                                          "GlobalMaxPool",
                                          "ReduceL1",
                                          "ReduceL2",
                                          "ReduceMax",
                                          "ReduceMean",
                                          "ReduceMin",
                                          "ReduceProd",
                                          "ReduceLogSum",
                                          "ReduceSum",
                                          "ReduceSumSquare",
                                          "GlobalAveragePoolBlocked"};

/// Sums whose first operand is an image that can be made strip by strip where it is read.
const std::set<std::string> kTakesProducers = {"ConvBlocked", "PhaseConvBlocked",
                                               "WinogradConvBlocked"};

class Fuser {
 public:
  Fuser(const Graph& graph, const FuseOptions& options)
      : graph_(graph),
        options_(options),
        producer_(producers(graph)),
        users_(consumers(graph)),
        output_(is_output(graph)),
        views_(find_views(graph, movable())),
        group_of_(graph.nodes.size(), -1) {}

  std::vector<Group> run() {
    const auto count = static_cast<int>(graph_.nodes.size());
    if (options_.enable && options_.join)
      for (int n = 0; n < count; ++n)
        if (!taken(n)) join_around(n);
    for (int n = 0; n < count; ++n) {
      if (taken(n)) continue;
      if (stands_alone(n)) {
        open(n, {n});
      } else if (fusion(n) == Fusion::Complex || fusion(n) == Fusion::Reduction) {
        if (!join_producers(n)) open(n, with_epilogue(n));
      }
    }
    for (int n = count - 1; n >= 0; --n) {
      if (taken(n)) {
        Group& group = groups_[static_cast<size_t>(group_of_[static_cast<size_t>(n)])];
        if (group.anchor == n && kReadsOnce.contains(node(n).op)) absorb(group, {n});
        if (group.anchor == n) absorb_beside(group);
        continue;
      }
      open(n, {n});
      absorb(groups_.back(), {n});
    }
    for (Group& group : groups_) finish(group);
    std::sort(groups_.begin(), groups_.end(),
              [](const Group& a, const Group& b) { return a.anchor < b.anchor; });
    return std::move(groups_);
  }

 private:
  const Node& node(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  bool taken(int n) const { return group_of_[static_cast<size_t>(n)] >= 0; }
  int producer(ValueId id) const {
    return id < 0 || value(id).constant ? -1 : producer_[static_cast<size_t>(id)];
  }
  const tensor::OpDef* def(int n) const { return tensor::find_op(node(n).domain, node(n).op); }
  Fusion fusion(int n) const { return def(n) ? def(n)->fusion : Fusion::Opaque; }
  bool is_host(int n) const { return def(n) == nullptr || !def(n)->host.empty(); }

  /// A reshape whose result may be the same memory under another shape.
  bool is_alias(int n) const {
    if (views_.is_parts[static_cast<size_t>(n)]) return true;
    const Node& v = node(n);
    if (!is_view(v) || v.outputs.size() != 1 || v.inputs[0] < 0) return false;
    if (value(v.inputs[0]).constant) return false;
    return !output_[static_cast<size_t>(v.outputs[0])] || is_sum(v.inputs[0]);
  }

  /// Whether a kernel around a sum makes the value, for one reader.
  bool is_sum(ValueId id) const {
    int p = -1;
    do {
      if (output_[static_cast<size_t>(id)] || users_[static_cast<size_t>(id)].size() != 1 ||
          value(id).type.dynamic_axis >= 0)
        return false;
      p = producer(id);
      if (p < 0 || is_host(p) || !device(p).empty()) return false;
      id = -1;
      for (ValueId input : node(p).inputs)
        if (id < 0 && producer(input) >= 0) id = input;
    } while (is_elementwise(node(p)) && id >= 0);
    return fusion(p) == Fusion::Complex || fusion(p) == Fusion::Reduction;
  }

  /// Nodes on the CPU. Without fusion every operator runs by itself.
  std::vector<bool> movable() const {
    std::vector<bool> movable(graph_.nodes.size(), options_.enable);
    for (size_t n = 0; n < movable.size(); ++n)
      movable[n] = movable[n] && device(static_cast<int>(n)).empty();
    return movable;
  }

  bool stands_alone(int n) const {
    return !options_.enable || is_host(n) || is_alias(n) || fusion(n) == Fusion::Opaque;
  }

  std::string device(int n) const { return options_.device ? options_.device(n) : std::string(); }

  void open(int anchor, std::vector<int> nodes) {
    Group group;
    group.device = device(anchor);
    group.anchor = anchor;
    group.nodes = std::move(nodes);
    group.fusion = fusion(anchor);
    group.kind = is_host(anchor)    ? GroupKind::Host
                 : is_alias(anchor) ? GroupKind::Alias
                                    : GroupKind::Kernel;
    for (int n : group.nodes) group_of_[static_cast<size_t>(n)] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(group));
  }

  /// Whether node `c` can run in the epilogue of `anchor`, given the nodes already there.
  bool fits_epilogue(int c, int anchor, const std::set<int>& members) const {
    if (taken(c) || is_host(c) || is_alias(c) || !is_elementwise(node(c))) return false;
    if (fusion(c) != Fusion::Injective || node(c).outputs.size() != 1) return false;
    if (device(c) != device(anchor)) return false;
    if (value(node(c).outputs[0]).type.shape != value(node(anchor).outputs[0]).type.shape)
      return false;
    for (ValueId id : node(c).inputs) {
      const int p = producer(id);
      if (p >= anchor && !members.contains(p)) return false;
    }
    return true;
  }

  /// Values that nodes outside `nodes` (or the graph's outputs) need.
  int escaping(const std::vector<int>& nodes) const {
    int count = 0;
    for (int n : nodes)
      for (ValueId id : node(n).outputs) {
        if (id < 0) continue;
        const auto& users = users_[static_cast<size_t>(id)];
        const bool outside = std::any_of(users.begin(), users.end(), [&](int u) {
          return std::find(nodes.begin(), nodes.end(), u) == nodes.end();
        });
        count += outside || output_[static_cast<size_t>(id)];
      }
    return count;
  }

  /// The anchor and the elementwise nodes behind it that end in one value.
  std::vector<int> with_epilogue(int anchor) const {
    std::vector<int> best{anchor};
    if (node(anchor).outputs.size() != 1) return best;
    std::set<int> members{anchor}, queue;
    std::vector<int> order{anchor};
    const auto enqueue = [&](int n) {
      for (int u : users_[static_cast<size_t>(node(n).outputs[0])]) queue.insert(u);
    };
    enqueue(anchor);
    while (!queue.empty() && static_cast<int>(order.size()) < options_.max_nodes) {
      const int c = *queue.begin();
      queue.erase(queue.begin());
      if (members.contains(c) || !fits_epilogue(c, anchor, members)) continue;
      members.insert(c);
      order.push_back(c);
      enqueue(c);
      if (escaping(order) == 1) best = order;
    }
    return best;
  }

  // --- Convolutions in a row.

  bool is_a(int n, const char* domain, const char* op) const {
    return node(n).domain == domain && node(n).op == op && device(n).empty();
  }
  bool is_ours(int n, const char* op) const { return is_a(n, "tilewright", op); }
  /// The same on any device.
  bool is_plain(int n, const char* op) const { return node(n).domain.empty() && node(n).op == op; }

  /// The value that nodes beginning with `anchor` hand out if it is their only one; else -1.
  ValueId handed_out(const std::vector<int>& nodes) const {
    if (escaping(nodes) != 1) return -1;
    for (int n : nodes) {
      const ValueId id = node(n).outputs[0];
      const auto& users = users_[static_cast<size_t>(id)];
      const bool inside = std::all_of(users.begin(), users.end(), [&](int u) {
        return std::find(nodes.begin(), nodes.end(), u) != nodes.end();
      });
      if (!inside) return id;
    }
    return -1;
  }

  /// The node of kind `op` that alone reads what `nodes` hand out; -1 if there is none.
  int next_of(const std::vector<int>& nodes, const char* op,
              const char* domain = "tilewright") const {
    const ValueId id = handed_out(nodes);
    if (id < 0 || output_[static_cast<size_t>(id)]) return -1;
    const auto& users = users_[static_cast<size_t>(id)];
    const bool reads = users.size() == 1 && !taken(users[0]) && is_a(users[0], domain, op) &&
                       node(users[0]).inputs[0] == id;
    return reads ? users[0] : -1;
  }

  /// The convolution before depthwise `d`: what it and its epilogue hand out only `d` reads.
  int convolution_before(int d) const {
    int n = producer(node(d).inputs[0]);
    while (n >= 0 && is_elementwise(node(n)) && !node(n).inputs.empty())
      n = producer(node(n).inputs[0]);
    if (n < 0 || taken(n) || !is_ours(n, "ConvBlocked")) return -1;
    return next_of(with_epilogue(n), "DepthwiseConvBlocked") == d ? n : -1;
  }

  /// Makes one group of `n` and its neighbours where that is worth it.
  void join_around(int n) {
    const bool depthwise = is_ours(n, "DepthwiseConvBlocked");
    if (depthwise) join_convolutions(n);
    if (depthwise || is_ours(n, "ConvBlocked") || is_ours(n, "GemmPacked")) join_copies(n);
    if (is_plain(n, "Softmax")) join_attention(n);
    if (!taken(n) && kTakesProducers.contains(node(n).op)) join_slices(n);
  }

  /// Product `n` with a concatenation that it alone reads and the slices among its parts: these
  /// have no place to be but copies.
  void join_slices(int n) {
    const auto only_reader = [&](ValueId id, int reader) {
      return !output_[static_cast<size_t>(id)] &&
             users_[static_cast<size_t>(id)] == std::vector<int>{reader};
    };
    const ValueId image = node(n).inputs[0];
    const int whole = producer(image);
    if (whole < 0 || taken(whole) || !is_plain(whole, "Concat") || !only_reader(image, n)) return;
    Group group = group_of(n);
    group.nodes.push_back(whole);
    const size_t without = group.nodes.size();
    for (ValueId id : node(whole).inputs) {
      const int p = producer(id);
      if (p >= 0 && !taken(p) && is_plain(p, "Slice") && only_reader(id, whole))
        group.nodes.push_back(p);
    }
    const bool same = std::all_of(group.nodes.begin(), group.nodes.end(),
                                  [&](int member) { return device(member) == device(n); });
    if (group.nodes.size() > without && same) join_with({}, group);
  }

  /// Scores, their softmax `n` and the product with the values: the scores are never stored.
  void join_attention(int n) {
    int scores = producer(node(n).inputs[0]);
    while (scores >= 0 && is_elementwise(node(scores))) scores = producer(node(scores).inputs[0]);
    if (scores < 0 || taken(scores) || !is_plain(scores, "MatMul")) return;
    const std::vector<int> before = with_epilogue(scores);
    if (device(scores) != device(n) || handed_out(before) != node(n).inputs[0]) return;
    if (users_[static_cast<size_t>(node(n).inputs[0])].size() != 1) return;
    const ValueId weights = handed_out({n});
    if (weights < 0 || output_[static_cast<size_t>(weights)]) return;
    const auto& users = users_[static_cast<size_t>(weights)];
    if (users.size() != 1 || taken(users[0]) || !is_plain(users[0], "MatMul")) return;
    if (node(users[0]).inputs[0] != weights || device(users[0]) != device(n)) return;
    Group group;
    group.anchor = users[0];
    group.fusion = fusion(group.anchor);
    group.nodes = before;
    group.nodes.push_back(n);
    const std::vector<int> behind = with_epilogue(users[0]);
    group.nodes.insert(group.nodes.end(), behind.begin(), behind.end());
    if (!join_with({copy_after(behind)}, group)) join_with({}, group);
  }

  /// The same of depthwise `d` with the convolutions before and behind it.
  void join_convolutions(int d) {
    const int before = convolution_before(d);
    const int after = next_of(with_epilogue(d), "ConvBlocked");
    for (const std::vector<int>& chain :
         {std::vector<int>{before, d, after}, std::vector<int>{before, d},
          std::vector<int>{d, after}}) {
      if (std::find(chain.begin(), chain.end(), -1) != chain.end()) continue;
      Group group;
      group.anchor = chain.back();
      group.fusion = fusion(group.anchor);
      for (int n : chain)
        for (int member : with_epilogue(n)) group.nodes.push_back(member);
      if (join_with({}, group)) return;
    }
  }

  /// The copy that brings what `n` alone reads into channel blocks; -1 if there is none.
  int copy_before(int n) const {
    const ValueId id = node(n).inputs[0];
    const int p = producer(id);
    const bool reads = p >= 0 && !taken(p) && is_ours(p, "ToBlocked") &&
                       users_[static_cast<size_t>(id)].size() == 1 &&
                       !output_[static_cast<size_t>(id)];
    return reads ? p : -1;
  }

  /// The copy that alone reads what `nodes` hand out and puts it in another order; -1 if there is
  /// none.
  int copy_after(const std::vector<int>& nodes) const {
    const int out = next_of(nodes, "FromBlocked");
    return out < 0 ? next_of(nodes, "Transpose", "") : out;
  }

  /// Node `n` with its epilogue, not yet open.
  Group group_of(int n) const {
    Group group;
    group.anchor = n;
    group.fusion = fusion(n);
    group.device = device(n);
    group.nodes = with_epilogue(n);
    return group;
  }

  /// Opens `group` and `more` as one group if all of these exist and it is worth it.
  bool join_with(const std::vector<int>& more, Group group) {
    if (std::find(more.begin(), more.end(), -1) != more.end()) return false;
    group.nodes.insert(group.nodes.end(), more.begin(), more.end());
    group.device = device(group.anchor);
    finish(group);
    if (group.outputs.size() != 1 || !options_.join(group)) return false;
    open(group.anchor, group.nodes);
    return true;
  }

  /// Product `n`, taken by no group yet, with the copies that bring its operand into channel blocks
  /// and its result out of them. A sum over channels would read what a copy makes in all its
  /// blocks.
  void join_copies(int n) {
    if (taken(n) || !options_.copies) return;
    Group group = group_of(n);
    const int before = node(n).op == "DepthwiseConvBlocked" ? copy_before(n) : -1;
    const int after = copy_after(group.nodes);
    for (const std::vector<int>& copies :
         {std::vector<int>{before, after}, std::vector<int>{before}, std::vector<int>{after}})
      if (join_with(copies, group)) return;
  }

  /// Product `n`, taken by no group yet, with the element-wise nodes that make its image and that
  /// no group has as its epilogue.
  bool join_producers(int n) {
    if (!options_.join || !kTakesProducers.contains(node(n).op)) return false;
    Group group = group_of(n);
    const size_t alone = group.nodes.size();
    ValueId image = node(n).inputs[0];
    for (int reader = n; producer(image) >= 0;) {
      const int p = producer(image);
      if (!is_elementwise(node(p)) || !fits_prologue(p, group, reader)) break;
      const auto& from = node(p).inputs;
      const auto whole = std::find_if(from.begin(), from.end(), [&](ValueId id) {
        return id >= 0 && !value(id).constant && elements(id) == elements(image);
      });
      if (whole == from.end()) break;
      group.nodes.push_back(p);
      reader = p, image = *whole;
    }
    return group.nodes.size() > alone && join_with({}, group);
  }

  int64_t elements(ValueId id) const { return element_count(value(id).type.shape); }

  /// Whether the producer `p` can be computed inside the group that reads it.
  bool fits_prologue(int p, const Group& group, int reader) const {
    if (taken(p) || stands_alone(p) || fusion(p) != Fusion::Injective) return false;
    if (node(p).outputs.size() != 1 || output_[static_cast<size_t>(node(p).outputs[0])])
      return false;
    if (device(p) != group.device) return false;
    for (int u : users_[static_cast<size_t>(node(p).outputs[0])])
      if (std::find(group.nodes.begin(), group.nodes.end(), u) == group.nodes.end()) return false;
    // Computing a value again for each place it is broadcast to would cost more than storing it.
    const ValueId made = node(p).outputs[0];
    const bool repeats = fusion(reader) == Fusion::Injective &&
                         elements(made) < elements(node(reader).outputs[0]) &&
                         node(reader).op != "Concat";
    return !repeats || !is_elementwise(node(p));
  }

  /// Takes what is computed element by element for an epilogue alone: the other operand of a
  /// residual that was stored in fewer bits.
  void absorb_beside(Group& group) {
    const std::vector<int> members = group.nodes;
    for (const int m : members) {
      if (m == group.anchor || !is_elementwise(node(m))) continue;
      for (ValueId id : node(m).inputs) {
        const int p = producer(id);
        if (p < 0 || static_cast<int>(group.nodes.size()) >= options_.max_nodes) continue;
        if (!is_elementwise(node(p)) || node(p).inputs[0] < 0) continue;
        const tensor::TensorType &from = value(node(p).inputs[0]).type, &to = value(id).type;
        const bool widens = from.shape == to.shape && bit_width(from.dtype) < bit_width(to.dtype) &&
                            to.shape == value(node(m).outputs[0]).type.shape;
        if (!widens || !fits_prologue(p, group, m)) continue;
        group.nodes.push_back(p);
        group_of_[static_cast<size_t>(p)] = group_of_[static_cast<size_t>(group.anchor)];
      }
    }
  }

  /// Takes injective producers, from the last to the first, whose readers are all in the group.
  void absorb(Group& group, std::set<int> queue) {
    while (!queue.empty()) {
      const int reader = *std::prev(queue.end());
      queue.erase(std::prev(queue.end()));
      for (ValueId id : node(reader).inputs) {
        const int p = producer(id);
        if (p < 0 || static_cast<int>(group.nodes.size()) >= options_.max_nodes) continue;
        if (!fits_prologue(p, group, reader)) continue;
        group.nodes.push_back(p);
        group_of_[static_cast<size_t>(p)] = group_of_[static_cast<size_t>(group.anchor)];
        queue.insert(p);
      }
    }
  }

  void finish(Group& group) const {
    std::sort(group.nodes.begin(), group.nodes.end());
    const auto inside = [&](int n) {
      return std::binary_search(group.nodes.begin(), group.nodes.end(), n);
    };
    for (int n : group.nodes) {
      for (ValueId id : node(n).inputs) {
        if (id < 0 || (producer(id) >= 0 && inside(producer(id)))) continue;
        if (std::find(group.inputs.begin(), group.inputs.end(), id) == group.inputs.end())
          group.inputs.push_back(id);
      }
      for (ValueId id : node(n).outputs) {
        const auto& users = users_[static_cast<size_t>(id)];
        if (output_[static_cast<size_t>(id)] || !std::all_of(users.begin(), users.end(), inside) ||
            (users.empty() && group.kind == GroupKind::Host))
          group.outputs.push_back(id);
      }
    }
  }

  const Graph& graph_;
  const FuseOptions& options_;
  const std::vector<int> producer_;
  const std::vector<std::vector<int>> users_;
  const std::vector<bool> output_;
  const Views views_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<Group> fuse(const Graph& graph, const FuseOptions& options) {
  return Fuser(graph, options).run();
}

}  // namespace tilewright::graph
