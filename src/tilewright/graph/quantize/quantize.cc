// Scales from calibration. Values that data movement connects share one; then each layer's output
// must not be finer than its sum.
#include "tilewright/graph/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/quantize/emit.h"
#include "tilewright/graph/quantize/layer.h"
#include "tilewright/graph/quantize/scale.h"

namespace tilewright::graph {
namespace {

constexpr int kMaxShift = 24;  ///< beyond it biases would need more than 32 bits

class Calibrated {
 public:
  Calibrated(const Graph& graph, const Ranges& ranges, const QuantizeOptions& options)
      : graph_(graph), ranges_(ranges), options_(options), parent_(graph.values.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  Result<QuantizedGraph> run() {
    const std::function<bool(ValueId)> has_scale = [&](ValueId id) {
      return graph_.values[static_cast<size_t>(id)].type.dtype == DType::F32;
    };
    const std::function<bool(ValueId)> boundary = [](ValueId) { return false; };
    const Plan plan = plan_units(graph_, has_scale, boundary, options_.target);
    for (const Unit& unit : plan.units) connect(unit);
    TW_TRY_STATUS(choose_exponents(plan));
    choose_weights(plan);
    settle(plan);
    return emit_quantized(graph_, plan, scales(plan), options_);
  }

 private:
  const Node& node(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  // --- Values of one scale.

  ValueId root(ValueId id) const {
    while (parent_[static_cast<size_t>(id)] != id) id = parent_[static_cast<size_t>(id)];
    return id;
  }
  void join(ValueId a, ValueId b) { parent_[static_cast<size_t>(root(a))] = root(b); }

  void connect(const Unit& unit) {
    if (unit.kind != Unit::Kind::Pool && unit.kind != Unit::Kind::Move) return;
    const Node& v = node(unit.node);
    for (const ValueId id : v.outputs) join(id, v.inputs[0]);
    if (v.op == "Concat")
      for (const ValueId id : v.inputs) join(id, v.inputs[0]);
  }

  Status choose_exponents(const Plan& plan) {
    std::vector<bool> used(graph_.values.size(), false);
    std::vector<Observed> seen(graph_.values.size());
    for (size_t v = 0; v < used.size(); ++v) used[v] = plan.integer[v] || plan.wanted[v];
    for (size_t v = 0; v < used.size(); ++v) {
      if (!used[v]) continue;
      const auto id = static_cast<ValueId>(v);
      if (v >= ranges_.values.size() || ranges_.values[v].count == 0)
        return fail(ErrorKind::Invalid,
                    fmt::format("the value '{}' was not calibrated", value(id).name), {},
                    "give every value of the prepared graph to accumulate()");
      merge(seen[static_cast<size_t>(root(id))], ranges_.values[v]);
    }
    exponent_.assign(used.size(), 0);
    for (size_t v = 0; v < used.size(); ++v)
      if (seen[v].count > 0) exponent_[v] = best_exponent(seen[v]);
    // A result whose rounding is added separately must not be clipped.
    for (const Unit& unit : plan.units) {
      if (!wide(plan, unit)) continue;
      const Observed& range = ranges_.values[static_cast<size_t>(unit.output)];
      exponent(unit.output) = covering_exponent(std::max(-range.lo, range.hi));
    }
    return {};
  }
  bool wide(const Plan& plan, const Unit& unit) const {
    return options_.wide_outputs && !options_.target.fixed_point &&
           unit.kind == Unit::Kind::Product && unit.residual < 0 && !unit.lo && !unit.hi &&
           !plan.feeds[static_cast<size_t>(unit.output)];
  }
  int& exponent(ValueId id) { return exponent_[static_cast<size_t>(root(id))]; }

  // --- Weights.

  void choose_weights(const Plan& plan) {
    for (const Unit& unit : plan.units) {
      if (unit.kind != Unit::Kind::Product || unit.node < 0) continue;
      const ValueId id = node(unit.node).inputs[1];
      if (weights_.contains(id)) continue;
      const Array& w = array_of(value(id));
      weights_[id] = options_.per_channel && w.shape()[0] > 0 && !wide(plan, unit)
                         ? per_channel(w)
                         : std::vector<double>{std::ldexp(1.0, best_exponent(w.as<float>()))};
    }
  }
  static std::vector<double> per_channel(const Array& w) {
    std::vector<double> scales;
    const auto data = w.as<float>();
    const auto inner = static_cast<size_t>(w.size() / w.shape()[0]);
    for (size_t o = 0; o < static_cast<size_t>(w.shape()[0]); ++o) {
      float most = 0;
      for (size_t i = 0; i < inner; ++i) most = std::max(most, std::fabs(data[o * inner + i]));
      scales.push_back(most > 0 ? most / kInt8Max : 1.0 / kInt8Max);
    }
    return scales;
  }

  /// Moves exponents until each layer is a right shift: the sum's unit must not be coarser than the
  /// output's or the residual's, nor finer by more than the shifts allow. Multipliers need
  /// no order.
  void settle(const Plan& plan) {
    bool changed = true;
    for (int round = 0; changed && round < 100; ++round) {
      changed = false;
      for (const Unit& unit : plan.units)
        if (unit.kind == Unit::Kind::Product) {
          changed = settle(unit) || changed;
        } else if (unit.kind == Unit::Kind::Average) {
          changed = settle_average(unit) || changed;
        }
    }
  }
  static bool raise(int& e, int least) {
    const bool moved = e < least;
    e = std::max(e, least);
    return moved;
  }
  /// The factor of a mean may take in a change of scale, as far as its shift has room.
  bool settle_average(const Unit& unit) {
    constexpr int kFiner = 6, kCoarser = 8;
    const bool changed = raise(exponent(unit.output), exponent(unit.input) - kFiner);
    return raise(exponent(unit.input), exponent(unit.output) - kCoarser) || changed;
  }
  bool settle(const Unit& unit) {
    const int x = exponent(unit.input);
    int& y = exponent(unit.output);
    // A product with 1 picks its own weight, down to 1/64 as unit.
    if (unit.node < 0) {
      bool changed = raise(y, x - 6);
      if (unit.residual < 0) return changed;
      int& r = exponent(unit.residual);
      changed = raise(r, x - 6) || changed;
      const int unit_of_sum = std::max(x - 6, std::min({x, y, r}));
      return raise(exponent(unit.input), r - kMaxResidualShift + std::max(0, x - unit_of_sum)) ||
             changed;
    }
    std::vector<double>& weight = weights_[node(unit.node).inputs[1]];
    if (weight.size() > 1 || !exact_log2(weight[0])) return false;
    int w = *exact_log2(weight[0]);
    bool changed = raise(w, y - x - kMaxShift);
    if (node(unit.node).inputs.size() > 2 && node(unit.node).inputs[2] >= 0) {
      double bias = 0;
      for (const double b : array_of(value(node(unit.node).inputs[2])).to_doubles())
        bias = std::max(bias, std::fabs(b));
      if (bias > 0)
        changed = raise(w, static_cast<int>(std::ceil(std::log2(bias))) - 29 - x) || changed;
    }
    if (unit.residual >= 0) {
      changed = raise(w, exponent(unit.residual) - kMaxResidualShift - x) || changed;
      changed = raise(exponent(unit.residual), x + w) || changed;
    }
    weight[0] = std::ldexp(1.0, w);
    return raise(y, x + w) || changed;
  }

  Scales scales(const Plan& plan) {
    Scales s;
    const size_t count = graph_.values.size();
    s.value.assign(count, 0);
    s.mean.resize(count);
    s.rounded.assign(count, false);
    s.weight = weights_;
    for (size_t v = 0; v < count; ++v) {
      if (!plan.integer[v] && !plan.wanted[v]) continue;
      s.value[v] = std::ldexp(1.0, exponent(static_cast<ValueId>(v)));
      const Observed& range = ranges_.values[v];
      const auto channels = static_cast<double>(range.channel_sum.size());
      for (const double sum : range.channel_sum)
        s.mean[v].push_back(sum * channels / static_cast<double>(range.count));
    }
    return s;
  }

  const Graph& graph_;
  const Ranges& ranges_;
  const QuantizeOptions& options_;
  std::vector<ValueId> parent_;
  std::vector<int> exponent_;  ///< at the root of each value
  std::map<ValueId, std::vector<double>> weights_;
};

}  // namespace

Result<QuantizedGraph> quantize(const Graph& prepared, const Ranges& ranges,
                                const QuantizeOptions& options) {
  return Calibrated(prepared, ranges, options).run();
}

}  // namespace tilewright::graph
