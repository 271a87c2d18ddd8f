#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::AttrMap;
using testing::call_of;
using testing::error_of;
using testing::expect_close;
using testing::filled;
using testing::flat;
using testing::for_each_index;
using ::testing::HasSubstr;
using testing::Ints;
using testing::random_array;
using testing::run_op;
using testing::value_at;
using testing::value_or;

struct PlainConvCase {
  Shape x, w;
  Ints strides, pads, dilations;
  int64_t group = 1;
  bool bias = false;
};

AttrMap attrs_of(const PlainConvCase& c) {
  return {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.group}};
}

/// The textbook sum over channels of the group and kernel positions; outside is zero.
Array naive_conv(const PlainConvCase& c, const Array& x, const Array& w, const Array& bias) {
  const size_t rank = c.x.size() - 2;
  Shape out = {c.x[0], c.w[0]};
  for (size_t i = 0; i < rank; ++i)
    out.push_back(
        (c.x[i + 2] + c.pads[i] + c.pads[i + rank] - c.dilations[i] * (c.w[i + 2] - 1) - 1) /
            c.strides[i] +
        1);
  const Shape taps(c.w.begin() + 1, c.w.end());
  return filled(x.dtype(), out, [&](const Ints& at) {
    double sum = bias.empty_handle() ? 0 : bias.get(at[1]);
    const int64_t first = at[1] / (c.w[0] / c.group) * c.w[1];
    for_each_index(taps, [&](const Ints& t) {
      Ints source = {at[0], first + t[0]}, weight = {at[1], t[0]};
      for (size_t i = 0; i < rank; ++i) {
        source.push_back(at[i + 2] * c.strides[i] + t[i + 1] * c.dilations[i] - c.pads[i]);
        weight.push_back(t[i + 1]);
      }
      sum += value_or(x, source, 0) * value_at(w, weight);
    });
    return sum;
  });
}

