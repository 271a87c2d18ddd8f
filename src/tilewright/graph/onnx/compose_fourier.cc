// DFT and STFT as products with tables of sines and cosines: n^2 operations for n samples, which is
// right for frames of a few hundred samples, as networks for speech have them.
//
// Example: DFT of [1, 8, 1] along axis 1 is MatMul([1, 8], table [8, 16]); STFT is a Conv whose
// kernels are the windowed waves. source: the ONNX operator specification, DFT 20 and STFT 17.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tilewright/graph/onnx/composer.h"

namespace tilewright::graph::composing {
namespace {

constexpr int64_t kMostOfTable = int64_t{1} << 24;  ///< elements

/// From samples of one part (real) or two (and imaginary) to bins, or back.
struct Fourier {
  int64_t length = 1;             ///< of the transform
  int64_t samples = 1, bins = 1;  /// what goes in and what comes out; samples missing are 0
  int64_t parts = 1, parts_out = 2;
  bool inverse = false;
  bool halved = false;  ///< the samples are the first half of a spectrum whose signal is real

  /// How much part `part` of sample `n` counts in part `out` of bin `k`.
  double factor(int64_t n, int64_t part, int64_t k, int64_t out) const {
    const double turn = static_cast<double>(n * k % length) / static_cast<double>(length);
    const double angle = 2 * std::numbers::pi * turn;
    const double sine = inverse ? std::sin(angle) : -std::sin(angle);
    double value = part == out ? std::cos(angle) : part == 0 ? sine : -sine;
    if (halved && n > 0 && 2 * n != length) value *= 2;  // and its mirror image
    return inverse ? value / static_cast<double>(length) : value;
  }
  Status check() const {
    const bool fits = bins <= kMostOfTable && samples <= kMostOfTable;
    if (fits && samples * parts <= kMostOfTable / (bins * parts_out)) return {};
    return fail(
        ErrorKind::Unsupported,
        fmt::format("a Fourier transform of {} samples to {} bins is too large", samples, bins),
        "it is computed as a product with a table");
  }
};

class FourierComposer : protected Composer {
 public:
  using Composer::Composer;

 protected:
  /// The whole number in input `i`, which must be known; `fallback` if it is absent.
  Result<int64_t> known(size_t i, const char* what, int64_t fallback) const {
    if (!has(i)) return fallback;
    const std::optional<Array>& value = context_.value(input(i));
    if (!value)
      return fail(
          ErrorKind::Unsupported,
          fmt::format("input {} ('{}') of {} must be known at compile time", i, what, node_.op));
    if (value->size() != 1) return wrong(fmt::format("{} is one number", what));
    return value->to_ints()[0];
  }
  bool set(const char* key, int64_t fallback) const { return attr(key, fallback) != 0; }
};

/// Inputs: signal, length, axis.
class DftComposer : FourierComposer {
 public:
  using FourierComposer::FourierComposer;

  Ids compose() {
    if (!has(0)) return wrong("it needs a signal");
    ValueId x = input(0);
    const auto rank = static_cast<int64_t>(shape(x).size());
    const int64_t asked = TW_TRY(known(2, "axis", -2));
    const int64_t axis = asked < 0 ? asked + rank : asked;
    if (axis < 0 || axis > rank - 2)
      return wrong(fmt::format("axis {} is none of the signal's", asked),
                   fmt::format("the signal is {}", to_string(shape(x))));
    const Fourier f = TW_TRY(transform(shape(x)[static_cast<size_t>(axis)], shape(x).back()));
    TW_TRY_STATUS(f.check());
    if (f.samples < shape(x)[static_cast<size_t>(axis)])
      x = TW_TRY(add("Slice", {x, ints({0}), ints({f.samples}), ints({axis})}));
    Ints order;  // the axis last but one
    for (int64_t i = 0; i < rank; ++i)
      if (i != axis && i != rank - 1) order.push_back(i);
    order.insert(order.end(), {axis, rank - 1});
    if (axis != rank - 2) x = TW_TRY(add("Transpose", {x}, {{"perm", order}}));
    Shape to = shape(x);
    const int64_t inside = f.samples * f.parts;
    x = TW_TRY(reshaped(x, {element_count(to) / inside, inside}));
    x = TW_TRY(add("MatMul", {x, context_.constant(table(f))}));
    to[to.size() - 2] = f.bins;
    to.back() = f.parts_out;
    x = TW_TRY(reshaped(x, to));
    if (axis == rank - 2) return std::vector<ValueId>{x};
    Ints back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    return std::vector<ValueId>{TW_TRY(add("Transpose", {x}, {{"perm", back}}))};
  }

