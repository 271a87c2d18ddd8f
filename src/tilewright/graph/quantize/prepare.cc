// Before calibration: whatever can be a convolution becomes one, so that quantisation meets few
// kinds of nodes. Every rewriting is exact in real arithmetic. What the target computes itself
// stays.
//
//   Gemm x [n, k]                                  =>  Conv 1x1 on x as [n, k, 1, 1]
//   LeakyRelu(x), slope a                          =>  x + Relu((a - 1) x), by a depthwise Conv
//   the first Conv, 3x3 of stride 2 on 3 channels  =>  Im2Col to 27 channels, then a Conv 1x1
#include "tilewright/graph/quantize/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tilewright/base/integers.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/quantize/pool.h"
#include "tilewright/graph/quantize/quantize.h"
#include "tilewright/tensor/window.h"

namespace tilewright::graph {
namespace {

/// Channels of a tile, to compare forms of a first convolution; a guess before the target is known.
constexpr int64_t kTileChannels = 16;

class Preparer : private PoolRewriter {
 public:
  using PoolRewriter::PoolRewriter;

  Result<Graph> run() {
    for (size_t n = 0; n < old().nodes.size(); ++n) {
      if (absorbed_.contains(static_cast<int>(n))) continue;
      const Node& node = old().nodes[n];
      release(node);
      auto done = rewrite(node);
      if (!done) return tl::unexpected<Error>(std::move(done.error()).at(node.name));
      if (!*done) copy(node);
    }
    for (ValueId id : old().outputs) output(keep(id));
    if (rewritten_ > 0)
      context_.notes.push_back(fmt::format("{} nodes became convolutions", rewritten_));
    return finish();
  }

 private:
  Result<bool> rewrite(const Node& node) {
    if (!node.domain.empty() || node.outputs.size() != 1) return false;
    // Between values with given scales there is room for one layer, not for steps without scales.
    const bool given = !boundaries_.empty();
    const bool steps = (node.op == "LeakyRelu" && !is_native_leaky(node)) || node.op == "PRelu" ||
                       node.op == "Sum" ||
                       (node.op == "Sub" && is_image(node.inputs[0]) && is_image(node.inputs[1]));
    if (given && steps) return false;
    const std::string& op = node.op;
    if (op == "Gemm" || op == "MatMul") return dense(node);
    if (op == "Sum") return sum(node);
    if (node.inputs.empty()) return false;
    if (op == "Conv") return plain_conv(node);
    if (op == "ConvTranspose") return transposed_conv(node);
    if (op == "MaxPool" || op == "GlobalMaxPool") return max_pool(node);
    if (op == "AveragePool") return average_pool(node);
    if (op == "GlobalAveragePool" || op == "ReduceMean") return global_average(node);
    if (op == "LeakyRelu" || op == "PRelu") return leaky(node);
    if (op == "Mul" || op == "Div" || op == "Add" || op == "Sub") return arithmetic(node);
    return false;
  }

  // --- Convolutions.

  Result<bool> plain_conv(const Node& node) {
    if (!is_image(node.inputs[0]) || !known(node.inputs[1])) return false;
    const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
    const auto window = TW_TRY(tensor::conv_window(op_call(old(), node), x, w));
    const int64_t groups = node.attrs.get_int("group", 1), stride = window.strides[0];
    const bool square = stride > 1 && window.strides[1] == stride;
    const bool dense_taps = window.dilations == Ints{1, 1} && w[2] > 1 && w[3] > 1;
    const bool bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
    const bool few =
        !target_.first_convolutions && groups == 1 && x[1] <= 4 && (!bias || known(node.inputs[2]));
    const bool depth = few && square && dense_taps;
    // Tiles of channels that one output pixel multiplies, in either form.
    const int64_t block = depth ? stride : 1;
    const int64_t steps = ceil_div(w[2], block) * ceil_div(w[3], block) *
                          ceil_div(x[1] * block * block, kTileChannels);
    const bool first = producer_[static_cast<size_t>(node.inputs[0])] < 0;
    if (few && first && ceil_div(x[1] * w[2] * w[3], kTileChannels) < steps)
      return windows_conv(node, window);
    if (depth) return strided_conv(node, window);
    Node mine = node;
    mine.attrs.values.erase("auto_pad");
    mine.attrs.values["pads"] =
        Ints{window.begin[0], window.begin[1], window.end[0], window.end[1]};
    std::optional<Array> sum;
    if (bias && known(node.inputs[2])) sum = array_of(value(node.inputs[2]));
    const ValueId last = bias && !sum ? node.outputs[0] : absorb_channel_bias(node.outputs[0], sum);
    if (last == node.outputs[0]) {
      copy(mine);
      return true;
    }
    std::vector<ValueId> inputs = {keep(node.inputs[0]), keep(node.inputs[1]),
                                   constant(node.name + ".bias", *std::move(sum))};
    define(last, TW_TRY(append(node.name, "Conv", std::move(inputs), mine.attrs)));
    return true;
  }