const std::vector<PlainConvCase>& conv_cases() {
  static const std::vector<PlainConvCase> cases = {
      {{1, 2, 5, 7}, {3, 2, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
      {{2, 3, 7, 6}, {5, 3, 3, 2}, {2, 1}, {0, 1, 2, 0}, {1, 2}, 1, true},
      {{1, 4, 5, 5}, {6, 2, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2, true},
      {{1, 3, 5, 5}, {6, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3},
      {{1, 4, 6, 5}, {4, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4},
      {{1, 3, 4, 4}, {2, 3, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
      {{2, 2, 9}, {3, 2, 3}, {2}, {2, 1}, {2}, 1, true},
      {{1, 2, 4, 3, 5}, {2, 2, 2, 3, 2}, {1, 1, 2}, {1, 1, 0, 0, 1, 1}, {2, 1, 1}},
      {{1, 1, 3, 3}, {1, 1, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
  };
  return cases;
}

TEST(Conv, AgreesWithTheTextbookSum) {
  int seed = 0;
  for (const PlainConvCase& c : conv_cases()) {
    for (const DType dtype : {DType::F32, DType::F16}) {
      const Array x = random_array(dtype, c.x, ++seed, -3, 3);
      const Array w = random_array(dtype, c.w, ++seed, -2, 2);
      const Array bias = c.bias ? random_array(dtype, {c.w[0]}, ++seed) : Array();
      expect_close(run_op("Conv", {x, w, bias}, attrs_of(c))[0], naive_conv(c, x, w, bias), 0,
                   to_string(c.x) + to_string(c.w));
    }
  }
}

TEST(Conv, SameAndValidPaddingChooseTheirPads) {
  const Array x = random_array(DType::F32, {1, 2, 5, 6}, 1),
              w = random_array(DType::F32, {3, 2, 3, 2}, 2);
  const auto with = [&](const std::string& mode, const Ints& pads) {
    const PlainConvCase c = {x.shape(), w.shape(), {2, 2}, pads, {1, 1}};
    AttrMap attrs = {{"strides", Ints{2, 2}}, {"auto_pad", mode}};
    expect_close(run_op("Conv", {x, w}, attrs)[0], naive_conv(c, x, w, Array()), 0, mode);
  };
  // Heights: 5 -> 3 needs 2 in total; widths: 6 -> 3 needs none.
  with("SAME_UPPER", {1, 0, 1, 0});
  with("VALID", {0, 0, 0, 0});
  const Array v = random_array(DType::F32, {1, 1, 4}, 3),
              k = random_array(DType::F32, {1, 1, 2}, 4);
  const PlainConvCase upper = {v.shape(), k.shape(), {1}, {0, 1}, {1}};
  const PlainConvCase lower = {v.shape(), k.shape(), {1}, {1, 0}, {1}};
  expect_close(run_op("Conv", {v, k}, {{"auto_pad", std::string("SAME_UPPER")}})[0],
               naive_conv(upper, v, k, Array()));
  expect_close(run_op("Conv", {v, k}, {{"auto_pad", std::string("SAME_LOWER")}})[0],
               naive_conv(lower, v, k, Array()));
}

TEST(Conv, PadsOnlyWhereWindowsReach) {
  const auto text = [](const Ints& pads, int64_t stride) {
    const Array x(DType::F32, {1, 1, 6, 6}), w(DType::F32, {1, 1, 3, 3});
    return print(
        *op_func(call_of("Conv", {x, w}, {{"pads", pads}, {"strides", Ints{stride, stride}}})));
  };
  EXPECT_THAT(text({0, 0, 0, 0}, 1), ::testing::Not(HasSubstr("conv_pad")));
  EXPECT_THAT(text({1, 1, 1, 1}, 1), HasSubstr("conv_pad: f32[1,1,8,8]"));
  // With stride 2 the last window ends at padded position 6, so nothing is added at the end.
  EXPECT_THAT(text({1, 1, 1, 1}, 2), HasSubstr("conv_pad: f32[1,1,7,7]"));
}

TEST(Conv, RejectsWhatDoesNotFit) {
  const Array x(DType::F32, {1, 4, 5, 5}), w(DType::F32, {6, 3, 3, 3});
  EXPECT_THAT(error_of(call_of("Conv", {x, w})), HasSubstr("needs 4 channels per filter, has 3"));
  EXPECT_THAT(
      error_of(call_of("Conv", {x, Array(DType::F32, {6, 1, 3, 3})}, {{"group", int64_t{3}}})),
      HasSubstr("4 channels do not form 3 groups"));
  EXPECT_THAT(
      error_of(call_of("Conv", {x, Array(DType::F32, {6, 1, 3, 3})}, {{"group", int64_t{4}}})),
      HasSubstr("6 filters do not form 4 groups"));
  EXPECT_THAT(error_of(call_of("Conv", {x, Array(DType::F32, {6, 4, 7, 3})})),
              HasSubstr("window 7, input 5, pads 0 and 0"));
  EXPECT_THAT(error_of(call_of("Conv", {x, Array(DType::F32, {6, 4, 3})})), HasSubstr("rank"));
  EXPECT_THAT(
      error_of(call_of("Conv", {x, Array(DType::F32, {6, 4, 3, 3}), Array(DType::F32, {5})})),
      HasSubstr("input 2 must have shape [6]"));
  EXPECT_THAT(
      error_of(call_of("Conv", {x, Array(DType::F32, {6, 4, 3, 3})}, {{"strides", Ints{0, 1}}})),
      HasSubstr("strides contains 0"));
  EXPECT_THAT(
      error_of(call_of("Conv", {x, Array(DType::F32, {6, 4, 3, 3})}, {{"pads", Ints{1, 1}}})),
      HasSubstr("pads needs 4 entries, got 2"));
  EXPECT_THAT(error_of(call_of("Conv", {x, Array(DType::F32, {6, 4, 3, 3})},
                               {{"kernel_shape", Ints{2, 2}}})),
              HasSubstr("kernel_shape [2, 2]"));
}

struct TransposeCase {
  Shape x, w;
  Ints strides, pads, dilations, extra;
  int64_t group = 1;
  bool bias = false;
};

/// Every input element is spread over the output: the definition by scattering.
Array naive_transpose(const TransposeCase& c, const Array& x, const Array& w, const Array& bias) {
  const size_t rank = c.x.size() - 2;
  Shape out = {c.x[0], c.w[1] * c.group};
  for (size_t i = 0; i < rank; ++i)
    out.push_back((c.x[i + 2] - 1) * c.strides[i] + c.extra[i] + c.dilations[i] * (c.w[i + 2] - 1) +
                  1 - c.pads[i] - c.pads[i + rank]);
  Array y = filled(x.dtype(), out,
                   [&](const Ints& at) { return bias.empty_handle() ? 0 : bias.get(at[1]); });
  const Shape taps(c.w.begin() + 1, c.w.end());
  for_each_index(c.x, [&](const Ints& at) {
    const int64_t group = at[1] / (c.x[1] / c.group);
    for_each_index(taps, [&](const Ints& t) {
      Ints target = {at[0], group * c.w[1] + t[0]}, weight = {at[1], t[0]};
      for (size_t i = 0; i < rank; ++i) {
        target.push_back(at[i + 2] * c.strides[i] + t[i + 1] * c.dilations[i] - c.pads[i]);
        weight.push_back(t[i + 1]);
      }
      if (std::isnan(value_or(y, target, NAN))) return;
      const int64_t position = flat(out, target);
      y.set(position, y.get(position) + value_at(x, at) * value_at(w, weight));
    });
  });
  return y;
}

TEST(ConvTranspose, AgreesWithScattering) {
  const std::vector<TransposeCase> cases = {
      {{1, 2, 3, 4}, {2, 3, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {0, 0}},
      {{1, 2, 3, 4}, {2, 3, 4, 4}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}, 1, true},
      {{2, 4, 3, 3}, {4, 2, 3, 2}, {2, 3}, {1, 0, 0, 1}, {1, 1}, {1, 2}, 2, true},
      {{1, 1, 4, 4}, {1, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, {2, 2}, {1, 1}},
      {{1, 2, 5, 3}, {2, 1, 2, 3}, {1, 1}, {0, 1, 1, 0}, {3, 2}, {0, 0}},
      {{1, 2, 4}, {2, 2, 3}, {3}, {1, 1}, {1}, {2}},
      {{1, 1, 2, 3, 2}, {1, 2, 3, 2, 2}, {2, 1, 3}, {1, 0, 0, 1, 0, 1}, {1, 1, 1}, {0, 0, 0}},
      {{1, 3, 3, 3}, {3, 1, 1, 1}, {3, 3}, {0, 0, 0, 0}, {1, 1}, {0, 0}, 3},
  };
  int seed = 100;
  for (const TransposeCase& c : cases) {
    const Array x = random_array(DType::F32, c.x, ++seed),
                w = random_array(DType::F32, c.w, ++seed);
    const Array bias = c.bias ? random_array(DType::F32, {c.w[1] * c.group}, ++seed) : Array();
    const AttrMap attrs = {{"strides", c.strides},
                           {"pads", c.pads},
                           {"dilations", c.dilations},
                           {"output_padding", c.extra},
                           {"group", c.group}};
    expect_close(run_op("ConvTranspose", {x, w, bias}, attrs)[0], naive_transpose(c, x, w, bias), 0,
                 to_string(c.x) + to_string(c.w));
  }
}

TEST(ConvTranspose, OutputShapeAndAutoPadPlaceTheResult) {
  const Array x = random_array(DType::F32, {1, 1, 3, 3}, 1),
              w = random_array(DType::F32, {1, 1, 3, 3}, 2);
  const Ints two = {2, 2};
  // The full result is 7x7: 6x6 cuts one element, SAME_UPPER at the end, else at the beginning.
  const auto padded = [&](const Ints& pads) {
    return naive_transpose({x.shape(), w.shape(), two, pads, {1, 1}, {0, 0}}, x, w, Array());
  };
  expect_close(run_op("ConvTranspose", {x, w}, {{"strides", two}, {"output_shape", Ints{6, 6}}})[0],
               padded({1, 1, 0, 0}));
  expect_close(run_op("ConvTranspose", {x, w},
                      {{"strides", two}, {"auto_pad", std::string("SAME_UPPER")}})[0],
               padded({0, 0, 1, 1}));
  EXPECT_THAT(error_of(call_of("ConvTranspose", {x, Array(DType::F32, {2, 1, 3, 3})})),
              HasSubstr("do not fit together"));
  EXPECT_THAT(error_of(call_of("ConvTranspose", {x, w}, {{"pads", Ints{3, 3, 3, 3}}})),
              HasSubstr("would have extent -1"));
}

}  // namespace
}  // namespace tilewright::tensor
