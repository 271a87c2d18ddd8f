// Which nodes become one layer: everything one sum can take in on its way out.
//
//   Conv -> Add(residual) -> Relu  one unit of kind Product
//   MaxPool, Concat, Reshape       units of kind Pool and Move: bytes stay the bytes they are
//   Softmax                        a unit of kind Float, with the reason
#include "tilewright/graph/quantize/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/tensor/fixed_point.h"

namespace tilewright::graph {
namespace {

const std::set<std::string> kMoves = {
    "Concat",  "DepthToSpace", "Expand",    "Flatten",   "Identity", "Im2Col",
    "Pad",     "Reshape",      "Resize",    "Slice",     "Split",    "SpaceToDepth",
    "Squeeze", "Tile",         "Transpose", "Unsqueeze", "Gather"};

class QuantizationPlanner {
 public:
  QuantizationPlanner(const Graph& graph, const std::function<bool(ValueId)>& has_scale,
                      const std::function<bool(ValueId)>& boundary, const IntegerAbilities& target)
      : graph_(graph),
        target_(target),
        has_scale_(has_scale),
        boundary_(boundary),
        users_(consumers(graph)),
        producer_(producers(graph)),
        output_(is_output(graph)),
        taken_(graph.nodes.size(), false) {
    plan_.integer.assign(graph.values.size(), false);
    plan_.wanted.assign(graph.values.size(), false);
    plan_.feeds.assign(graph.values.size(), false);
  }

  Plan run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) choose_host(static_cast<int>(n));
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (!taken_[n]) add_unit(static_cast<int>(n));
    std::stable_sort(plan_.units.begin(), plan_.units.end(),
                     [](const Unit& a, const Unit& b) { return a.last < b.last; });
    for (Unit& unit : plan_.units) settle_move(unit);
    for (size_t u = plan_.units.size(); u-- > 0;) {
      want(plan_.units[u]);
      feed(plan_.units[u]);
    }
    return std::move(plan_);
  }

