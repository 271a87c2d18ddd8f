// A network of integer layers as a value: what the DPU's compiler takes.
//
// It knows neither graphs nor loop programs: a layer is a whole operator, because the DPU's
// instructions make whole rows and its memories are planned for the whole launch
// (docs/architecture.md). All tensors are int8 with one binary point each: real value = integer *
// 2^-fix_point.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/accel/dpu/isa.h"
#include "tilewright/base/result.h"

namespace tilewright::dpu {

using ValueId = int;

/// One image of it: [channels][height][width].
struct Value {
  std::string name;
  int64_t channels = 0, height = 0, width = 0;
  int fix_point = 0;
  int64_t elements() const { return channels * height * width; }
};

/// Rows and columns; pads are of the input.
struct Window {
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

/// y = round(act((sum x*w + bias) / 2^shift)), ties towards plus infinity, saturated; the division
/// keeps one bit below the point and the activation comes before rounding (docs/dpu.md).
struct ConvLayer {
  Window window;
  int groups = 1;
  std::vector<int8_t> weights;  ///< [out channels][in channels / groups][kernel_h][kernel_w]
  std::vector<int32_t> bias;    ///< one per output channel, in units of the sum
  int shift = 0;                ///< may be negative
  Activation act = kNone;
  friend bool operator==(const ConvLayer&, const ConvLayer&) = default;
};
/// As ONNX ConvTranspose: y[o] at (i*stride - pad + k) gets x[i] * w[k]; then as ConvLayer.
struct DeconvLayer {
  Window window;
  int groups = 1;
  std::vector<int8_t> weights;  ///< [in channels][out channels / groups][kernel_h][kernel_w]
  std::vector<int32_t> bias;
  int shift = 0;
  Activation act = kNone;
};
/// Max of the taps inside of the image; or round(sum * factor / 2^shift), taps outside are 0.
struct PoolLayer {
  struct Mean {
    int factor = 0, shift = 0;
    friend bool operator==(const Mean&, const Mean&) = default;
  };
  Window window;
  bool average = false;
  int factor = 0, shift = 0;
  /// Averages that do not count padding: what to take for windows of 1, 2, ... taps inside of the
  /// image; empty: `factor` and `shift` for all.
  std::vector<Mean> means;

  /// For windows of so many taps inside.
  Mean mean(int64_t taps) const {
    return means.empty() ? Mean{factor, shift} : means[static_cast<size_t>(taps - 1)];
  }
};
/// One or two inputs: u = sum_k floor(4 * x_k / 2^shift_read_k);
/// y = round(act(u * 2^shift_write / 4)).
struct EltwiseLayer {
  int shift_read[2] = {0, 0};
  int shift_write = 0;
  Activation act = kNone;
};
/// Each pixel becomes factor_h x factor_w equal ones.
struct UpsampleLayer {
  int factor_h = 1, factor_w = 1;
};
/// Along channels.
struct ConcatLayer {};
/// A part: as many channels, rows and columns as the result has, from these on.
struct SliceLayer {
  int64_t channel = 0, row = 0, column = 0;
};

struct Layer {
  std::string name;
  std::vector<ValueId> inputs;
  ValueId output = -1;
  std::variant<ConvLayer, DeconvLayer, PoolLayer, EltwiseLayer, UpsampleLayer, ConcatLayer,
               SliceLayer>
      op;
};

struct Network {
  std::vector<Value> values;
  std::vector<Layer> layers;  ///< in topological order; each value has one producer
  std::vector<ValueId> inputs, outputs;
};

/// Shapes, counts and order. errors: Invalid, all problems with layer names.
Status check(const Network& network);

/// Why the hardware cannot do `layer`: limits of kernels, strides, channels, sums that could pass
/// 2^30, activations. errors: Unsupported, with numbers.
Status supports(const Config& config, const Network& network, const Layer& layer);

/// What the network computes of one image, by plain loops: values of [channels][height][width] by
/// id of inputs in, of all values out. The meaning of a network, for tests and reports.
/// requires: `check` accepts it.
std::map<ValueId, std::vector<int8_t>> interpret(
    const Network& network, const std::map<ValueId, std::vector<int8_t>>& inputs);

}  // namespace tilewright::dpu
