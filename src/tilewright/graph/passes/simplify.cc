// Small rules, tried at every node until none applies any more.
//
//   Identity(x), x + 0, x * 1, Cast to its own type    =>  x
//   Transpose(Transpose(x, p), q), Reshape(Reshape(x)) =>  one of them
//   Relu(Clip(x, -1, 6))                               =>  Clip(x, 0, 6)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

class Simplifier {
 public:
  Simplifier(const Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Graph run() {
    for (bool changed = true; changed;) {
      changed = false;
      producer_ = producers(graph_);
      users_ = consumers(graph_);
      for (size_t n = 0; n < graph_.nodes.size(); ++n) changed = step(n) || changed;
      if (changed) graph_ = compact(graph_);
    }
    for (const auto& [what, count] : counts_)
      context_.notes.push_back(fmt::format("{} x {}", count, what));
    return compact(graph_);
  }

 private:
  Node& node(size_t n) { return graph_.nodes[n]; }
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  const tensor::TensorType& type(ValueId id) const { return value(id).type; }

  /// The node before input 0 of `n`, if it is `op` and nobody else reads its value.
  Node* before(size_t n, const std::string& op) {
    const ValueId id = node(n).inputs.empty() ? -1 : node(n).inputs[0];
    if (id < 0) return nullptr;
    const int p = producer_[static_cast<size_t>(id)];
    if (p < 0 || !node(static_cast<size_t>(p)).domain.empty()) return nullptr;
    return node(static_cast<size_t>(p)).op == op ? &node(static_cast<size_t>(p)) : nullptr;
  }

  bool is_graph_output(ValueId id) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end();
  }
  bool is_needed(ValueId id) const {
    return !users_[static_cast<size_t>(id)].empty() || is_graph_output(id);
  }
  bool only_reader(ValueId id) const {
    return users_[static_cast<size_t>(id)].size() == 1 && !is_graph_output(id);
  }

  bool step(size_t n) {
    if (!node(n).domain.empty() || node(n).inputs.empty() || node(n).inputs[0] < 0) return false;
    // Replaced already, or dead: without this check a rule would fire for ever.
    if (!is_needed(node(n).outputs[0])) return false;
    return drop_if_neutral(n) || merge(n);
  }

  /// Uses of the node's output read `id` instead.
  bool replace_by(size_t n, ValueId id, const std::string& what) {
    if (!forward(graph_, node(n).outputs[0], id)) return false;
    ++counts_[what];
    users_ = consumers(graph_);
    return true;
  }

  bool all_equal(ValueId id, double wanted) const {
    if (id < 0 || !value(id).constant) return false;
    const Array& array = array_of(value(id));
    for (int64_t i = 0; i < array.size(); ++i)
      if (array.get(i) != wanted) return false;
    return array.size() > 0;
  }

  bool unused_mask(const Node& v) const { return v.outputs.size() < 2 || !is_needed(v.outputs[1]); }

