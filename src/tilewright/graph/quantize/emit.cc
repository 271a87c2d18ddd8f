// From units to the integer graph. A value may exist as real numbers and as bytes under several
// scales; each form is made when somebody reads it.
//
//   Conv -> Add(r) -> Relu with scales  =>  ConvInteger(x as bytes, w as bytes)
//                                           -> Requantize(sum, bias, r as bytes), clipped from 0
//   a reader that stays f32             =>  DequantizeLinear in front of it
#include "tilewright/graph/quantize/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/check.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/quantize/layer.h"
#include "tilewright/graph/quantize/scale.h"
#include "tilewright/tensor/fixed_point.h"

namespace tilewright::graph {
namespace {

/// What exists of a value in the new graph beside what its producer made (f32, or any other type).
struct Forms {
  ValueId seen = -1;                ///< f32, as readers see it
  std::map<double, ValueId> bytes;  ///< i8, by scale
};

class Emitter : private Rewriter {
 public:
  Emitter(const Graph& graph, const Plan& plan, const Scales& scales,
          const QuantizeOptions& options)
      : Rewriter(graph),
        plan_(plan),
        scales_(scales),
        options_(options),
        forms_(graph.values.size()) {}

  Result<QuantizedGraph> run() {
    for (const Node& node : old().nodes) release(node);
    for (const Unit& unit : plan_.units) {
      Status done = emit(unit);
      if (!done)
        return tl::unexpected<Error>(std::move(done.error()).at("node '" + name(unit) + "'"));
    }
    for (ValueId id : old().outputs) {
      const ValueId made = TW_TRY(as_float(id));
      const ValueId raw = now(id);
      if (raw >= 0 && raw != made) rename(raw, value(id).name + "_unrounded");
      new_value(made).name = value(id).name;
      output(made);
    }
    return compacted();
  }

 private:
  Forms& forms(ValueId id) { return forms_[static_cast<size_t>(id)]; }
  double scale(ValueId id) const { return scales_.value[static_cast<size_t>(id)]; }
  const Node& node(const Unit& unit) const {
    return old().nodes[static_cast<size_t>(unit.node < 0 ? unit.last : unit.node)];
  }
  const std::string& name(const Unit& unit) const { return node(unit).name; }

  // --- Building.

  void set_scale(ValueId id, std::vector<double> scale_of) {
    if (scale_of.empty()) return;
    if (result_.scales.size() <= static_cast<size_t>(id))
      result_.scales.resize(static_cast<size_t>(id) + 1);
    result_.scales[static_cast<size_t>(id)] = std::move(scale_of);
  }
  void rename(ValueId id, const std::string& base) { new_value(id).name = value_name(base); }
  /// Integers that stand for the f32 value `old`.
  void set_bytes(ValueId old, double scale_of, ValueId id) {
    rename(id, value(old).name + "_q");
    set_scale(id, {scale_of});
    forms(old).bytes[scale_of] = id;
    origins_[new_value(id).name] = value(old).name;
  }

  // --- Forms of a value.

  ValueId scale_value(double number) {
    const auto found = numbers_.find(number);
    if (found != numbers_.end()) return found->second;
    return numbers_[number] = constant("scale", Array::scalar(DType::F32, number));
  }
  ValueId zero_value() {
    if (zero_ < 0) zero_ = constant("zero", Array::scalar(DType::I8, 0));
    return zero_;
  }

  Result<ValueId> dequantize(ValueId id, ValueId bytes, double scale_of) {
    return append(value(id).name + "/DequantizeLinear", "DequantizeLinear",
                  {bytes, scale_value(scale_of), zero_value()});
  }

  /// The integers under the value's own scale, if there are such. requires: there are integers.
  std::pair<double, ValueId> own_bytes(ValueId id) {
    const auto& bytes = forms(id).bytes;
    const auto found = bytes.find(scale(id));
    return found != bytes.end() ? *found : *bytes.begin();
  }

  Result<ValueId> as_float(ValueId id) {
    if (id < 0) return id;
    Forms& f = forms(id);
    if (f.seen >= 0) return f.seen;
    const bool rounded = scales_.rounded[static_cast<size_t>(id)] && scale(id) > 0;
    if (f.bytes.empty()) keep(id);
    if (f.bytes.empty() && !rounded) return f.seen = now(id);
    if (f.bytes.empty()) TW_TRY(as_bytes(id, scale(id)));
    if (now(id) >= 0 && !rounded) return f.seen = now(id);
    const auto own = own_bytes(id);
    const ValueId made = TW_TRY(dequantize(id, own.second, own.first));
    return forms(id).seen = made;
  }