 private:
  Result<Fourier> transform(int64_t extent, int64_t parts) {
    const bool onesided = set("onesided", 0);
    Fourier f;
    f.inverse = set("inverse", 0);
    f.halved = onesided && f.inverse;
    f.parts = parts;
    f.length = TW_TRY(known(1, "dft_length", f.halved ? 2 * (extent - 1) : extent));
    if (parts != 1 && parts != 2)
      return wrong(fmt::format("numbers of {} parts", parts), "1 is real, 2 is complex");
    if (onesided && parts != (f.inverse ? 2 : 1))
      return wrong(f.inverse ? "half of a spectrum is complex"
                             : "only a real signal has half of a spectrum");
    if (f.length < 1 || extent < 1)
      return wrong(fmt::format("dft_length is {}, the axis has {}", f.length, extent));
    const int64_t half = f.length / 2 + 1;
    f.samples = std::min(extent, f.halved ? half : f.length);
    f.bins = onesided && !f.inverse ? half : f.length;
    f.parts_out = f.halved ? 1 : 2;
    return f;
  }

  Array table(const Fourier& f) const {
    Array out(dtype(input(0)), {f.samples * f.parts, f.bins * f.parts_out});
    for (int64_t row = 0; row < out.shape()[0]; ++row)
      for (int64_t column = 0; column < out.shape()[1]; ++column)
        out.set(row * out.shape()[1] + column,
                f.factor(row / f.parts, row % f.parts, column / f.parts_out, column % f.parts_out));
    return out;
  }
};

/// Inputs: signal [batch, samples, parts], step, window, length of frames.
class StftComposer : FourierComposer {
 public:
  using FourierComposer::FourierComposer;

  Ids compose() {
    if (!has(0) || !has(1)) return wrong("it needs a signal and frame_step");
    signal_ = input(0);
    // PyTorch exports a real signal without the last axis; ONNX Runtime reads it, too.
    if (const Shape plain = shape(signal_); plain.size() == 2)
      signal_ = TW_TRY(reshaped(signal_, {plain[0], plain[1], 1}));
    const Shape signal = shape(signal_);
    if (signal.size() != 3 || (signal[2] != 1 && signal[2] != 2))
      return wrong("the signal is [batch, samples, 1], or 2 for complex ones",
                   "it is " + to_string(signal));
    const int64_t step = TW_TRY(known(1, "frame_step", 1));
    Fourier f;
    f.parts = signal[2];
    const bool windowed = has(2) && shape(input(2)).size() == 1;
    f.length = TW_TRY(known(3, "frame_length", windowed ? shape(input(2))[0] : signal[1]));
    if (step < 1) return wrong(fmt::format("frame_step is {}", step));
    if (f.length < 1 || f.length > signal[1])
      return wrong(fmt::format("frames of {} samples in a signal of {}", f.length, signal[1]));
    if (has(2) && shape(input(2)) != Shape{f.length})
      return wrong(fmt::format("the window is {}", to_string(shape(input(2)))),
                   fmt::format("frames have {} samples", f.length));
    const bool onesided = set("onesided", 1);
    if (onesided && f.parts == 2) return wrong("only a real signal has half of a spectrum");
    f.samples = f.length;
    f.bins = onesided ? f.length / 2 + 1 : f.length;
    TW_TRY_STATUS(f.check());
    return waves(f, step);
  }

 private:
  ValueId signal_ = -1;

  Ids waves(const Fourier& f, int64_t step) {
    const Shape signal = shape(signal_);
    Array kernels(dtype(input(0)), {f.bins * 2, f.parts, f.length});
    for (int64_t i = 0; i < kernels.size(); ++i) {
      const int64_t n = i % f.length, part = i / f.length % f.parts;
      const int64_t channel = i / f.length / f.parts;
      kernels.set(i, f.factor(n, part, channel / 2, channel % 2));
    }
    ValueId weights = context_.constant(std::move(kernels));
    if (has(2)) weights = TW_TRY(add("Mul", {weights, input(2)}));
    ValueId x = TW_TRY(add("Transpose", {signal_}, {{"perm", Ints{0, 2, 1}}}));
    x = TW_TRY(add("Conv", {x, weights}, {{"strides", Ints{step}}}));
    x = TW_TRY(reshaped(x, {signal[0], f.bins, 2, shape(x)[2]}));
    return std::vector<ValueId>{TW_TRY(add("Transpose", {x}, {{"perm", Ints{0, 3, 1, 2}}}))};
  }
};

}  // namespace

Ids compose_dft(const Node& node, UpgradeContext& context) {
  return DftComposer(node, context).compose();
}

Ids compose_stft(const Node& node, UpgradeContext& context) {
  return StftComposer(node, context).compose();
}

}  // namespace tilewright::graph::composing
