// The meaning of a network, by plain loops: sums are exact, a value is rounded once.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/codegen/dpu/network.h"

namespace tilewright::dpu {
namespace {

using Bytes = std::vector<int8_t>;
using Wide = __int128;

/// floor(n / 2^shift + 1/2), saturated.
int8_t round_to_int8(Wide n, int shift) {
  if (shift > 0)
    n = (n + (Wide{1} << (shift - 1))) >> shift;
  else
    n = n * (Wide{1} << -shift);
  return static_cast<int8_t>(std::clamp<Wide>(n, -128, 127));
}

/// Of n / 2^shift after the activation; `fix_point` is the result's.
int8_t finish(Wide n, int shift, Activation act, int fix_point) {
  switch (act) {
    case kNone:
      break;
    case kRelu:
      n = std::max<Wide>(n, 0);
      break;
    case kLeaky:
      if (n < 0) return round_to_int8(n * 26, shift + 8);
      break;
    case kRelu6: {
      const int8_t most = round_to_int8(6, -fix_point);
      return std::min(round_to_int8(std::max<Wide>(n, 0), shift), most);
    }
  }
  return round_to_int8(n, shift);
}

struct Evaluator {
  const Network& network;
  const Layer& layer;
  const std::map<ValueId, Bytes>& values;

  const Value& in(size_t i = 0) const {
    return network.values[static_cast<size_t>(layer.inputs[i])];
  }
  const Value& out() const { return network.values[static_cast<size_t>(layer.output)]; }
  const Bytes& data(size_t i = 0) const { return values.at(layer.inputs[i]); }
  static size_t at(const Value& v, int64_t c, int64_t h, int64_t w) {
    return static_cast<size_t>((c * v.height + h) * v.width + w);
  }

  Bytes operator()(const ConvLayer& op) const {
    const Value &x = in(), &y = out();
    const Window& w = op.window;
    const int64_t in_channels = x.channels / op.groups, out_channels = y.channels / op.groups;
    Bytes result(static_cast<size_t>(y.elements()));
    for (int64_t oc = 0; oc < y.channels; ++oc)
      for (int64_t h = 0; h < y.height; ++h)
        for (int64_t c = 0; c < y.width; ++c) {
          int64_t sum = op.bias[static_cast<size_t>(oc)];
          for (int64_t ic = 0; ic < in_channels; ++ic)
            for (int64_t ky = 0; ky < w.kernel_h; ++ky)
              for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
                const int64_t row = h * w.stride_h + ky * w.dilation_h - w.pad_top;
                const int64_t column = c * w.stride_w + kx * w.dilation_w - w.pad_left;
                if (row < 0 || row >= x.height || column < 0 || column >= x.width) continue;
                const int64_t from = oc / out_channels * in_channels + ic;
                const int64_t tap = ((oc * in_channels + ic) * w.kernel_h + ky) * w.kernel_w + kx;
                sum += int64_t{data()[at(x, from, row, column)]} *
                       op.weights[static_cast<size_t>(tap)];
              }
          result[at(y, oc, h, c)] = finish(sum, op.shift, op.act, y.fix_point);
        }
    return result;
  }

  Bytes operator()(const DeconvLayer& op) const {
    const Value &x = in(), &y = out();
    const Window& w = op.window;
    const int64_t in_channels = x.channels / op.groups, out_channels = y.channels / op.groups;
    std::vector<int64_t> sums(static_cast<size_t>(y.elements()));
    for (int64_t oc = 0; oc < y.channels; ++oc)
      std::fill_n(sums.begin() + oc * y.height * y.width, y.height * y.width,
                  op.bias[static_cast<size_t>(oc)]);
    for (int64_t ic = 0; ic < x.channels; ++ic)
      for (int64_t oc = 0; oc < out_channels; ++oc)
        for (int64_t h = 0; h < x.height; ++h)
          for (int64_t c = 0; c < x.width; ++c)
            for (int64_t ky = 0; ky < w.kernel_h; ++ky)
              for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
                const int64_t row = h * w.stride_h - w.pad_top + ky * w.dilation_h;
                const int64_t column = c * w.stride_w - w.pad_left + kx * w.dilation_w;
                if (row < 0 || row >= y.height || column < 0 || column >= y.width) continue;
                const int64_t to = ic / in_channels * out_channels + oc;
                const int64_t tap = ((ic * out_channels + oc) * w.kernel_h + ky) * w.kernel_w + kx;
                sums[at(y, to, row, column)] +=
                    int64_t{data()[at(x, ic, h, c)]} * op.weights[static_cast<size_t>(tap)];
              }
    Bytes result(sums.size());
    for (size_t i = 0; i < sums.size(); ++i)
      result[i] = finish(sums[i], op.shift, op.act, y.fix_point);
    return result;
  }