  Result<ValueId> as_bytes(ValueId id, double wanted) {
    Forms& f = forms(id);
    if (const auto found = f.bytes.find(wanted); found != f.bytes.end()) return found->second;
    ValueId made = -1;
    if (!f.bytes.empty()) {
      made = TW_TRY(rescaled(id, wanted));
    } else {
      made = TW_TRY(append(value(id).name + "/QuantizeLinear", "QuantizeLinear",
                           {keep(id), scale_value(wanted), zero_value()}));
    }
    set_bytes(id, wanted, made);
    return made;
  }

  /// The value under another scale: a product with 1.
  Result<ValueId> rescaled(ValueId id, double wanted) {
    const auto own = own_bytes(id);
    if (options_.target.fixed_point)
      return sum_fixed(value(id).name + "/rescale", {own}, wanted, tensor::Attrs{});
    const LayerSpec spec = identity(shape(id), own.first, wanted, std::nullopt);
    return requantized(value(id).name + "/rescale", own.second, TW_TRY(layer_numbers(spec)), -1,
                       Attributes{shape(id)[1]}, spec.weight_scale);
  }

  /// A layer that multiplies by 1. The weight is the power of two that puts the sum's unit below
  /// those of the output and of the residual.
  static LayerSpec identity(const Shape& x, double x_scale, double y_scale,
                            std::optional<double> residual) {
    LayerSpec spec;
    spec.weight = Array(DType::F32, {x[1], 1, 1, 1});
    for (float& one : spec.weight.as<float>()) one = 1;
    spec.groups = x[1];
    spec.x_scale = x_scale, spec.y_scale = y_scale, spec.residual_scale = residual;
    double unit = 1;
    const double least = std::min(y_scale, residual.value_or(y_scale));
    while (unit > 1.0 / 64 && x_scale * unit > least) unit /= 2;
    spec.weight_scale = {unit};
    return spec;
  }

  // --- Layers.

  struct Attributes {
    int64_t groups = 1;
    std::vector<int64_t> strides = {1, 1}, pads = {0, 0, 0, 0}, dilations = {1, 1};
  };

  /// ConvInteger and Requantize.
  Result<ValueId> requantized(const std::string& base, ValueId x, const LayerNumbers& numbers,
                              ValueId residual, const Attributes& a,
                              const std::vector<double>& weight_scale) {
    const Shape& w = numbers.weight.shape();
    tensor::Attrs attrs;
    attrs.values = {{"kernel_shape", std::vector<int64_t>{w[2], w[3]}},
                    {"strides", a.strides},
                    {"pads", a.pads},
                    {"dilations", a.dilations},
                    {"group", a.groups}};
    const ValueId weight = constant(base + ".weight", numbers.weight);
    set_scale(weight, weight_scale);
    const ValueId acc = TW_TRY(append(base, "ConvInteger", {x, weight}, std::move(attrs)));
    rename(acc, base + ".sum");
    std::vector<ValueId> inputs = {acc, constant(base + ".bias", numbers.bias), residual};
    if (numbers.multiplier) {
      inputs.push_back(constant(base + ".multiplier", *numbers.multiplier));
    } else if (residual < 0) {
      inputs.pop_back();
    }
    return append_own(base + "/Requantize", "Requantize", std::move(inputs), numbers.attrs());
  }

  Result<LayerSpec> spec_of(const Unit& unit) const {
    std::optional<double> residual;
    if (unit.residual >= 0) residual = scale(unit.residual);
    LayerSpec spec;
    if (unit.node < 0) {
      spec = identity(shape(unit.input), scale(unit.input), scale(unit.output), residual);
    } else {
      const Node& conv = node(unit);
      spec.weight = array_of(value(conv.inputs[1]));
      spec.fixed_point = options_.target.fixed_point;
      if (conv.inputs.size() > 2 && conv.inputs[2] >= 0)
        spec.bias = array_of(value(conv.inputs[2])).to_doubles();
      spec.groups = conv.attrs.get_int("group", 1);
      spec.x_scale = scale(unit.input), spec.y_scale = scale(unit.output);
      spec.residual_scale = residual;
      const auto known_scale = scales_.weight.find(conv.inputs[1]);
      TW_CHECK(known_scale != scales_.weight.end(), "'{}' has no scale for its weight", conv.name);
      spec.weight_scale = known_scale->second;
      if (options_.correct_bias) spec.mean = scales_.mean[static_cast<size_t>(unit.input)];
      if (conv.op == "ConvTranspose") {
        // Pixels of its output read different taps, so that no mean fits all.
        spec.mean.clear();
        spec.weight = filters_first(spec.weight, spec.groups);
      }
    }
    spec.lo = unit.lo, spec.hi = unit.hi;
    spec.half_even = options_.target.half_even;
    return spec;
  }