  /// Operators that give their input 0 (or 1) back unchanged.
  bool drop_if_neutral(size_t n) {
    const Node& v = node(n);
    const std::string what = v.op + " that changes nothing";
    const ValueId in = v.inputs[0];
    const bool same = v.outputs.size() == 1 && type(in).dtype == type(v.outputs[0]).dtype &&
                      type(in).shape == type(v.outputs[0]).shape;
    if (v.op == "Dropout" && unused_mask(v)) return replace_by(n, in, "Dropout");
    if (!same) return v.inputs.size() == 2 && drop_neutral_left(n);
    static const std::vector<std::string> kBySameType = {
        "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast", "CastLike",
        "Expand",   "Concat",  "Sum",     "Max",     "Min",       "Mean", "Tile"};
    // Of equal bounds another axis may be the one whose extent the run decides.
    if (type(in).dynamic_axis != type(v.outputs[0]).dynamic_axis) return false;
    const bool single = v.inputs.size() == 1;
    if (std::count(kBySameType.begin(), kBySameType.end(), v.op) > 0) {
      const bool variadic =
          v.op == "Sum" || v.op == "Max" || v.op == "Min" || v.op == "Mean" || v.op == "Concat";
      if (!variadic || single) return replace_by(n, in, what);
    }
    if (v.op == "Transpose" && keeps_order(v)) return replace_by(n, in, what);
    if (v.op == "Slice" && slices_forward(v)) return replace_by(n, in, what);
    if (v.op == "Pad" && v.attrs.get_string("mode", "constant") == "constant") {
      const auto pads = known_ints(graph_, v, 1);
      if (pads && std::all_of(pads->begin(), pads->end(), [](int64_t p) { return p == 0; }))
        return replace_by(n, in, what);
    }
    if (v.inputs.size() < 2) return false;
    if ((v.op == "Add" || v.op == "Sub") && all_equal(v.inputs[1], 0))
      return replace_by(n, in, what);
    if ((v.op == "Mul" || v.op == "Div" || v.op == "Pow") && all_equal(v.inputs[1], 1))
      return replace_by(n, in, what);
    return drop_neutral_left(n);
  }

  /// 0 + x and 1 * x.
  bool drop_neutral_left(size_t n) {
    const Node& v = node(n);
    if (v.inputs.size() != 2 || v.inputs[1] < 0 || v.outputs.size() != 1) return false;
    if (type(v.inputs[1]).shape != type(v.outputs[0]).shape ||
        type(v.inputs[1]).dtype != type(v.outputs[0]).dtype ||
        type(v.inputs[1]).dynamic_axis != type(v.outputs[0]).dynamic_axis)
      return false;
    const bool neutral = (v.op == "Add" && all_equal(v.inputs[0], 0)) ||
                         (v.op == "Mul" && all_equal(v.inputs[0], 1));
    return neutral && replace_by(n, v.inputs[1], v.op + " that changes nothing");
  }