  Bytes operator()(const PoolLayer& op) const {
    const Value &x = in(), &y = out();
    const Window& w = op.window;
    Bytes result(static_cast<size_t>(y.elements()));
    for (int64_t c = 0; c < y.channels; ++c)
      for (int64_t h = 0; h < y.height; ++h)
        for (int64_t l = 0; l < y.width; ++l) {
          int64_t sum = 0, most = -128, taps = 0;
          for (int64_t ky = 0; ky < w.kernel_h; ++ky)
            for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
              const int64_t row = h * w.stride_h + ky - w.pad_top;
              const int64_t column = l * w.stride_w + kx - w.pad_left;
              if (row < 0 || row >= x.height || column < 0 || column >= x.width) continue;
              const int64_t tap = data()[at(x, c, row, column)];
              sum += tap;
              ++taps;
              most = std::max(most, tap);
            }
          const PoolLayer::Mean mean = op.mean(std::max<int64_t>(taps, 1));
          result[at(y, c, h, l)] = op.average ? round_to_int8(Wide{sum} * mean.factor, mean.shift)
                                              : static_cast<int8_t>(most);
        }
    return result;
  }

  Bytes operator()(const EltwiseLayer& op) const {
    Bytes result(data().size());
    for (size_t i = 0; i < result.size(); ++i) {
      Wide sum = 0;
      for (size_t k = 0; k < layer.inputs.size(); ++k)
        sum += (4 * int64_t{data(k)[i]}) >> op.shift_read[k];
      result[i] = finish(sum, 2 - op.shift_write, op.act, out().fix_point);
    }
    return result;
  }

  Bytes operator()(const UpsampleLayer& op) const {
    const Value &x = in(), &y = out();
    Bytes result(static_cast<size_t>(y.elements()));
    for (int64_t c = 0; c < y.channels; ++c)
      for (int64_t h = 0; h < y.height; ++h)
        for (int64_t l = 0; l < y.width; ++l)
          result[at(y, c, h, l)] = data()[at(x, c, h / op.factor_h, l / op.factor_w)];
    return result;
  }

  Bytes operator()(const ConcatLayer&) const {
    Bytes result;
    for (size_t i = 0; i < layer.inputs.size(); ++i)
      result.insert(result.end(), data(i).begin(), data(i).end());
    return result;
  }

  Bytes operator()(const SliceLayer& op) const {
    const Value &x = in(), &y = out();
    Bytes result(static_cast<size_t>(y.elements()));
    for (int64_t c = 0; c < y.channels; ++c)
      for (int64_t h = 0; h < y.height; ++h)
        for (int64_t l = 0; l < y.width; ++l)
          result[at(y, c, h, l)] = data()[at(x, c + op.channel, h + op.row, l + op.column)];
    return result;
  }
};

}  // namespace

std::map<ValueId, std::vector<int8_t>> interpret(
    const Network& network, const std::map<ValueId, std::vector<int8_t>>& inputs) {
  std::map<ValueId, std::vector<int8_t>> values = inputs;
  for (const ValueId id : network.inputs)
    TW_CHECK(values.count(id) == 1 && static_cast<int64_t>(values[id].size()) ==
                                          network.values[static_cast<size_t>(id)].elements());
  for (const Layer& layer : network.layers)
    values[layer.output] = std::visit(Evaluator{network, layer, values}, layer.op);
  return values;
}

}  // namespace tilewright::dpu
