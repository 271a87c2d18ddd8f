// Integer graphs as standard QDQ models: f32 operators between QuantizeLinear and DequantizeLinear.
//
//   ConvInteger(qx, qw) -> Requantize  =>  Conv(DequantizeLinear(qx), DequantizeLinear(qw))
//                                          -> Add(bias) -> Relu or Clip -> QuantizeLinear
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "tilewright/base/check.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/quantize/quantize.h"
#include "tilewright/tensor/fixed_point.h"

namespace tilewright::graph {
namespace {

/// Added to a number that is rounded, in units of its last bit: what lies in the middle of two
/// results then goes up, as integers go, and nothing else moves. LeakyRelu makes steps of 2/256 of
/// that unit, so that 26/256 of it must stay below.
double above_middle(const Node& node) {
  return node.attrs.get_int("leaky", 0) != 0 ? 1.0 / 16 : 0.5;
}

class Exporter : private Rewriter {
 public:
  explicit Exporter(const QuantizedGraph& quantized)
      : Rewriter(quantized.graph),
        quantized_(quantized),
        real_(quantized.graph.values.size(), -1),
        producer_(producers(quantized.graph)) {}

  Result<Graph> run() {
    for (const Node& node : old().nodes) {
      release(node);
      Status done = emit(node);
      if (!done) return tl::unexpected<Error>(std::move(done.error()).at(node.name));
    }
    for (ValueId id : old().outputs) output(keep(id));
    return finish();
  }

 private:
  const std::vector<double>& scales(ValueId id) const {
    return quantized_.scales[static_cast<size_t>(id)];
  }
  bool is_bytes(ValueId id) const { return id >= 0 && !scales(id).empty(); }

  /// The scale (one, or one per element of axis 0) and the zero point of a quantised value.
  std::vector<ValueId> parameters(ValueId id) {
    const std::vector<double>& s = scales(id);
    const auto count = static_cast<int64_t>(s.size());
    const Shape shape = count == 1 ? Shape{} : Shape{count};
    return {constant(value(id).name + ".scale", Array::of(DType::F32, s).reshaped(shape)),
            constant(value(id).name + ".zero", Array(DType::I8, shape))};
  }
  /// The value as a real number.
  Result<ValueId> real(ValueId id) {
    if (!is_bytes(id)) return keep(id);
    ValueId& mine = real_[static_cast<size_t>(id)];
    if (mine >= 0) return mine;
    std::vector<ValueId> inputs = {keep(id)};
    for (const ValueId p : parameters(id)) inputs.push_back(p);
    tensor::Attrs attrs;
    if (scales(id).size() > 1) attrs.values["axis"] = int64_t{0};
    mine = TW_TRY(append(value(id).name + "/Dequantize", "DequantizeLinear", std::move(inputs),
                         std::move(attrs)));
    return mine;
  }
  /// The real value `x` rounded to the scale of `id`, whose place it takes.
  Status quantise(ValueId id, ValueId x) {
    std::vector<ValueId> inputs = {x};
    for (const ValueId p : parameters(id)) inputs.push_back(p);
    const ValueId made =
        TW_TRY(append(value(id).name + "/Quantize", "QuantizeLinear", std::move(inputs)));
    define(id, made);
    return {};
  }

  Status emit(const Node& node) {
    if (node.op == "ConvInteger") return {};  // with its Requantize
    if (node.op == "Requantize") return layer(node);
    if (node.op == "Im2Col") return windows(node);
    if (node.op == "ConvTransposeInteger") return {};
    if (node.op == "RequantizeFixed") return fixed_layer(node);
    if (node.op == "EltwiseFixed") return fixed_sum(node);
    if (node.op == "AveragePoolFixed") return fixed_average(node);
    const bool converts = node.op == "QuantizeLinear" || node.op == "DequantizeLinear";
    bool bytes = false;
    for (const ValueId id : node.outputs) bytes = bytes || is_bytes(id);
    if (converts || !bytes) {
      copy(node);
      return {};
    }
    Node mine = node;
    for (ValueId& id : mine.inputs)
      if (id >= 0) id = TW_TRY(real(id));
    const auto made = TW_TRY(append_like(std::move(mine), static_cast<int>(node.outputs.size())));
    for (size_t i = 0; i < made.size(); ++i)
      if (node.outputs[i] >= 0) TW_TRY_STATUS(quantise(node.outputs[i], made[i]));
    return {};
  }

  /// Im2Col is no ONNX operator: a convolution of f32 with one 1 per filter gives the same.
  Status windows(const Node& node) {
    const int64_t channels = value(node.inputs[0]).type.shape[1];
    const std::vector<int64_t> kernel = node.attrs.get_ints("kernel_shape");
    const int64_t outs = channels * kernel[0] * kernel[1];
    Array ones(DType::F32, {outs, channels, kernel[0], kernel[1]});
    for (int64_t o = 0; o < outs; ++o) ones.set(o * outs + o, 1);
    const ValueId w = constant(node.name + ".windows", std::move(ones));
    const ValueId y =
        TW_TRY(append(node.name, "Conv", {TW_TRY(real(node.inputs[0])), w}, node.attrs));
    if (is_bytes(node.outputs[0])) return quantise(node.outputs[0], y);
    define(node.outputs[0], y);
    return {};
  }