  Status product(const Unit& unit) {
    const LayerSpec spec = TW_TRY(spec_of(unit));
    const LayerNumbers numbers = TW_TRY(layer_numbers(spec));
    const ValueId x = TW_TRY(as_bytes(unit.input, spec.x_scale));
    if (options_.target.fixed_point) return fixed_product(unit, spec, numbers, x);
    ValueId residual = -1;
    if (unit.residual >= 0) residual = TW_TRY(as_bytes(unit.residual, *spec.residual_scale));
    Attributes a;
    a.groups = spec.groups;
    if (unit.node >= 0) {
      const tensor::Attrs& given_attrs = node(unit).attrs;
      a.strides = given_attrs.get_ints("strides", a.strides);
      a.pads = given_attrs.get_ints("pads", a.pads);
      a.dilations = given_attrs.get_ints("dilations", a.dilations);
    }
    const ValueId y = TW_TRY(requantized(name(unit), x, numbers, residual, a, spec.weight_scale));
    set_bytes(unit.output, spec.y_scale, y);
    const bool leaves = !plan_.feeds[static_cast<size_t>(unit.output)];
    if (!leaves || !options_.wide_outputs || residual >= 0) return {};
    const auto low = low_part(numbers, spec.y_scale);
    if (!low) return {};
    const ValueId rest =
        TW_TRY(requantized(name(unit) + "/low", x, low->numbers, y, a, spec.weight_scale));
    set_scale(rest, {low->scale});
    const ValueId high = TW_TRY(dequantize(unit.output, y, spec.y_scale));
    const ValueId fine = TW_TRY(dequantize(unit.output, rest, low->scale));
    const ValueId whole = TW_TRY(append(value(unit.output).name + "/Sub", "Sub", {high, fine}));
    forms(unit.output).seen = whole;
    return {};
  }

  // --- Fixed point.

  /// Weights of a transposed convolution [i, o / groups, r, s] as [o, i / groups, r, s], or back.
  static Array filters_first(const Array& w, int64_t groups) {
    const Shape& s = w.shape();
    const int64_t rows = s[0] / groups, columns = s[1], taps = s[2] * s[3];
    Array out(w.dtype(), {columns * groups, rows, s[2], s[3]});
    for (int64_t i = 0; i < w.size(); ++i) {
      const int64_t tap = i % taps, column = i / taps % columns, row = i / taps / columns;
      const int64_t o = row / rows * columns + column;
      copy_element(out, (o * rows + row % rows) * taps + tap, w, i);
    }
    return out;
  }

  static tensor::Attrs result_attrs(const Unit& unit, double y_scale) {
    tensor::Attrs a;
    const auto bound = [&](double limit) {
      return static_cast<int64_t>(std::clamp(std::floor(limit / y_scale + 0.5), -128.0, 127.0));
    };
    const int64_t lo = unit.lo ? bound(*unit.lo) : -128;
    if (unit.lo) a.values["lo"] = lo;
    if (unit.hi) a.values["hi"] = std::max(lo, bound(*unit.hi));
    if (unit.leaky) a.values["leaky"] = int64_t{1};
    return a;
  }

  /// The convolution as it is, on integers, and RequantizeFixed.
  Status fixed_product(const Unit& unit, const LayerSpec& spec, const LayerNumbers& numbers,
                       ValueId x) {
    const Node& conv = node(unit);
    const bool transposed = conv.op == "ConvTranspose";
    const std::string& base = conv.name;
    Array integers = transposed ? filters_first(numbers.weight, spec.groups) : numbers.weight;
    const ValueId weight = constant(base + ".weight", std::move(integers));
    set_scale(weight, spec.weight_scale);
    const ValueId acc =
        transposed ? TW_TRY(append_own(base, "ConvTransposeInteger", {x, weight}, conv.attrs))
                   : TW_TRY(append(base, "ConvInteger", {x, weight}, conv.attrs));
    rename(acc, base + ".sum");
    tensor::Attrs attrs = result_attrs(unit, spec.y_scale);
    attrs.values["shift"] = numbers.shift;
    const ValueId y =
        TW_TRY(append_own(base + "/Requantize", "RequantizeFixed",
                          {acc, constant(base + ".bias", numbers.bias)}, std::move(attrs)));
    set_bytes(unit.output, spec.y_scale, y);
    return {};
  }

  /// EltwiseFixed of one or two values with their scales.
  Result<ValueId> sum_fixed(const std::string& base,
                            const std::vector<std::pair<double, ValueId>>& operands, double y_scale,
                            tensor::Attrs attrs) {
    double coarsest = 0;
    for (const auto& [scale_of, id] : operands) coarsest = std::max(coarsest, scale_of);
    std::vector<int64_t> reads;
    std::vector<ValueId> inputs;
    for (const auto& [scale_of, id] : operands) {
      reads.push_back(exact_log2(coarsest / scale_of).value_or(0));
      inputs.push_back(id);
    }
    attrs.values["shift_read"] = reads;
    attrs.values["shift_write"] = int64_t{exact_log2(coarsest / y_scale).value_or(0)};
    return append_own(base, "EltwiseFixed", std::move(inputs), std::move(attrs));
  }

