// What the hardware takes: kernels up to 16, strides up to 8, pads up to 15, 4096 input channels.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tilewright/accel/common/image.h"
#include "tilewright/codegen/dpu/network.h"

namespace tilewright::dpu {
namespace {

// source: AMD PG400, table of supported operators.
constexpr int kMaxKernel = 16, kMaxStride = 8, kMaxPad = 15;
constexpr int64_t kMaxChannels = 4096;
// Graphs add in 32 bits that wrap, CONV adds exactly: sums below this agree, a guard bit included.
constexpr int64_t kMaxSum = int64_t{1} << 30;

class Limits {
 public:
  Limits(const Network& network, const Layer& layer) : network_(network), layer_(layer) {}

  void operator()(const ConvLayer& op) {
    window(op.window, true);
    convolution(op.shift, op.act);
    const int64_t per_filter =
        static_cast<int64_t>(op.weights.size()) / std::max<int64_t>(1, value().channels);
    sums(op.bias.size(), [&](size_t filter) {
      int64_t sum = 0;
      for (int64_t i = 0; i < per_filter; ++i)
        sum += std::abs(
            int{op.weights[filter * static_cast<size_t>(per_filter) + static_cast<size_t>(i)]});
      return 128 * sum + std::abs(int64_t{op.bias[filter]});
    });
  }
  void operator()(const DeconvLayer& op) {
    window(op.window, false);
    convolution(op.shift, op.act);
    if (op.window.dilation_h != 1 || op.window.dilation_w != 1)
      problem("is a transposed convolution with dilation");
    const size_t out = op.bias.size() / static_cast<size_t>(std::max(1, op.groups));
    const size_t in = static_cast<size_t>(input(0).channels / std::max(1, op.groups));
    const size_t taps = static_cast<size_t>(op.window.kernel_h * op.window.kernel_w);
    sums(op.bias.size(), [&](size_t filter) {
      int64_t sum = 0;
      const size_t group = filter / out, oc = filter % out;
      for (size_t ic = group * in; ic < (group + 1) * in; ++ic)
        for (size_t k = 0; k < taps; ++k)
          sum += std::abs(int{op.weights[(ic * out + oc) * taps + k]});
      return 128 * sum + std::abs(int64_t{op.bias[filter]});
    });
  }
  void operator()(const PoolLayer& op) {
    window(op.window, true);
    if (op.window.dilation_h != 1 || op.window.dilation_w != 1) problem("is a pool with dilation");
    if (op.average) {
      range("factor", op.factor, 0, 1023);
      range("shift", op.shift, 0, 31);
      for (const PoolLayer::Mean& mean : op.means) {
        range("factor", mean.factor, 0, 1023);
        range("shift", mean.shift, 0, 31);
      }
    }
  }
  void operator()(const EltwiseLayer& op) {
    for (size_t i = 0; i < layer_.inputs.size(); ++i) range("shift_read", op.shift_read[i], 0, 31);
    range("shift_write", op.shift_write, -32, 31);
    activation(op.act);
  }
  void operator()(const UpsampleLayer& op) {
    range("factor of rows", op.factor_h, 1, kMaxStride);
    range("factor of columns", op.factor_w, 1, kMaxStride);
  }
  void operator()(const ConcatLayer&) {}
  void operator()(const SliceLayer&) {}

  Status status() && {
    for (const ValueId id : layer_.inputs)
      range("channels", network_.values[static_cast<size_t>(id)].channels, 1, kMaxChannels);
    if (problems_.empty()) return {};
    std::string why;
    for (const std::string& text : problems_) why += (why.empty() ? "" : "; ") + text;
    return fail(ErrorKind::Unsupported, fmt::format("layer {} is nothing for the DPU", layer_.name),
                why);
  }

 private:
  const Value& input(size_t i) const {
    return network_.values[static_cast<size_t>(layer_.inputs[i])];
  }
  const Value& value() const { return network_.values[static_cast<size_t>(layer_.output)]; }
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  void range(const char* what, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
      problem(fmt::format("{} {} is not {} to {}", what, value, least, most));
  }
  void window(const Window& w, bool pads_inside) {
    range("kernel_h", w.kernel_h, 1, kMaxKernel);
    range("kernel_w", w.kernel_w, 1, kMaxKernel);
    range("stride_h", w.stride_h, 1, kMaxStride);
    range("stride_w", w.stride_w, 1, kMaxStride);
    range("dilation_h", w.dilation_h, 1, 15);
    range("dilation_w", w.dilation_w, 1, 15);
    if ((w.dilation_h > 1 || w.dilation_w > 1) && (w.stride_h > 1 || w.stride_w > 1))
      problem("has both stride and dilation");
    if (!pads_inside) return;
    // A window in the padding alone would have no row to begin with.
    const int rows = std::min(kMaxPad, (w.kernel_h - 1) * w.dilation_h);
    const int columns = std::min(kMaxPad, (w.kernel_w - 1) * w.dilation_w);
    range("pad_top", w.pad_top, 0, rows);
    range("pad_bottom", w.pad_bottom, 0, rows);
    range("pad_left", w.pad_left, 0, columns);
    range("pad_right", w.pad_right, 0, columns);
  }
  void activation(Activation act) {
    if (act != kNone && act != kRelu && act != kLeaky && act != kRelu6)
      problem(fmt::format("activation {} is not defined", static_cast<int>(act)));
    if (act == kRelu6) range("fix_point of relu6", value().fix_point, -32, 31);
  }
  void convolution(int shift, Activation act) {
    range("shift", shift, -32, 31);
    activation(act);
  }
  template <class Bound>
  void sums(size_t filters, const Bound& bound) {
    for (size_t filter = 0; filter < filters; ++filter) {
      const int64_t most = bound(filter);
      if (most < kMaxSum) continue;
      problem(fmt::format("sums of channel {} reach {}, {} or more", filter, most, kMaxSum));
      return;
    }
  }

  const Network& network_;
  const Layer& layer_;
  std::vector<std::string> problems_;
};

}  // namespace

Status supports(const Config&, const Network& network, const Layer& layer) {
  Limits limits(network, layer);
  std::visit(limits, layer.op);
  return std::move(limits).status();
}

}  // namespace tilewright::dpu