  std::vector<int64_t> permutation(const Node& v) const {
    const auto rank = static_cast<int64_t>(type(v.inputs[0]).shape.size());
    std::vector<int64_t> order(static_cast<size_t>(rank));
    for (int64_t i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = rank - 1 - i;
    return v.attrs.get_ints("perm", order);
  }

  /// A permutation that moves only axes of extent 1 leaves the bytes in place, but changes the
  /// shape unless it is the identity.
  bool keeps_order(const Node& v) const {
    const std::vector<int64_t> order = permutation(v);
    int64_t last = -1;
    for (int64_t axis : order) {
      if (type(v.inputs[0]).shape[static_cast<size_t>(axis)] == 1) continue;
      if (axis < last) return false;
      last = axis;
    }
    return true;
  }

  /// With equal input and output shapes a Slice with positive steps takes everything.
  bool slices_forward(const Node& v) const {
    if (v.inputs.size() < 5 || v.inputs[4] < 0) return true;
    const auto steps = known_ints(graph_, v, 4);
    return steps && std::all_of(steps->begin(), steps->end(), [](int64_t s) { return s > 0; });
  }

  bool merge(size_t n) {
    Node& v = node(n);
    if (v.op == "Transpose") return merge_transposes(n);
    if (v.op == "Reshape" || v.op == "Flatten" || v.op == "Squeeze" || v.op == "Unsqueeze")
      return merge_reshapes(n);
    if (v.op == "Relu" && (before(n, "Relu") || before(n, "Sigmoid")))
      return replace_by(n, v.inputs[0], "Relu of what is not negative");
    if (v.op == "Clip" || v.op == "Relu") return merge_clips(n);
    return false;
  }

  bool merge_transposes(size_t n) {
    const Node* first = before(n, "Transpose");
    if (first == nullptr) return false;
    const std::vector<int64_t> inner = permutation(*first), outer = permutation(node(n));
    std::vector<int64_t> both;
    for (int64_t axis : outer) both.push_back(inner[static_cast<size_t>(axis)]);
    const ValueId source = first->inputs[0];
    node(n).inputs[0] = source;
    node(n).attrs.values["perm"] = both;
    ++counts_["Transpose merged with the one before"];
    users_ = consumers(graph_);
    return true;
  }

  /// reshape(reshape(x)) = reshape(x) with the final shape.
  bool merge_reshapes(size_t n) {
    const Node* first = nullptr;
    for (const char* op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
      if (first == nullptr) first = before(n, op);
    if (first == nullptr) return false;
    const ValueId source = first->inputs[0];
    const Shape target = type(node(n).outputs[0]).shape;
    Array shape(DType::I64, {static_cast<int64_t>(target.size())});
    for (size_t i = 0; i < target.size(); ++i) shape.set_int(static_cast<int64_t>(i), target[i]);
    const ValueId wanted = graph_.add_value(FreshNames(graph_).value(node(n).name + ".shape"),
                                            {DType::I64, shape.shape()}, shape);
    producer_.push_back(-1);
    users_.emplace_back();
    node(n).op = "Reshape";
    node(n).inputs = {source, wanted};
    node(n).attrs.values.clear();
    node(n).attrs.values["allowzero"] = int64_t{1};
    ++counts_["reshape merged with the one before"];
    users_ = consumers(graph_);
    return true;
  }

  struct Bounds {
    double lo = -std::numeric_limits<double>::infinity();
    double hi = std::numeric_limits<double>::infinity();
  };
  std::optional<Bounds> bounds(const Node& v) const {
    Bounds b;
    if (v.op == "Relu") {
      b.lo = 0;
      return b;
    }
    for (size_t i = 1; i < v.inputs.size() && i <= 2; ++i) {
      if (v.inputs[i] < 0) continue;
      const auto& bound = value(v.inputs[i]).constant;
      if (!bound || bound->size() != 1) return std::nullopt;
      (i == 1 ? b.lo : b.hi) = bound->get(0);
    }
    return b;
  }

  /// clip(clip(x)) with known bounds is one Clip; Relu counts as a Clip from 0.
  bool merge_clips(size_t n) {
    Node* first = before(n, "Clip");
    if (first == nullptr) first = before(n, "Relu");
    if (first == nullptr || !is_float(type(node(n).outputs[0]).dtype)) return false;
    if (!only_reader(first->outputs[0])) return false;
    const auto inner = bounds(*first), outer = bounds(node(n));
    if (!inner || !outer || inner->lo > inner->hi || outer->lo > outer->hi) return false;
    const double lo = std::min(std::max(inner->lo, outer->lo), outer->hi);
    const double hi = std::max(std::min(inner->hi, outer->hi), outer->lo);
    const DType dtype = type(node(n).outputs[0]).dtype;
    FreshNames names(graph_);
    const ValueId source = first->inputs[0];
    const auto bound = [&](double limit, const char* suffix) -> ValueId {
      if (std::isinf(limit)) return -1;
      const ValueId id = graph_.add_value(names.value(node(n).name + suffix), {dtype, {}},
                                          Array::scalar(dtype, limit));
      producer_.push_back(-1);
      return id;
    };
    const std::vector<ValueId> inputs = {source, bound(lo, ".min"), bound(hi, ".max")};
    node(n).op = "Clip";
    node(n).attrs.values.clear();
    node(n).inputs = inputs;
    while (node(n).inputs.back() < 0) node(n).inputs.pop_back();
    users_ = consumers(graph_);
    ++counts_["Clip merged with the one before"];
    return true;
  }

  Graph graph_;
  PassContext& context_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> users_;
  std::map<std::string, int> counts_;
};

}  // namespace

Result<Graph> simplify(const Graph& graph, PassContext& context) {
  return Simplifier(graph, context).run();
}

}  // namespace tilewright::graph