  Status sum(const Unit& unit) {
    std::vector<std::pair<double, ValueId>> operands;
    for (const ValueId id : {unit.input, unit.residual})
      if (id >= 0) operands.emplace_back(scale(id), TW_TRY(as_bytes(id, scale(id))));
    const double y_scale = scale(unit.output);
    const ValueId y = TW_TRY(sum_fixed(name(unit), operands, y_scale, result_attrs(unit, y_scale)));
    set_bytes(unit.output, y_scale, y);
    return {};
  }

  Status average(const Unit& unit) {
    tensor::Attrs attrs = node(unit).attrs;
    const auto kernel = attrs.get_ints("kernel_shape");
    const Shape& y = shape(unit.output);
    const bool dense = options_.target.averages == Averages::Dense && y[2] * y[3] > 1;
    const tensor::MeanFactor mean =
        tensor::mean_factor(kernel[0] * kernel[1], dense ? kInt8Max : tensor::kMaxMeanFactor);
    const auto finer = exact_log2(scale(unit.input) / scale(unit.output)).value_or(0);
    attrs.values["factor"] = mean.factor;
    attrs.values["shift"] = mean.shift - finer;
    const ValueId x = TW_TRY(as_bytes(unit.input, scale(unit.input)));
    set_bytes(unit.output, scale(unit.output),
              TW_TRY(append_own(name(unit), "AveragePoolFixed", {x}, std::move(attrs))));
    return {};
  }

  Status copy(const Unit& unit, bool bytes) {
    Node mine = node(unit);
    const std::vector<ValueId> olds = mine.outputs;
    const double common = bytes ? scale(olds[0]) : 0;
    for (size_t i = 0; i < mine.inputs.size(); ++i) {
      ValueId& id = mine.inputs[i];
      const bool data = i == 0 || mine.op == "Concat";
      id = bytes && data ? TW_TRY(as_bytes(id, common)) : TW_TRY(as_float(id));
    }
    // The fill of an integer Pad is 0 whatever the scale.
    if (bytes && mine.op == "Pad" && mine.inputs.size() > 2) mine.inputs[2] = -1;
    const auto made = TW_TRY(append_like(std::move(mine), static_cast<int>(olds.size())));
    for (size_t i = 0; i < made.size(); ++i) {
      if (olds[i] < 0) continue;
      if (bytes) {
        set_bytes(olds[i], common, made[i]);
      } else {
        define(olds[i], made[i]);
      }
    }
    return {};
  }

  Status emit(const Unit& unit) {
    switch (unit.kind) {
      case Unit::Kind::Product:
        return product(unit);
      case Unit::Kind::Sum:
        return sum(unit);
      case Unit::Kind::Average:
        return average(unit);
      case Unit::Kind::Pool:
      case Unit::Kind::Move:
        return copy(unit, true);
      case Unit::Kind::Float:
        break;
    }
    if (!node(unit).outputs.empty() && unit.why != "only f32 operators read it") {
      result_.notes.push_back(
          fmt::format("{} '{}' stays f32: {}", node(unit).op, name(unit), unit.why));
      result_.f32_reasons[name(unit)] = unit.why;
    }
    return copy(unit, false);
  }

  /// Drops what nobody needs; scales and origins follow their values by name.
  QuantizedGraph compacted() {
    std::map<std::string, std::vector<double>> by_name;
    for (size_t v = 0; v < result_.scales.size(); ++v)
      if (!result_.scales[v].empty()) by_name[graph().values[v].name] = result_.scales[v];
    result_.graph = finish();
    result_.scales.assign(result_.graph.values.size(), {});
    result_.origins.assign(result_.graph.values.size(), {});
    for (size_t v = 0; v < result_.scales.size(); ++v) {
      const std::string& name = result_.graph.values[v].name;
      if (const auto found = by_name.find(name); found != by_name.end())
        result_.scales[v] = found->second;
      if (const auto found = origins_.find(name); found != origins_.end())
        result_.origins[v] = found->second;
    }
    return std::move(result_);
  }

  const Plan& plan_;
  const Scales& scales_;
  const QuantizeOptions& options_;
  QuantizedGraph result_;
  std::vector<Forms> forms_;
  std::map<double, ValueId> numbers_;
  std::map<std::string, std::string> origins_;
  ValueId zero_ = -1;
};

}  // namespace

Result<QuantizedGraph> emit_quantized(const Graph& graph, const Plan& plan, const Scales& scales,
                                      const QuantizeOptions& options) {
  return Emitter(graph, plan, scales, options).run();
}

}  // namespace tilewright::graph