  /// Biases as real numbers. Half a unit of the sum keeps sums away from the middle of two outputs,
  /// where rounding to even and the rounding shift differ.
  Array real_bias(const Node& node, const std::vector<double>& units, double y_scale) const {
    const bool multiplied = node.inputs.size() > 3 && node.inputs[3] >= 0;
    const bool half_even = node.attrs.get_int("half_even", 0) != 0;  // as QuantizeLinear does
    const auto early = static_cast<int>(node.attrs.get_int("pre_shift", 0));
    const bool narrowed = early > 0;
    const int shift = static_cast<int>(node.attrs.get_int("shift", 0)) + (multiplied ? 0 : early);
    const Array& bias = array_of(value(node.inputs[1]));
    Array out(DType::F32, bias.shape());
    for (int64_t c = 0; c < bias.size(); ++c) {
      double b = static_cast<double>(bias.get_int(c));
      if (shift > 0 && !half_even) b -= std::ldexp(1.0, shift - 1);
      if (multiplied) {
        // What the integer bias has for the bits that pre_shift cuts off (quantize/layer.cc).
        const int64_t half = array_of(value(node.inputs[3])).get_int(c) / 2;
        if (narrowed) b -= static_cast<double>(half);
        out.set(c, std::ldexp(b, -shift) * y_scale);
      } else {
        const double unit = units.size() == 1 ? units[0] : units[static_cast<size_t>(c)];
        out.set(c, (shift > 0 && !half_even ? b + 0.5 : b) * unit);
      }
    }
    return out;
  }

  Status layer(const Node& node) {
    const int p = producer_[static_cast<size_t>(node.inputs[0])];
    TW_CHECK(p >= 0 && old().nodes[static_cast<size_t>(p)].op == "ConvInteger",
             "'{}' does not follow a ConvInteger", node.name);
    const Node& conv = old().nodes[static_cast<size_t>(p)];
    const ValueId y = node.outputs[0];
    std::vector<double> units = scales(conv.inputs[1]);
    for (double& unit : units) unit *= scales(conv.inputs[0])[0];
    release(conv);
    ValueId x =
        TW_TRY(append(conv.name, "Conv",
                      {TW_TRY(real(conv.inputs[0])), TW_TRY(real(conv.inputs[1]))}, conv.attrs));
    // An addition of its own: runtimes round the bias of a quantised Conv to whole units.
    const ValueId bias = constant(conv.name + ".real_bias", real_bias(node, units, scales(y)[0]));
    x = TW_TRY(append(conv.name + "/Bias", "Add", {x, bias}));
    if (node.inputs.size() > 2 && node.inputs[2] >= 0)
      x = TW_TRY(append(conv.name + "/Add", "Add", {x, TW_TRY(real(node.inputs[2]))}));
    return quantise(y, TW_TRY(clipped(conv.name, node, x)));
  }

  /// Relu or Clip for the bounds of `node`; nothing where they are those of 8 bits.
  Result<ValueId> clipped(const std::string& base, const Node& node, ValueId x) {
    const double scale = scales(node.outputs[0])[0];
    const int64_t lo = node.attrs.get_int("lo", -128), hi = node.attrs.get_int("hi", 127);
    if (lo == 0 && hi == 127) {
      return append(base + "/Relu", "Relu", {x});
    }
    if (lo != -128 || hi != 127) {
      const auto bound = [&](const char* name, int64_t limit, int64_t end) {
        if (limit == end) return ValueId{-1};
        const double number = static_cast<double>(limit) * scale;
        return constant(base + name, Array::scalar(DType::F32, number));
      };
      std::vector<ValueId> clip = {x, bound(".lo", lo, -128), bound(".hi", hi, 127)};
      if (clip.back() < 0) clip.pop_back();
      return append(base + "/Clip", "Clip", std::move(clip));
    }
    return x;
  }

  // --- Fixed point.

  Result<ValueId> activated(const std::string& base, const Node& node, ValueId x) {
    if (node.attrs.get_int("leaky", 0) != 0)
      x = TW_TRY(append(base + "/LeakyRelu", "LeakyRelu", {x},
                        attrs_of({{"alpha", tensor::kLeakySlope}})));
    return clipped(base, node, x);
  }