 private:
  const Node& node(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  bool known(ValueId id) const { return id >= 0 && value(id).constant.has_value(); }
  bool is_image(ValueId id) const {
    return id >= 0 && !known(id) && value(id).type.dtype == DType::F32 && shape(id).size() == 4 &&
           value(id).type.dynamic_axis < 0 && element_count(shape(id)) > 0;
  }
  /// Read by one node only, and free to stay inside a unit.
  bool inner(ValueId id) const {
    return users_[static_cast<size_t>(id)].size() == 1 && !output_[static_cast<size_t>(id)] &&
           !boundary_(id);
  }

  /// Empty if `n` is a convolution that can be integer, else the reason.
  std::string conv_problem(int n) const {
    const Node& v = node(n);
    if (!is_image(v.inputs[0])) return "its input is no f32 image of rank 4";
    if (!known(v.inputs[1]) || value(v.inputs[1]).type.dtype != DType::F32)
      return "its weight is not a known f32 array";
    if (v.inputs.size() > 2 && v.inputs[2] >= 0 && !known(v.inputs[2]))
      return "its bias is computed at run time";
    if (v.attrs.get_string("auto_pad", "NOTSET") != "NOTSET") return "its padding is not explicit";
    return {};
  }
  bool is_conv(int n) const {
    return n >= 0 && node(n).domain.empty() && node(n).op == "Conv" && conv_problem(n).empty();
  }
  bool is_addition(int n) const {
    const Node& v = node(n);
    return v.domain.empty() && v.op == "Add" && is_image(v.inputs[0]) && is_image(v.inputs[1]) &&
           shape(v.inputs[0]) == shape(v.outputs[0]) && shape(v.inputs[1]) == shape(v.outputs[0]);
  }

  int64_t work(int n) const {
    const Shape& w = shape(node(n).inputs[1]);
    return element_count(shape(node(n).outputs[0])) * w[1] * w[2] * w[3];
  }

  /// The convolution whose sum an addition joins: the larger of the two.
  void choose_host(int n) {
    if (target_.fixed_point || !is_addition(n)) return;
    int best = -1;
    for (const ValueId id : node(n).inputs) {
      const int p = producer_[static_cast<size_t>(id)];
      if (is_conv(p) && inner(id) && (best < 0 || work(p) > work(best))) best = p;
    }
    if (best >= 0) host_[best] = n;
  }

  /// Bounds of a Relu or Clip, or that it is a LeakyRelu; nothing for other nodes.
  struct Bounds {
    std::optional<double> lo, hi;
    bool leaky = false;
  };
  std::optional<Bounds> bounds(int n) const {
    const Node& v = node(n);
    if (!v.domain.empty()) return std::nullopt;
    if (v.op == "Relu") return Bounds{0.0, std::nullopt};
    if (v.op == "LeakyRelu" && target_.leaky_relu &&
        std::fabs(v.attrs.get_float("alpha", 0.01) - tensor::kLeakySlope) <= kSlopeTolerance)
      return Bounds{std::nullopt, std::nullopt, true};
    if (v.op != "Clip") return std::nullopt;
    Bounds b;
    for (size_t i = 1; i < v.inputs.size() && i < 3; ++i) {
      if (v.inputs[i] < 0) continue;
      if (!known(v.inputs[i]) || array_of(value(v.inputs[i])).size() != 1) return std::nullopt;
      (i == 1 ? b.lo : b.hi) = array_of(value(v.inputs[i])).get(0);
    }
    return b;
  }

  void add_unit(int n) {
    Unit unit;
    unit.node = unit.last = n;
    const Node& v = node(n);
    taken_[static_cast<size_t>(n)] = true;
    if (v.outputs.empty() || (!v.domain.empty() && v.op != "Im2Col")) {
      unit.why = "there is no integer form of it";
    } else if (v.op == "Conv" || (v.op == "ConvTranspose" && target_.transposed_convolutions)) {
      product(unit, n);
    } else if (is_addition(n)) {
      sum(unit, n);
    } else if (v.op == "MaxPool" && is_image(v.inputs[0]) && v.outputs.size() == 1) {
      simple(unit, Unit::Kind::Pool);
    } else if (v.op == "AveragePool" && target_.averages != Averages::Depthwise) {
      average(unit, n);
    } else if (bounds(n) && is_image(v.inputs[0])) {
      unit.node = -1;
      activation(unit, *bounds(n));
      product_of(unit, v.inputs[0], v.outputs[0]);
    } else if (kMoves.contains(v.op)) {
      unit.kind = Unit::Kind::Move;
    } else {
      unit.why = "there is no integer form of it";
    }
    plan_.units.push_back(unit);
    if (computes(unit)) plan_.integer[static_cast<size_t>(unit.output)] = true;
  }
  static bool computes(const Unit& unit) {
    return unit.kind != Unit::Kind::Float && unit.kind != Unit::Kind::Move;
  }
  static void activation(Unit& unit, const Bounds& b) {
    unit.lo = b.lo, unit.hi = b.hi, unit.leaky = b.leaky;
  }

  /// An AveragePool as prepare_quantize leaves it.
  void average(Unit& unit, int n) {
    const auto kernel = node(n).attrs.get_ints("kernel_shape");
    // Products of sums and factors have to fit 32 bits.
    const bool fits = kernel.size() == 2 && kernel[0] * kernel[1] <= int64_t{1} << 13;
    if (!is_image(node(n).inputs[0]) || !fits) {
      unit.why = "its windows are too large";
      return;
    }
    simple(unit, Unit::Kind::Average);
  }

  void simple(Unit& unit, Unit::Kind kind) {
    unit.input = node(unit.node).inputs[0];
    unit.output = node(unit.node).outputs[0];
    unit.why = missing_scale({unit.input, unit.output});
    if (!unit.why.empty()) return;
    unit.kind = kind;
  }

  void product(Unit& unit, int n) {
    unit.why = conv_problem(n);
    if (!unit.why.empty()) return;
    ValueId last = node(n).outputs[0];
    std::vector<int> absorbed;
    if (const auto host = host_.find(n); host != host_.end()) {
      const Node& add = node(host->second);
      unit.residual = add.inputs[0] == last ? add.inputs[1] : add.inputs[0];
      absorbed.push_back(host->second);
      last = add.outputs[0];
    }
    finish(unit, node(n).inputs[0], last, std::move(absorbed));
  }

  void sum(Unit& unit, int n) {
    unit.node = -1;
    unit.residual = node(n).inputs[1];
    finish(unit, node(n).inputs[0], node(n).outputs[0], {});
  }

  /// Takes the activation behind `last` and closes the product, if scales are known.
  void finish(Unit& unit, ValueId input, ValueId last, std::vector<int> absorbed) {
    if (inner(last)) {
      const int next = users_[static_cast<size_t>(last)][0];
      if (const auto clip = bounds(next)) {
        activation(unit, *clip);
        absorbed.push_back(next);
        last = node(next).outputs[0];
      }
    }
    product_of(unit, input, last);
    if (unit.kind == Unit::Kind::Float) {
      unit.residual = -1;
      if (unit.node < 0) unit.node = unit.last;
      return;
    }
    for (const int a : absorbed) {
      taken_[static_cast<size_t>(a)] = true;
      unit.last = std::max(unit.last, a);
    }
  }

  void product_of(Unit& unit, ValueId input, ValueId output) {
    unit.input = input, unit.output = output;
    unit.why = missing_scale({input, unit.residual, output});
    if (unit.why.empty()) {
      const bool sum = target_.fixed_point && unit.node < 0;
      unit.kind = sum ? Unit::Kind::Sum : Unit::Kind::Product;
    } else if (unit.node < 0) {
      unit.node = unit.last;
    }
  }

  /// Empty if all values have scales (-1: no value), else which one has none.
  std::string missing_scale(const std::vector<ValueId>& values) const {
    for (const ValueId id : values) {
      if (id < 0 || has_scale_(id)) continue;
      const std::string& name = value(id).name;
      const auto& readers = users_[static_cast<size_t>(id)];
      const auto adds = std::find_if(readers.begin(), readers.end(),
                                     [&](int reader) { return is_addition(reader); });
      if (!target_.fixed_point || !is_conv(producer_[static_cast<size_t>(id)]) ||
          adds == readers.end())
        return fmt::format("no scale is known for '{}'", name);
      return fmt::format(
          "'{}' has no scale of its own: '{}' adds to the sum, but the target rounds sums to 8 "
          "bits first; QuantizeLinear and DequantizeLinear between them give it one",
          name, node(*adds).name);
    }
    return {};
  }

  /// Inputs that hold data, not parameters.
  std::vector<ValueId> data_inputs(const Node& v) const {
    if (v.op == "Concat") return v.inputs;
    return {v.inputs[0]};
  }

  /// A movement of integers: at least one input is one, the operator takes i8, scales are known.
  void settle_move(Unit& unit) {
    if (unit.kind != Unit::Kind::Move) return;
    const Node& v = node(unit.node);
    bool any = false, all = true;
    for (const ValueId id : data_inputs(v)) {
      const bool fits =
          id >= 0 && !known(id) && value(id).type.dtype == DType::F32 && has_scale_(id);
      all = all && fits;
      any = any || (fits && (plan_.integer[static_cast<size_t>(id)] || boundary_(id)));
    }
    for (const ValueId id : v.outputs) all = all && id >= 0 && has_scale_(id);
    tensor::OpCall call = op_call(graph_, v);
    if (v.op == "Pad" && call.input(2)) {
      // Only zeros have the same code under every scale.
      const auto& fill = call.inputs[2].value;
      all = all && fill && fill->size() == 1 && fill->get(0) == 0;
      call.inputs[2].present = false;
    }
    for (tensor::InputInfo& info : call.inputs)
      if (info.present && info.dtype == DType::F32 && !info.value) info.dtype = DType::I8;
    if (v.op == "Resize" && v.attrs.get_string("mode", "nearest") != "nearest") all = false;
    if (any && all && tensor::infer(call)) {
      for (const ValueId id : v.outputs) plan_.integer[static_cast<size_t>(id)] = true;
      return;
    }
    unit.kind = Unit::Kind::Float;
    unit.why = any ? "it has no integer form here" : "its input is f32";
  }

  void want(Unit& unit) {
    const auto mark = [&](ValueId id) {
      if (id >= 0) plan_.wanted[static_cast<size_t>(id)] = true;
    };
    if (computes(unit)) {
      mark(unit.input), mark(unit.residual);
    } else if (unit.kind == Unit::Kind::Move) {
      const Node& v = node(unit.node);
      const bool needed = std::any_of(v.outputs.begin(), v.outputs.end(), [&](ValueId id) {
        return plan_.wanted[static_cast<size_t>(id)] || boundary_(id);
      });
      if (needed) {
        for (const ValueId id : data_inputs(v)) mark(id);
        return;
      }
      unit.kind = Unit::Kind::Float;
      unit.why = "only f32 operators read it";
      for (const ValueId id : v.outputs) plan_.integer[static_cast<size_t>(id)] = false;
    }
  }

  /// Marks what integer layers depend on, through f32 nodes too.
  void feed(const Unit& unit) {
    const auto mark = [&](ValueId id) {
      if (id >= 0) plan_.feeds[static_cast<size_t>(id)] = true;
    };
    if (unit.kind == Unit::Kind::Product || unit.kind == Unit::Kind::Sum) {
      mark(unit.input), mark(unit.residual);
      return;
    }
    const Node& v = node(unit.node);
    const bool needed = unit.kind == Unit::Kind::Pool || unit.kind == Unit::Kind::Average ||
                        std::any_of(v.outputs.begin(), v.outputs.end(), [&](ValueId id) {
                          return id >= 0 && plan_.feeds[static_cast<size_t>(id)];
                        });
    if (needed)
      for (const ValueId id : v.inputs) mark(id);
  }

  const Graph& graph_;
  const IntegerAbilities target_;
  const std::function<bool(ValueId)>& has_scale_;
  const std::function<bool(ValueId)>& boundary_;
  const std::vector<std::vector<int>> users_;
  const std::vector<int> producer_;
  const std::vector<bool> output_;
  std::vector<bool> taken_;
  std::map<int, int> host_;  ///< convolution -> the addition that joins its sum
  Plan plan_;
};

}  // namespace

Plan plan_units(const Graph& graph, const std::function<bool(ValueId)>& has_scale,
                const std::function<bool(ValueId)>& boundary, const IntegerAbilities& target) {
  return QuantizationPlanner(graph, has_scale, boundary, target).run();
}

}  // namespace tilewright::graph
