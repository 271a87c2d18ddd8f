// A transposed convolution of stride s is s*s small ones: every s-th row and column of the result
// comes from a convolution with every s-th tap of the kernel, turned round.
//
// Kernel 3, stride 2: 2x2, 2x1, 1x2 and 1x1 taps, nine together. No tap is used twice.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

/// One phase along one axis.
struct PhaseAxis {
  std::vector<int> taps;  ///< indices into the kernel; -1: a zero
  int64_t pad = 0, crop = 0, count = 0;
};

PhaseAxis phase_axis(int kernel, int stride, int pad, int64_t size, int64_t out, int64_t phase) {
  const int64_t p = kernel - 1 - pad;
  const int64_t t0 = ((p - phase) % stride + stride) % stride;
  PhaseAxis axis;
  axis.count = (out - phase + stride - 1) / stride;
  for (int64_t t = t0; t < kernel; t += stride)
    axis.taps.push_back(static_cast<int>(kernel - 1 - t));
  axis.pad = (p - phase - t0) / stride;
  if (axis.taps.empty()) {
    axis.taps.push_back(-1);
    axis.pad = 0;
  }
  // Zeros are added until every window has a row of the input.
  while (axis.count - 1 - axis.pad > size - 1) {
    axis.taps.insert(axis.taps.begin(), -1);
    ++axis.pad;
  }
  while (static_cast<int64_t>(axis.taps.size()) - 1 < axis.pad) axis.taps.push_back(-1);
  if (axis.pad < 0) {
    axis.crop = -axis.pad;
    axis.pad = 0;
  }
  return axis;
}

ConvLayer phase_conv(const DeconvLayer& layer, int64_t in_channels, const PhaseAxis& rows,
                     const PhaseAxis& columns) {
  ConvLayer conv;
  conv.window.kernel_h = static_cast<int>(rows.taps.size());
  conv.window.kernel_w = static_cast<int>(columns.taps.size());
  conv.window.pad_top = static_cast<int>(rows.pad);
  conv.window.pad_left = static_cast<int>(columns.pad);
  conv.groups = layer.groups;
  conv.bias = layer.bias;
  conv.shift = layer.shift;
  conv.act = layer.act;
  const size_t out = layer.bias.size() / static_cast<size_t>(layer.groups);
  const size_t in = static_cast<size_t>(in_channels / layer.groups);
  const size_t width = static_cast<size_t>(layer.window.kernel_w);
  const size_t taps = static_cast<size_t>(layer.window.kernel_h) * width;
  for (size_t oc = 0; oc < layer.bias.size(); ++oc)
    for (size_t i = 0; i < in; ++i)
      for (const int ky : rows.taps)
        for (const int kx : columns.taps) {
          const size_t ic = oc / out * in + i;
          conv.weights.push_back(
              ky < 0 || kx < 0
                  ? int8_t{0}
                  : layer.weights[(ic * out + oc % out) * taps + static_cast<size_t>(ky) * width +
                                  static_cast<size_t>(kx)]);
        }
  return conv;
}

}  // namespace

Result<std::vector<Phase>> phases(const DeconvLayer& layer, const Value& in, const Value& out) {
  const Window& w = layer.window;
  std::vector<Phase> result;
  for (int64_t y = 0; y < w.stride_h; ++y)
    for (int64_t x = 0; x < w.stride_w; ++x) {
      if (y >= out.height || x >= out.width) continue;
      const PhaseAxis rows =
          phase_axis(w.kernel_h, w.stride_h, w.pad_top, in.height, out.height, y);
      const PhaseAxis columns =
          phase_axis(w.kernel_w, w.stride_w, w.pad_left, in.width, out.width, x);
      if (rows.taps.size() > 16 || columns.taps.size() > 16 || rows.pad > 15 || columns.pad > 15)
        return fail(ErrorKind::Unsupported, "a transposed convolution has too much padding",
                    fmt::format("phase {},{} needs {}x{} taps and pads of {} and {}", y, x,
                                rows.taps.size(), columns.taps.size(), rows.pad, columns.pad));
      result.push_back({phase_conv(layer, in.channels, rows, columns), y, x, rows.count,
                        columns.count, rows.crop, columns.crop});
    }
  return result;
}

Upsampled upsampled(const DeconvLayer& layer, const Value& in) {
  const Window& w = layer.window;
  const auto all = [](int kernel, int pad, int64_t& crop) {
    PhaseAxis axis;
    for (int t = kernel - 1; t >= 0; --t) axis.taps.push_back(t);
    axis.pad = std::max(0, kernel - 1 - pad);
    crop = std::max(0, pad - kernel + 1);
    return axis;
  };
  Upsampled out;
  const PhaseAxis rows = all(w.kernel_h, w.pad_top, out.crop_top);
  const PhaseAxis columns = all(w.kernel_w, w.pad_left, out.crop_left);
  out.conv = phase_conv(layer, in.channels, rows, columns);
  // Rows that ONNX adds at the end have zeros of their own to read.
  out.height = (in.height - 1) * w.stride_h + 1 + std::max(0, -w.pad_bottom);
  out.width = (in.width - 1) * w.stride_w + 1 + std::max(0, -w.pad_right);
  return out;
}

std::vector<View> zeros_between(const DeconvLayer& layer, const Value& in, const View& all) {
  const int sh = layer.window.stride_h, sw = layer.window.stride_w;
  if (all.height > in.height * sh || all.width > in.width * sw) return {all};
  std::vector<View> parts;
  const auto every = [](int64_t& begin, int64_t& step, int64_t& count, int phase, int stride) {
    begin += phase;
    step = stride;
    count = (count - phase + stride - 1) / stride;
  };
  for (int y = 0; y < sh; ++y)
    for (int x = y == 0 ? 1 : 0; x < (y == 0 ? sw : 1); ++x) {
      View part = all;
      every(part.row, part.row_step, part.height, y, sh);
      if (y == 0) every(part.col, part.col_step, part.width, x, sw);
      if (part.height > 0 && part.width > 0) parts.push_back(part);
    }
  return parts;
}

}  // namespace tilewright::dpu