  Status fixed_layer(const Node& node) {
    const int p = producer_[static_cast<size_t>(node.inputs[0])];
    TW_CHECK(p >= 0, "'{}' does not follow a convolution", node.name);
    const Node& conv = old().nodes[static_cast<size_t>(p)];
    const bool transposed = conv.op == "ConvTransposeInteger";
    release(conv);
    ValueId x =
        TW_TRY(append(conv.name, transposed ? "ConvTranspose" : "Conv",
                      {TW_TRY(real(conv.inputs[0])), TW_TRY(real(conv.inputs[1]))}, conv.attrs));
    const double unit = scales(conv.inputs[0])[0] * scales(conv.inputs[1])[0];
    const bool rounds = node.attrs.get_int("shift", 0) > 0 || node.attrs.get_int("leaky", 0) != 0;
    const Array& integers = array_of(value(node.inputs[1]));
    Array bias(DType::F32, integers.shape());
    for (int64_t c = 0; c < bias.size(); ++c)
      bias.set(c, (integers.get(c) + (rounds ? above_middle(node) : 0)) * unit);
    const ValueId offset = constant(conv.name + ".real_bias", std::move(bias));
    x = TW_TRY(append(conv.name + "/Bias", "Add", {x, offset}));
    return quantise(node.outputs[0], TW_TRY(activated(conv.name, node, x)));
  }

  /// Operands that are shifted by more than the two bits below their sum lose the rest.
  Status fixed_sum(const Node& node) {
    const auto shifts = node.attrs.get_ints("shift_read", {0, 0});
    ValueId sum = -1;
    double unit = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] < 0) continue;
      unit = std::ldexp(scales(node.inputs[i])[0], static_cast<int>(shifts[i]) - 2);
      ValueId x = TW_TRY(real(node.inputs[i]));
      if (shifts[i] > 2) {
        const auto factor = [&](double f) {
          return constant(node.name + ".factor", Array::scalar(DType::F32, f));
        };
        x = TW_TRY(append(node.name + "/Mul", "Mul", {x, factor(1 / unit)}));
        x = TW_TRY(append(node.name + "/Floor", "Floor", {x}));
        x = TW_TRY(append(node.name + "/Mul", "Mul", {x, factor(unit)}));
      }
      sum = sum < 0 ? x : TW_TRY(append(node.name + "/Add", "Add", {sum, x}));
    }
    const double offset = unit * above_middle(node);
    sum = TW_TRY(append(node.name + "/Add", "Add",
                        {sum, constant(node.name + ".offset", Array::scalar(DType::F32, offset))}));
    return quantise(node.outputs[0], TW_TRY(activated(node.name, node, sum)));
  }

  /// Sums by a convolution with ones, times the factor of each window.
  Status fixed_average(const Node& node) {
    const tensor::MeanTable table = tensor::mean_table(op_call(old(), node));
    const int64_t channels = value(node.inputs[0]).type.shape[1];
    const auto kernel = node.attrs.get_ints("kernel_shape");
    Array ones(DType::F32, {channels, 1, kernel[0], kernel[1]});
    for (float& one : ones.as<float>()) one = 1;
    tensor::Attrs attrs;
    for (const char* key : {"kernel_shape", "strides", "pads"})
      if (node.attrs.has(key)) attrs.values[key] = node.attrs.values.at(key);
    attrs.values["group"] = channels;
    ValueId x = TW_TRY(
        append(node.name, "Conv",
               {TW_TRY(real(node.inputs[0])), constant(node.name + ".ones", std::move(ones))},
               std::move(attrs)));
    const double unit = std::ldexp(scales(node.outputs[0])[0], -static_cast<int>(table.shift));
    Array factors(DType::F32, {1, 1, table.factors.shape()[0], table.factors.shape()[1]});
    for (int64_t i = 0; i < factors.size(); ++i)
      factors.set(i, table.factors.get(i) * unit / scales(node.inputs[0])[0]);
    x = TW_TRY(append(node.name + "/Mul", "Mul",
                      {x, constant(node.name + ".factors", std::move(factors))}));
    const double offset = table.shift > 0 ? unit / 2 : 0;
    x = TW_TRY(append(node.name + "/Add", "Add",
                      {x, constant(node.name + ".offset", Array::scalar(DType::F32, offset))}));
    return quantise(node.outputs[0], x);
  }

  const QuantizedGraph& quantized_;
  std::vector<ValueId> real_;  ///< of old values that are bytes, as real numbers
  std::vector<int> producer_;
};

}  // namespace

Result<Graph> to_qdq(const QuantizedGraph& quantized) { return Exporter(quantized).run(); }

Graph layers_alone(const Graph& qdq, const std::set<std::string>& given) {
  Graph alone = qdq;
  std::vector<ValueId> reads(qdq.values.size());
  std::iota(reads.begin(), reads.end(), 0);
  const std::vector<bool> output = is_output(qdq);
  for (size_t v = 0; v < qdq.values.size(); ++v) {
    if (!given.contains(qdq.values[v].name) || qdq.values[v].constant) continue;
    reads[v] = alone.add_value(qdq.values[v].name + kGiven, qdq.values[v].type);
    alone.inputs.push_back(reads[v]);
    if (!output[v]) alone.outputs.push_back(static_cast<ValueId>(v));
  }
  for (Node& node : alone.nodes)
    for (ValueId& id : node.inputs)
      if (id >= 0) id = reads[static_cast<size_t>(id)];
  return alone;
}

}  // namespace tilewright::graph
