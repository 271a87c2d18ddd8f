#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "tilewright/base/rng.h"
#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;
using Complex = std::complex<double>;
using Wave = std::vector<Complex>;

/// The definition, sample by sample; missing samples are 0.
Wave plain_transform(const Wave& x, size_t length, bool inverse) {
  Wave out(length);
  for (size_t k = 0; k < length; ++k) {
    for (size_t n = 0; n < std::min(length, x.size()); ++n) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(n * k) / double(length);
      out[k] += x[n] * std::polar(1.0, inverse ? angle : -angle);
    }
    if (inverse) out[k] /= static_cast<double>(length);
  }
  return out;
}

std::vector<double> noise(size_t count) {
  Rng rng(7);
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) out.push_back(static_cast<double>(rng.between(-16, 16)) / 8);
  return out;
}

Array scalar_of(int64_t value) {
  Array out(DType::I64, {});
  out.set_int(0, value);
  return out;
}

struct FourierTrial {
  std::string op = "DFT";
  Shape shape;
  std::vector<std::pair<std::string, int64_t>> attrs = {};
  /// Inputs behind the signal; none stands for an absent one.
  std::vector<std::optional<Array>> operands = {};
  int64_t opset = 20;

  onnx::ModelProto model() const {
    onnx::ModelProto m = empty_model(opset);
    add_input(m, "x", shape);
    std::vector<std::string> names = {"x"};
    for (const auto& operand : operands) {
      names.push_back(operand ? "w" + std::to_string(names.size()) : "");
      if (operand) add_weight(m, names.back(), *operand);
    }
    onnx::NodeProto& node = add_node(m, op, names, {"y"});
    for (const auto& [key, value] : attrs) set_attr(node, key, value);
    add_output(m, "y");
    return m;
  }
  std::vector<double> run(const std::vector<double>& x, const Shape& expected) const {
    const auto graph = import(model());
    EXPECT_TRUE(graph) << to_string(graph.error());
    if (!graph) return {};
    const auto out = run_graph(*graph, {Array::of(DType::F32, x).reshaped(shape)});
    EXPECT_TRUE(out) << to_string(out.error());
    if (!out) return {};
    EXPECT_EQ((*out)[0].shape(), expected);
    return (*out)[0].to_doubles();
  }
  std::string error() const {
    const auto graph = import(model());
    return graph ? "accepted" : to_string(graph.error());
  }
};

/// The numbers of `got`, real or complex, are those of `want`.
void expect_wave(const std::vector<double>& got, const Wave& want, bool real = false) {
  ASSERT_EQ(got.size(), want.size() * (real ? 1 : 2));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[real ? i : 2 * i], want[i].real(), 1e-4) << i;
    const double imaginary = real ? want[i].imag() : got[2 * i + 1];
    EXPECT_NEAR(imaginary, want[i].imag(), 1e-4) << i;
  }
}

TEST(Fourier, TransformsRealAndComplexSignals) {
  for (const int64_t length : {5, 6, 9})  // padded, as it is, cut
    for (const bool inverse : {false, true}) {
      SCOPED_TRACE(length);
      const std::vector<double> x = noise(14);
      Wave real, both;
      for (size_t i = 0; i < 7; ++i) both.emplace_back(x[2 * i], x[2 * i + 1]);
      for (size_t i = 0; i < 7; ++i) real.emplace_back(x[i], 0);
      const std::vector<std::pair<std::string, int64_t>> attrs = {{"inverse", inverse}};
      const FourierTrial of_both{"DFT", {1, 7, 2}, attrs, {scalar_of(length)}};
      expect_wave(of_both.run(x, {1, length, 2}),
                  plain_transform(both, static_cast<size_t>(length), inverse));
      const FourierTrial of_real{"DFT", {1, 7, 1}, attrs, {scalar_of(length)}};
      expect_wave(of_real.run({x.begin(), x.begin() + 7}, {1, length, 2}),
                  plain_transform(real, static_cast<size_t>(length), inverse));
    }
}

TEST(Fourier, HalfOfASpectrumAndBack) {
  for (const size_t length : {7, 8}) {
    const std::vector<double> x = noise(length);
    const auto extent = static_cast<int64_t>(length), half = extent / 2 + 1;
    Wave spectrum = plain_transform({x.begin(), x.end()}, length, false);
    spectrum.resize(static_cast<size_t>(half));
    const FourierTrial forth{"DFT", {extent, 1}, {{"onesided", 1}}};
    const std::vector<double> got = forth.run(x, {half, 2});
    expect_wave(got, spectrum);
    const FourierTrial back{
        "DFT", {half, 2}, {{"onesided", 1}, {"inverse", 1}}, {scalar_of(extent)}};
    expect_wave(back.run(got, {extent, 1}), {x.begin(), x.end()}, true);
  }
}

