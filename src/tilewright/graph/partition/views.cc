// Finds the operators that become places: in the order of the graph, each Concat or Split gets its
// parts unless one of them has a place already or must keep its own.
//
//   y = Concat(a, b), z = Concat(b, c)         =>  a and b in y; b is taken, so z copies
//   y = Concat(Reshape(k), b), k by a kernel   =>  k is made where the Reshape lies in y
#include "tilewright/graph/partition/views.h"

#include <set>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/fold.h"

namespace tilewright::graph {
namespace {

constexpr int64_t kViewAlign = 64;

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<bool>& movable)
      : graph_(graph), movable_(movable), producer_(producers(graph)), output_(is_output(graph)) {}

  Views run() {
    views_.part.resize(graph_.values.size());
    views_.is_parts.assign(graph_.nodes.size(), false);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const auto parts = parts_of(graph_, node);
      if (!parts || !movable_[n] || !can_place(*parts, node.op == "Split")) continue;
      views_.is_parts[n] = true;
      for (const SubRange& part : *parts) {
        views_.part[index(part.value)] = part;
        for (ValueId id = part.value; node.op == "Concat" && is_reshaped(id); id = reshaped(id))
          views_.part[index(reshaped(id))] = {reshaped(id), id, 0};
      }
    }
    return std::move(views_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }

  bool is_reshaped(ValueId id) const {
    const int p = producer_[index(id)];
    return p >= 0 && movable_[index(p)] && !output_[index(id)] && is_view(graph_.nodes[index(p)]);
  }
  ValueId reshaped(ValueId id) const { return graph_.nodes[index(producer_[index(id)])].inputs[0]; }

  /// Made by a node that may write anywhere, and nobody outside knows its place.
  bool free(ValueId id) const {
    const int p = producer_[index(id)];
    return p >= 0 && !output_[index(id)] && !graph_.values[index(id)].constant &&
           movable_[index(p)] && !is_view(graph_.nodes[index(p)]);
  }

  bool can_place(const std::vector<SubRange>& parts, bool split) const {
    const ValueId whole = parts.front().whole;
    if (split ? !free(whole) : output_[index(whole)]) return false;
    std::set<ValueId> seen;
    for (const SubRange& part : parts) {
      const ValueId id = part.value;
      bool placed = views_.part[index(id)].whole >= 0;
      ValueId made = id;
      while (!split && is_reshaped(made)) {
        made = reshaped(made);
        placed |= views_.part[index(made)].whole >= 0;
      }
      const bool fits = split ? !output_[index(id)] : free(made);
      if (placed || !fits || !seen.insert(made).second) return false;
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<bool>& movable_;
  const std::vector<int> producer_;
  const std::vector<bool> output_;
  Views views_;
};

}  // namespace

std::optional<std::vector<SubRange>> parts_of(const Graph& graph, const Node& node) {
  const bool concat = node.op == "Concat", split = node.op == "Split";
  if (!node.domain.empty() || (!concat && !split)) return std::nullopt;
  const ValueId all = concat ? node.outputs[0] : node.inputs[0];
  const auto& whole = graph.values[static_cast<size_t>(all)].type;
  int64_t axis = node.attrs.get_int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(whole.shape.size());
  if (whole.dynamic_axis >= 0 || axis >= static_cast<int64_t>(whole.shape.size()))
    return std::nullopt;
  for (int64_t i = 0; i < axis; ++i)
    if (whole.shape[static_cast<size_t>(i)] != 1) return std::nullopt;
  std::vector<SubRange> found;
  int64_t offset = 0;
  for (ValueId id : concat ? node.inputs : node.outputs) {
    if (id < 0 || offset % kViewAlign != 0) return std::nullopt;
    const auto& type = graph.values[static_cast<size_t>(id)].type;
    if (type.dtype != whole.dtype || type.dynamic_axis >= 0) return std::nullopt;
    found.push_back({id, all, offset});
    offset += storage_bytes(type.dtype, element_count(type.shape));
  }
  return found;
}

Views find_views(const Graph& graph, const std::vector<bool>& movable) {
  return Finder(graph, movable).run();
}

}  // namespace tilewright::graph
