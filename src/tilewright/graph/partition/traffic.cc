// Bytes between steps, as explain --memory shows them.
//
//   Conv -> Transpose -> Conv, values of 1 MiB:  moved 4 MiB (each value written and read once),
//                                                compulsory 2 MiB: without the Transpose
//
// For each value it is kept which results of workers it holds (Sources), and how much of each is
// left: a mover passes on what its inputs hold. What a worker reads counts as compulsory by these
// sources, so movers between two workers add nothing.
#include "tilewright/graph/partition/traffic.h"

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/graph/ir/edit.h"

namespace tilewright::graph {
namespace {

/// Values made by workers that a value holds, each with the bytes of it that are left.
using Sources = std::map<ValueId, int64_t>;

class Count {
 public:
  Count(const Graph& graph, const std::vector<Group>& groups)
      : graph_(graph), groups_(groups), output_(is_output(graph)), sources_(graph.values.size()) {
    border_.insert(graph.inputs.begin(), graph.inputs.end());
    // What is an output under another shape is written there at once.
    for (const Group& group : groups)
      if (group.kind == GroupKind::Alias)
        for (ValueId id : group.outputs)
          if (output_[index(id)]) output_[index(group.inputs[0])] = true;
  }

  Traffic run() {
    std::map<ValueId, int64_t> written;
    for (const Group& group : groups_) {
      const bool worker = is_worker(group);
      if (group.kind != GroupKind::Alias) count_moved(group, worker);
      if (!worker) {
        for (ValueId out : group.outputs) pass_through(group, out);
        continue;
      }
      Sources needed;
      for (ValueId id : inputs(group)) merge(needed, sources_[index(id)], read(group, id));
      for (const auto& [source, size] : needed) {
        traffic_.compulsory += size;
        written[source] = std::max(written[source], size);
      }
      for (ValueId out : group.outputs) sources_[index(out)] = {{out, bytes(out)}};
    }
    for (const auto& [source, size] : written)
      if (!output_[index(source)]) traffic_.compulsory += size;
    std::stable_sort(traffic_.movers.begin(), traffic_.movers.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return std::move(traffic_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  int64_t bytes(ValueId id) const {
    const tensor::TensorType& type = graph_.values[index(id)].type;
    return storage_bytes(type.dtype, element_count(type.shape));
  }
  static bool is_worker(const Group& group) {
    if (group.kind == GroupKind::Alias) return false;
    return group.kind != GroupKind::Kernel || group.fusion != tensor::Fusion::Injective;
  }
  /// What the group reads of other steps, each once.
  std::set<ValueId> inputs(const Group& group) const {
    std::set<ValueId> ids;
    for (ValueId id : group.inputs)
      if (id >= 0 && !graph_.values[index(id)].constant && !from_border(id)) ids.insert(id);
    return ids;
  }
  /// An input of the graph, or the same bytes under another shape.
  bool from_border(ValueId id) const { return border_.contains(id); }

  static void merge(Sources& into, const Sources& from, int64_t most) {
    for (const auto& [source, size] : from)
      into[source] = std::max(into[source], std::min(size, most));
  }

  void pass_through(const Group& group, ValueId out) {
    const bool alias = group.kind == GroupKind::Alias;
    for (ValueId id : group.inputs) {
      if (id < 0) continue;
      if (alias && from_border(id)) border_.insert(out);
      merge(sources_[index(out)], sources_[index(id)], bytes(out));
    }
  }

  /// Bytes of an input that the group reads: all of them, unless all it does is to cut parts out.
  int64_t read(const Group& group, ValueId id) const {
    int64_t total = 0;
    for (int n : group.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      if (std::find(node.inputs.begin(), node.inputs.end(), id) == node.inputs.end()) continue;
      if (node.op != "Slice" || !node.domain.empty()) return bytes(id);
      total += bytes(node.outputs[0]);
    }
    return std::min(total, bytes(id));
  }

  void count_moved(const Group& group, bool worker) {
    int64_t total = 0;
    for (ValueId id : inputs(group)) total += read(group, id);
    for (ValueId id : group.outputs)
      if (!output_[index(id)]) total += bytes(id);
    traffic_.moved += total;
    const std::string& name = graph_.nodes[index(group.anchor)].name;
    if (!worker && total > 0) traffic_.movers.emplace_back(name, total);
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  std::vector<bool> output_;
  std::vector<Sources> sources_;
  std::set<ValueId> border_;
  Traffic traffic_;
};

}  // namespace

Traffic traffic_of(const Graph& graph, const std::vector<Group>& groups) {
  return Count(graph, groups).run();
}

}  // namespace tilewright::graph