TEST(Fourier, AxisIsAnAttributeBeforeOpsetTwenty) {
  const std::vector<double> x = noise(24);  // [2, 3, 4, 1]
  auto columns = [&](size_t axis_extent, size_t stride) {
    Wave want(24);
    for (size_t first = 0; first < 24; ++first) {
      if (first / stride % axis_extent != 0) continue;
      Wave line;
      for (size_t i = 0; i < axis_extent; ++i) line.emplace_back(x[first + i * stride]);
      line = plain_transform(line, axis_extent, false);
      for (size_t i = 0; i < axis_extent; ++i) want[first + i * stride] = line[i];
    }
    return want;
  };
  const Shape shape = {2, 3, 4, 1}, result = {2, 3, 4, 2};
  expect_wave(FourierTrial{"DFT", shape, {}, {}, 20}.run(x, result), columns(4, 1));
  expect_wave(FourierTrial{"DFT", shape, {}, {}, 17}.run(x, result), columns(3, 4));
  expect_wave(FourierTrial{"DFT", shape, {{"axis", 0}}, {}, 17}.run(x, result), columns(2, 12));
  const FourierTrial third{"DFT", shape, {}, {std::nullopt, scalar_of(-3)}, 20};
  expect_wave(third.run(x, result), columns(3, 4));
}

TEST(Fourier, FramesOfASignal) {
  const std::vector<double> x = noise(20), window = {0.5, 1, 2, 1, 0.25};
  const Array windows = Array::of(DType::F32, window);
  for (const int64_t parts : {1, 2})
    for (const bool onesided : {true, false}) {
      if (onesided && parts == 2) continue;
      const int64_t samples = 20 / parts, bins = onesided ? 3 : 5, frames = (samples - 5) / 2 + 1;
      Wave want;
      for (int64_t frame = 0; frame < frames; ++frame) {
        Wave cut;
        for (int64_t i = 0; i < 5; ++i) {
          const auto at = static_cast<size_t>((frame * 2 + i) * parts);
          cut.push_back(Complex(x[at], parts == 2 ? x[at + 1] : 0) *
                        window[static_cast<size_t>(i)]);
        }
        cut = plain_transform(cut, 5, false);
        want.insert(want.end(), cut.begin(), cut.begin() + bins);
      }
      const FourierTrial t{
          "STFT", {1, samples, parts}, {{"onesided", onesided}}, {scalar_of(2), windows}};
      expect_wave(t.run(x, {1, frames, bins, 2}), want);
    }
  const FourierTrial flat{"STFT", {2, 10}, {}, {scalar_of(2), windows}};
  const FourierTrial deep{"STFT", {2, 10, 1}, {}, {scalar_of(2), windows}};
  EXPECT_EQ(flat.run(x, {2, 3, 3, 2}), deep.run(x, {2, 3, 3, 2}));
  const FourierTrial whole{"STFT", {1, 20, 1}, {{"onesided", 0}}, {scalar_of(1)}};
  expect_wave(whole.run(x, {1, 1, 20, 2}), plain_transform({x.begin(), x.end()}, 20, false));
}

TEST(Fourier, WhatDoesNotFitIsReported) {
  EXPECT_THAT((FourierTrial{"DFT", {4, 1}, {}, {std::nullopt, scalar_of(1)}}.error()),
              HasSubstr("axis 1"));
  EXPECT_THAT((FourierTrial{"DFT", {4, 3}}.error()), HasSubstr("3 parts"));
  EXPECT_THAT((FourierTrial{"DFT", {4, 2}, {{"onesided", 1}}}.error()), HasSubstr("real signal"));
  EXPECT_THAT((FourierTrial{"DFT", {4, 1}, {}, {scalar_of(0)}}.error()),
              HasSubstr("dft_length is 0"));
  EXPECT_THAT((FourierTrial{"DFT", {1 << 20, 1}}.error()), HasSubstr("too large"));
  EXPECT_THAT((FourierTrial{"DFT", {4, 1}, {}, {scalar_of(int64_t{1} << 62)}}.error()),
              HasSubstr("too large"));
  EXPECT_THAT((FourierTrial{"STFT", {4, 2, 3}, {}, {scalar_of(1)}}.error()),
              HasSubstr("[4, 2, 3]"));
  EXPECT_THAT((FourierTrial{"STFT", {1, 4, 1}, {}, {scalar_of(0)}}.error()),
              HasSubstr("step is 0"));
  EXPECT_THAT(
      (FourierTrial{"STFT", {1, 4, 1}, {}, {scalar_of(1), std::nullopt, scalar_of(5)}}.error()),
      HasSubstr("frames of 5 samples"));
  EXPECT_THAT(
      (FourierTrial{"STFT",
                    {1, 4, 1},
                    {},
                    {scalar_of(1), Array::of(DType::F32, std::vector<double>{1, 1}), scalar_of(3)}}
           .error()),
      HasSubstr("the window is [2]"));
}

}  // namespace
}  // namespace tilewright::graph
