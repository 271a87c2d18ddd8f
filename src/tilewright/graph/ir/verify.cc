// What must hold of every graph: ids in range, each value defined once and before its uses, unique
// names, and the types of all outputs as the operator's shape rule infers them. All problems are
// reported at once.
#include <fmt/format.h>

#include <set>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {
namespace {

/// Collects every broken rule of one graph.
class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), defined_(graph.values.size(), false) {}

  Status run() {
    values();
    for (ValueId id : graph_.inputs) {
      if (!in_range(id, "the graph's inputs")) continue;
      if (defined_[static_cast<size_t>(id)])
        report(fmt::format("input '{}' is defined twice", value(id).name));
      defined_[static_cast<size_t>(id)] = true;
    }
    std::set<std::string> names;
    for (const Node& node : graph_.nodes) {
      if (!names.insert(node.name).second)
        report(fmt::format("two nodes are named '{}'", node.name));
      check(node);
    }
    for (ValueId id : graph_.outputs)
      if (in_range(id, "the graph's outputs") && !defined_[static_cast<size_t>(id)])
        report(fmt::format("output '{}' is never produced", value(id).name));
    if (errors_.empty()) return {};
    Error first = std::move(errors_.front());
    first.others.assign(std::make_move_iterator(errors_.begin() + 1),
                        std::make_move_iterator(errors_.end()));
    return tl::unexpected<Error>(std::move(first));
  }

 private:
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  void report(std::string what, const std::string& place = {}) {
    Error error;
    error.kind = ErrorKind::Invalid;
    error.what = std::move(what);
    error.place = place;
    errors_.push_back(std::move(error));
  }

  bool in_range(ValueId id, const std::string& where) {
    if (id >= 0 && id < static_cast<ValueId>(graph_.values.size())) return true;
    report(
        fmt::format("value id {} of {} is out of range (0..{})", id, where, graph_.values.size()));
    return false;
  }

  void values() {
    std::set<std::string> names;
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& entry = graph_.values[v];
      if (!names.insert(entry.name).second)
        report(fmt::format("two values are named '{}'", entry.name));
      if (!checked_bytes(entry.type.dtype, entry.type.shape))
        report(fmt::format("value '{}' has the impossible type {}", entry.name,
                           to_string(entry.type)));
      if (!entry.constant) continue;
      defined_[v] = true;
      if (entry.constant->dtype() != entry.type.dtype ||
          entry.constant->shape() != entry.type.shape)
        report(fmt::format(
            "constant '{}' is {}, but its value is {}", entry.name, to_string(entry.type),
            to_string(tensor::TensorType{entry.constant->dtype(), entry.constant->shape()})));
    }
  }

  void check(const Node& node) {
    const std::string where = fmt::format("node '{}'", node.name);
    bool sound = true;
    for (ValueId id : node.inputs) {
      if (id == -1) continue;
      if (!in_range(id, where)) {
        sound = false;
      } else if (!defined_[static_cast<size_t>(id)]) {
        report(fmt::format("value '{}' is used before it is produced", value(id).name), where);
        sound = false;
      }
    }
    for (ValueId id : node.outputs) {
      if (!in_range(id, where)) {
        sound = false;
        continue;
      }
      if (defined_[static_cast<size_t>(id)] && !value(id).constant)
        report(fmt::format("value '{}' is produced twice", value(id).name), where);
      defined_[static_cast<size_t>(id)] = true;
    }
    if (sound) check_types(node, where);
  }

  void check_types(const Node& node, const std::string& where) {
    const auto types = tensor::infer(op_call(graph_, node));
    if (!types) return report(types.error().what + ": " + types.error().why, where);
    if (types->size() < node.outputs.size())
      return report(fmt::format("{} has {} outputs here, but yields {}", node.op,
                                node.outputs.size(), types->size()),
                    where);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value& out = value(node.outputs[i]);
      if (out.type.dtype != (*types)[i].dtype || out.type.shape != (*types)[i].shape)
        report(fmt::format("'{}' is {}, but {} yields {}", out.name, to_string(out.type), node.op,
                           to_string((*types)[i])),
               where);
    }
  }

  const Graph& graph_;
  std::vector<bool> defined_;
  std::vector<Error> errors_;
};

}  // namespace

Status verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace tilewright::graph