  /// A convolution of the graph's input, on windows taken apart: channels fill the tiles.
  Result<bool> windows_conv(const Node& node, const tensor::Window& window) {
    const Array& w = array_of(value(node.inputs[1]));
    const Shape& s = w.shape();
    const Ints pads = {window.begin[0], window.begin[1], window.end[0], window.end[1]};
    const ValueId x = TW_TRY(append_own(node.name + "/Im2Col", "Im2Col", {keep(node.inputs[0])},
                                        attrs_of({{"kernel_shape", window.kernel},
                                                  {"strides", window.strides},
                                                  {"dilations", window.dilations},
                                                  {"pads", pads}})));
    std::optional<Array> bias;
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) bias = array_of(value(node.inputs[2]));
    const ValueId last = absorb_channel_bias(node.outputs[0], bias);
    define(last, TW_TRY(conv(node.name, x, w.reshaped({s[0], s[1] * s[2] * s[3], 1, 1}),
                             std::move(bias), Geometry{})));
    return true;
  }

  /// A convolution of few channels with stride b: pixels of b x b become channels, the stride 1.
  Result<bool> strided_conv(const Node& node, const tensor::Window& window) {
    const Array& w = array_of(value(node.inputs[1]));
    const Shape& ws = w.shape();
    const int64_t b = window.strides[0], channels = ws[1];
    const int64_t kh = ceil_div(ws[2], b), kw = ceil_div(ws[3], b);
    Ints pads = {0, 0, window.begin[0], window.begin[1], 0, 0, 0, 0};
    for (size_t i = 0; i < 2; ++i) {
      const int64_t needed = (window.output[i] - 1 + (i == 0 ? kh : kw)) * b;
      pads[6 + i] = needed - window.begin[i] - window.input[i];
    }
    ValueId x = keep(node.inputs[0]);
    if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; }))
      x = TW_TRY(append(node.name + "/Pad", "Pad", {x, ints(node.name + ".pads", pads)}));
    x = TW_TRY(
        append(node.name + "/SpaceToDepth", "SpaceToDepth", {x}, attrs_of({{"blocksize", b}})));
    Array packed(DType::F32, {ws[0], b * b * channels, kh, kw});
    for (int64_t i = 0; i < w.size(); ++i) {
      const int64_t s = i % ws[3], r = i / ws[3] % ws[2];
      const int64_t c = i / (ws[3] * ws[2]) % channels, o = i / (ws[3] * ws[2] * channels);
      const int64_t channel = ((r % b) * b + s % b) * channels + c;
      packed.set(((o * b * b * channels + channel) * kh + r / b) * kw + s / b, w.get(i));
    }
    std::optional<Array> bias;
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) bias = array_of(value(node.inputs[2]));
    const ValueId last = absorb_channel_bias(node.outputs[0], bias);
    define(last, TW_TRY(conv(node.name, x, std::move(packed), std::move(bias), Geometry{})));
    return true;
  }

  /// One convolution gives all phases of the result as channels; DepthToSpace interleaves them.
  Result<bool> transposed_conv(const Node& node) {
    if (!is_image(node.inputs[0]) || !known(node.inputs[1])) return false;
    if (node.inputs.size() > 2 && node.inputs[2] >= 0 && !known(node.inputs[2])) return false;
    if (target_.transposed_convolutions) return false;
    const Shape &x = shape(node.inputs[0]), &y = shape(node.outputs[0]);
    const Array& w = array_of(value(node.inputs[1]));
    const Shape& ws = w.shape();
    const Ints strides = node.attrs.get_ints("strides", {1, 1});
    const Ints pads = node.attrs.get_ints("pads", {0, 0, 0, 0});
    const Ints dilations = node.attrs.get_ints("dilations", {1, 1});
    const std::string auto_pad = node.attrs.get_string("auto_pad", "NOTSET");
    if (node.attrs.get_int("group", 1) != 1 || auto_pad != "NOTSET" || dilations != Ints{1, 1} ||
        strides[0] != strides[1] || node.attrs.has("output_shape"))
      return false;
    const int64_t b = strides[0], ins = ws[0], outs = ws[1];
    Geometry g;
    Ints taps(2), begin(2), end(2);
    for (size_t i = 0; i < 2; ++i) {
      taps[i] = ceil_div(ws[2 + i], b);
      const int64_t first = pads[i] / b, last = (y[2 + i] - 1 + pads[i]) / b;
      g.pads[i] = taps[i] - 1 - first;
      g.pads[2 + i] = last - (x[2 + i] - 1);
      begin[i] = pads[i] - first * b;
      end[i] = begin[i] + y[2 + i];
      if (g.pads[i] < 0 || g.pads[2 + i] < 0) return false;
    }
    Array packed(DType::F32, {b * b * outs, ins, taps[0], taps[1]});
    for (int64_t i = 0; i < w.size(); ++i) {
      const int64_t s = i % ws[3], r = i / ws[3] % ws[2];
      const int64_t o = i / (ws[3] * ws[2]) % outs, c = i / (ws[3] * ws[2] * outs);
      const int64_t phase = ((r % b) * b + s % b) * outs + o;
      packed.set(
          ((phase * ins + c) * taps[0] + taps[0] - 1 - r / b) * taps[1] + taps[1] - 1 - s / b,
          w.get(i));
    }
    std::optional<Array> bias;
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) {
      bias = Array(DType::F32, {b * b * outs});
      for (int64_t i = 0; i < bias->size(); ++i)
        bias->set(i, array_of(value(node.inputs[2])).get(i % outs));
    }
    const ValueId z =
        TW_TRY(conv(node.name, keep(node.inputs[0]), std::move(packed), std::move(bias), g));
    return behind_activations(node.outputs[0], z, [&](ValueId v) -> Result<ValueId> {
      if (b > 1)
        v = TW_TRY(append(node.name + "/DepthToSpace", "DepthToSpace", {v},
                          attrs_of({{"blocksize", b}, {"mode", std::string("DCR")}})));
      return slice(node.name + "/Slice", v, begin, end);
    });
  }

  // --- Dense layers.

  /// The bias of a Gemm, or of the Add behind a MatMul, one per column; nothing if there is
  /// another.
  struct Bias {
    bool fits = true;
    std::optional<Array> values;
  };
  Bias bias_of(ValueId id, int64_t columns, double factor) const {
    if (id < 0) return {};
    if (!known(id)) return {false, {}};
    const Array& given = array_of(value(id));
    if (given.size() != 1 && (given.size() != columns || given.shape().back() != columns))
      return {false, {}};
    Array out(DType::F32, {columns});
    for (int64_t i = 0; i < columns; ++i) out.set(i, factor * given.get(given.size() == 1 ? 0 : i));
    return {true, std::move(out)};
  }

  Result<bool> dense(const Node& node) {
    const bool gemm = node.op == "Gemm";
    const ValueId a = node.inputs[0];
    if (known(a) || !known(node.inputs[1]) || !is_f32(a)) return false;
    const Array& b = array_of(value(node.inputs[1]));
    const Shape& as = shape(a);
    if (b.dtype() != DType::F32 || b.shape().size() != 2 || as.size() < 2 || element_count(as) == 0)
      return false;
    if (gemm && node.attrs.get_int("transA", 0) != 0) return false;
    const bool transposed = gemm && node.attrs.get_int("transB", 0) != 0;
    const int64_t k = as.back(), columns = b.shape()[transposed ? 0 : 1];
    const double alpha = gemm ? node.attrs.get_float("alpha", 1) : 1;
    Bias bias;
    if (gemm && node.inputs.size() > 2)
      bias = bias_of(node.inputs[2], columns, node.attrs.get_float("beta", 1));
    if (!bias.fits) return false;
    ValueId last = node.outputs[0];
    if (!gemm) last = absorb_bias(last, columns, bias);
    Array w(DType::F32, {columns, k});
    for (int64_t at = 0; at < w.size(); ++at) {
      const int64_t o = at / k, i = at % k;
      const auto from = static_cast<size_t>(transposed ? at : i * columns + o);
      w.as<float>()[static_cast<size_t>(at)] = static_cast<float>(alpha * b.as<float>()[from]);
    }
    if (const ValueId source = averaged_image(a);
        source >= 0 && target_.averages == Averages::Depthwise)
      return pooled_dense(node, source, std::move(w), std::move(bias.values), last);
    // A flattened image is read as it is, by a kernel of its size.
    const ValueId image = flattened_image(a);
    ValueId x = -1;
    if (image >= 0) {
      const Shape& s = shape(image);
      x = keep(image);
      w = w.reshaped({columns, s[1], s[2], s[3]});
    } else {
      x = TW_TRY(reshape(node.name + "/Reshape_in", keep(a), {element_count(as) / k, k, 1, 1}));
      w = w.reshaped({columns, k, 1, 1});
    }
    const ValueId z = TW_TRY(conv(node.name, x, std::move(w), std::move(bias.values), Geometry{}));
    return behind_activations(last, z, [&](ValueId v) {
      return reshape(node.name + "/Reshape", v, shape(node.outputs[0]));
    });
  }

  /// dense(mean(x)) = mean(dense(x)): averaging last also averages the rounding of the products,
  /// and the weights are read once for all pixels.
  Result<bool> pooled_dense(const Node& node, ValueId source, Array w, std::optional<Array> bias,
                            ValueId last) {
    const Shape& s = shape(source);
    const double area = static_cast<double>(s[2] * s[3]);
    // The mean's weight is one that 8 bits hold exactly; the products make up for the difference.
    const int bits = std::ilogb(127 * area);
    const double weight = std::ldexp(std::nearbyint(std::ldexp(1 / area, bits)), -bits);
    const double rest = 1 / (area * weight);
    for (float& element : w.as<float>()) element = static_cast<float>(element * rest);
    if (bias)
      for (float& element : bias->as<float>()) element = static_cast<float>(element * rest);
    w = w.reshaped({w.shape()[0], w.shape()[1], 1, 1});
    const ValueId z =
        TW_TRY(conv(node.name, keep(source), std::move(w), std::move(bias), Geometry{}));
    const ValueId mean =
        TW_TRY(mean_conv(node.name + "/mean", z, {s[2], s[3]}, weight, Geometry{}));
    return behind_activations(last, mean, [&](ValueId v) {
      return reshape(node.name + "/Reshape", v, shape(node.outputs[0]));
    });
  }

  /// The image whose global average `a` [n, c] is, if that is small and read by nobody else; or -1.
  ValueId averaged_image(ValueId a) const {
    if (shape(a).size() != 2) return -1;
    if (const ValueId image = flattened_image(a); image >= 0) {
      if (!inner(a)) return -1;
      a = image;
    }
    const int p = producer_[static_cast<size_t>(a)];
    if (p < 0 || !inner(a)) return -1;
    const Node& pool = old().nodes[static_cast<size_t>(p)];
    if (!is_global_average(pool)) return -1;
    const Shape& s = shape(pool.inputs[0]);
    return s[2] * s[3] > 1 && s[2] * s[3] <= 64 ? pool.inputs[0] : -1;
  }

  /// If only an Add of a vector follows, its constant goes to `bias`: the value behind it.
  ValueId absorb_bias(ValueId id, int64_t columns, Bias& bias) {
    if (!inner(id)) return id;
    const int n = users_[static_cast<size_t>(id)][0];
    const Node& next = old().nodes[static_cast<size_t>(n)];
    if (!next.domain.empty() || next.op != "Add") return id;
    const ValueId other = next.inputs[0] == id ? next.inputs[1] : next.inputs[0];
    const Bias found = bias_of(other, columns, 1);
    if (!known(other) || !found.fits || shape(next.outputs[0]) != shape(id)) return id;
    bias = found;
    release(next);
    absorbed_.insert(n);
    return next.outputs[0];
  }

  /// The image that `a` [n, c*h*w] is a view of, or -1.
  ValueId flattened_image(ValueId a) const {
    const int p = producer_[static_cast<size_t>(a)];
    if (p < 0 || shape(a).size() != 2) return -1;
    const Node& view = old().nodes[static_cast<size_t>(p)];
    const bool flattens = view.op == "Flatten" || view.op == "Reshape" || view.op == "Squeeze";
    if (!view.domain.empty() || !flattens || !is_image(view.inputs[0])) return -1;
    return shape(view.inputs[0])[0] == shape(a)[0] ? view.inputs[0] : -1;
  }

  // --- Arithmetic.

  /// max(x, slope * x) = x + relu(-(1 - slope) * x) for slopes from 0 to 1.
  Result<bool> leaky(const Node& node) {
    if (!is_image(node.inputs[0])) return false;
    const auto channels = static_cast<size_t>(shape(node.inputs[0])[1]);
    std::vector<double> slopes(channels, node.attrs.get_float("alpha", 0.01));
    if (node.op == "PRelu") {
      const auto given = per_channel(node.inputs[1], shape(node.inputs[0]));
      if (!given) return false;
      slopes = *given;
    }
    const auto native = [&](double slope) { return slope == slopes[0] && is_native_slope(slope); };
    if (std::all_of(slopes.begin(), slopes.end(), native)) {
      define(node.outputs[0], TW_TRY(append(node.name, "LeakyRelu", {keep(node.inputs[0])},
                                            attrs_of({{"alpha", slopes[0]}}))));
      --rewritten_;
      return true;
    }
    for (double& slope : slopes) {
      if (!(slope >= 0 && slope <= 1)) return false;
      slope -= 1;
    }
    const ValueId x = keep(node.inputs[0]);
    ValueId below = TW_TRY(scale_conv(node.name + "/below", x, slopes));
    below = TW_TRY(append(node.name + "/Relu", "Relu", {below}));
    define(node.outputs[0], TW_TRY(append(node.name, "Add", {x, below})));
    return true;
  }

  Result<bool> arithmetic(const Node& node) {
    const ValueId a = node.inputs[0], b = node.inputs[1];
    const Shape& y = shape(node.outputs[0]);
    if (is_image(a) && is_image(b)) {
      if (node.op != "Sub" || shape(a) != y || shape(b) != y) return false;
      const std::vector<double> minus(static_cast<size_t>(y[1]), -1);
      const ValueId negated = TW_TRY(scale_conv(node.name + "/minus", keep(b), minus));
      define(node.outputs[0], TW_TRY(append(node.name, "Add", {keep(a), negated})));
      return true;
    }
    auto affine = affine_of(node);
    if (!affine) return false;
    ValueId last = node.outputs[0];
    // What follows on the same values goes into the same convolution.
    while (inner(last)) {
      const int n = users_[static_cast<size_t>(last)][0];
      const Node& next = old().nodes[static_cast<size_t>(n)];
      const auto outer = affine_of(next);
      if (!outer || outer->x != last) break;
      for (size_t c = 0; c < affine->weight.size(); ++c) {
        affine->weight[c] *= outer->weight[c];
        affine->bias[c] = affine->bias[c] * outer->weight[c] + outer->bias[c];
      }
      release(next);
      absorbed_.insert(n);
      last = next.outputs[0];
    }
    define(last, TW_TRY(scale_conv(node.name, keep(affine->x), affine->weight, affine->bias)));
    return true;
  }

  Result<bool> sum(const Node& node) {
    for (ValueId id : node.inputs)
      if (!is_image(id) || shape(id) != shape(node.outputs[0])) return false;
    if (node.inputs.size() < 2) return false;
    ValueId total = keep(node.inputs[0]);
    for (size_t i = 1; i < node.inputs.size(); ++i)
      total = TW_TRY(append(node.name, "Add", {total, keep(node.inputs[i])}));
    define(node.outputs[0], total);
    return true;
  }
};

}  // namespace

Result<Graph> to_convolutions(const Graph& graph, PassContext& context,
                              const std::set<std::string>& boundaries,
                              const IntegerAbilities& target) {
  return Preparer(graph, context, boundaries, target).run();
}

Result<Graph> prepare_quantize(const Graph& graph, PassContext& context,
                               const IntegerAbilities& target) {
  const char* tidy = "fold_batch_norm,simplify,merge_common,eliminate_dead";
  const std::string first = std::string("simplify,fold_constants,fold_batch_norm,fold_pad,") + tidy;
  Graph folded = TW_TRY(run_passes(graph, first, context)).graph;
  Graph rewritten = TW_TRY(to_convolutions(folded, context, {}, target));
  return TW_TRY(run_passes(std::move(rewritten), tidy, context)).graph;
}

}  // namespace tilewright::graph
