#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::array_of;
using testing::call_of;
using testing::error_of;
using testing::expect_close;
using testing::filled;
using testing::for_each_index;
using ::testing::HasSubstr;
using testing::Ints;
using testing::random_array;
using testing::run_op;
using testing::value_at;

/// The elements that share `at` on all axes but those in `axes`.
std::vector<double> group_of(const Array& x, const Ints& at, const Ints& axes) {
  std::vector<double> out;
  for_each_index(x.shape(), [&](const Ints& p) {
    for (size_t i = 0; i < p.size(); ++i)
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end() &&
          p[i] != at[i])
        return;
    out.push_back(value_at(x, p));
  });
  return out;
}

double mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}
double variance(const std::vector<double>& v) {
  double sum = 0;
  for (const double e : v) sum += (e - mean(v)) * (e - mean(v));
  return sum / static_cast<double>(v.size());
}
double sum_exp(const std::vector<double>& v, double shift) {
  double sum = 0;
  for (const double e : v) sum += std::exp(e - shift);
  return sum;
}

TEST(Softmax, AllAxesAndTypes) {
  for (const auto& [dtype, tolerance] : {std::pair{DType::F32, 1e-6}, {DType::F16, 2e-3}}) {
    const Array x = random_array(dtype, {2, 3, 4}, 1);
    for (int64_t axis = -3; axis < 3; ++axis) {
      const Ints axes = {axis < 0 ? axis + 3 : axis};
      const auto want = [&](bool logarithm) {
        return filled(dtype, x.shape(), [&](const Ints& at) {
          const double share = std::exp(value_at(x, at)) / sum_exp(group_of(x, at, axes), 0);
          return logarithm ? std::log(share) : share;
        });
      };
      expect_close(run_op("Softmax", {x}, {{"axis", axis}})[0], want(false), tolerance);
      expect_close(run_op("LogSoftmax", {x}, {{"axis", axis}})[0], want(true), tolerance);
    }
  }
  const Array large = array_of(DType::F32, {2}, {1000, 1000});
  expect_close(run_op("Softmax", {large})[0], array_of(DType::F32, {2}, {0.5, 0.5}));
  EXPECT_THAT(error_of(call_of("Softmax", {large}, {{"axis", int64_t{1}}})),
              HasSubstr("axis 1 is outside a tensor of rank 1"));
}

TEST(Hardmax, MarksTheFirstMaximum) {
  const Array x = array_of(DType::F32, {2, 3}, {1, 5, 5, 2, 2, 1});
  expect_close(run_op("Hardmax", {x})[0], array_of(DType::F32, {2, 3}, {0, 1, 0, 1, 0, 0}));
  expect_close(run_op("Hardmax", {x}, {{"axis", int64_t{0}}})[0],
               array_of(DType::F32, {2, 3}, {0, 1, 1, 1, 0, 0}));
}

TEST(BatchNormalization, InferenceAndTraining) {
  const Array x = random_array(DType::F32, {2, 3, 2, 2}, 1);
  const Array scale = random_array(DType::F32, {3}, 2), bias = random_array(DType::F32, {3}, 3);
  const Array m = random_array(DType::F32, {3}, 4), v = random_array(DType::F32, {3}, 5, 1, 6);
  const auto normal = [&](const Ints& at, double mu, double var) {
    return (value_at(x, at) - mu) / std::sqrt(var + 1e-3) * scale.get(at[1]) + bias.get(at[1]);
  };
  expect_close(run_op("BatchNormalization", {x, scale, bias, m, v}, {{"epsilon", 1e-3}})[0],
               filled(DType::F32, x.shape(),
                      [&](const Ints& at) { return normal(at, m.get(at[1]), v.get(at[1])); }),
               1e-5);
  const auto trained =
      run_op("BatchNormalization", {x, scale, bias, m, v},
             {{"epsilon", 1e-3}, {"training_mode", int64_t{1}}, {"momentum", 0.75}}, 3);
  const auto batch = [&](int64_t c) { return group_of(x, {0, c, 0, 0}, {0, 2, 3}); };
  expect_close(trained[0],
               filled(DType::F32, x.shape(),
                      [&](const Ints& at) {
                        return normal(at, mean(batch(at[1])), variance(batch(at[1])));
                      }),
               1e-5);
  expect_close(
      trained[1],
      filled(DType::F32, {3},
             [&](const Ints& at) { return m.get(at[0]) * 0.75 + mean(batch(at[0])) * 0.25; }),
      1e-5);
  expect_close(
      trained[2],
      filled(DType::F32, {3},
             [&](const Ints& at) { return v.get(at[0]) * 0.75 + variance(batch(at[0])) * 0.25; }),
      1e-5);
  EXPECT_THAT(error_of(call_of("BatchNormalization", {x, scale, bias, m, Array(DType::F32, {2})})),
              HasSubstr("input 4 must have shape [3]"));
}

TEST(GroupNormalization, GroupsOfChannelsAndSingleChannels) {
  const Array x = random_array(DType::F32, {2, 4, 3}, 1);
  const Array scale = random_array(DType::F32, {4}, 2), bias = random_array(DType::F32, {4}, 3);
  const auto want = [&](int64_t per_group) {
    return filled(DType::F32, x.shape(), [&](const Ints& at) {
      std::vector<double> all;
      for (int64_t c = at[1] / per_group * per_group; c < (at[1] / per_group + 1) * per_group; ++c)
        for (int64_t i = 0; i < 3; ++i) all.push_back(value_at(x, {at[0], c, i}));
      return (value_at(x, at) - mean(all)) / std::sqrt(variance(all) + 1e-5) * scale.get(at[1]) +
             bias.get(at[1]);
    });
  };
  expect_close(run_op("GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t{2}}})[0],
               want(2), 1e-5);
  expect_close(run_op("GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t{1}}})[0],
               want(4), 1e-5);
  expect_close(run_op("InstanceNormalization", {x, scale, bias})[0], want(1), 1e-5);
  EXPECT_THAT(
      error_of(call_of("GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t{3}}})),
      HasSubstr("4 channels do not form 3 groups"));
}

TEST(LayerNormalization, ThreeOutputsFromAnyAxis) {
  const Array x = random_array(DType::F32, {2, 3, 4}, 1);
  for (int64_t axis = -3; axis < 3; ++axis) {
    const int64_t first = axis < 0 ? axis + 3 : axis;
    Ints axes(static_cast<size_t>(3 - first));
    std::iota(axes.begin(), axes.end(), first);
    const Shape inner(x.shape().begin() + first, x.shape().end());
    const Array scale = random_array(DType::F32, inner, 2), bias = random_array(DType::F32, {4}, 3);
    const auto got = run_op("LayerNormalization", {x, scale, bias}, {{"axis", axis}}, 3);
    const auto inverse = [&](const Ints& at) {
      return 1 / std::sqrt(variance(group_of(x, at, axes)) + 1e-5);
    };
    expect_close(got[0],
                 filled(DType::F32, x.shape(),
                        [&](const Ints& at) {
                          const Ints tail(at.begin() + first, at.end());
                          return (value_at(x, at) - mean(group_of(x, at, axes))) * inverse(at) *
                                     value_at(scale, tail) +
                                 bias.get(at[2]);
                        }),
                 1e-5);
    Shape kept = x.shape();
    std::fill(kept.begin() + first, kept.end(), 1);
    expect_close(
        got[1],
        filled(DType::F32, kept, [&](const Ints& at) { return mean(group_of(x, at, axes)); }),
        1e-5);
    expect_close(got[2], filled(DType::F32, kept, inverse), 1e-5);
  }
}

TEST(RMSNormalization, ScalesByTheRoot) {
  const Array x = random_array(DType::F16, {3, 4}, 1), scale = random_array(DType::F16, {4}, 2);
  expect_close(run_op("RMSNormalization", {x, scale}, {{"epsilon", 0.5}})[0],
               filled(DType::F16, {3, 4},
                      [&](const Ints& at) {
                        double sum = 0;
                        for (const double e : group_of(x, at, {1})) sum += e * e;
                        return value_at(x, at) / std::sqrt(sum / 4 + 0.5) * scale.get(at[1]);
                      }),
               2e-3);
}

TEST(LRN, SumsNeighbouringChannels) {
  for (const int64_t size : {1, 3, 4}) {
    const Array x = random_array(DType::F32, {1, 5, 2, 2}, static_cast<uint64_t>(size));
    expect_close(
        run_op("LRN", {x}, {{"size", size}, {"alpha", 0.5}, {"beta", 0.5}, {"bias", 2.0}})[0],
        filled(DType::F32, x.shape(),
               [&](const Ints& at) {
                 double sum = 0;
                 for (int64_t c = at[1] - (size - 1) / 2; c <= at[1] + size / 2; ++c) {
                   const double e = testing::value_or(x, {0, c, at[2], at[3]}, 0);
                   sum += e * e;
                 }
                 return value_at(x, at) / std::sqrt(2 + 0.5 / static_cast<double>(size) * sum);
               }),
        1e-5, std::to_string(size));
  }
  EXPECT_THAT(error_of(call_of("LRN", {Array(DType::F32, {1, 2})})), HasSubstr("size is 0"));
}

TEST(LRN, OnBlocksOfChannelsIsTheSame) {
  const std::string ours = "tilewright";
  for (const int64_t size : {1, 3, 5, 6, 11}) {
    const Array x = random_array(DType::F32, {2, 12, 2, 3}, static_cast<uint64_t>(size));
    const testing::AttrMap attrs = {{"size", size}, {"alpha", 0.5}, {"beta", 0.75}, {"bias", 2.0}};
    const Array in_blocks = run_op("ToBlocked", {x}, {{"block", int64_t{4}}}, 1, ours)[0];
    const Array made = run_op("LRNBlocked", {in_blocks}, attrs, 1, ours)[0];
    expect_close(run_op("FromBlocked", {made}, {{"channels", int64_t{12}}}, 1, ours)[0],
                 run_op("LRN", {x}, attrs)[0], 1e-6, std::to_string(size));
  }
  const Array flat(DType::F32, {1, 2, 2});
  EXPECT_THAT(error_of(call_of("LRNBlocked", {flat}, {{"size", int64_t{3}}}, ours)),
              HasSubstr("not blocked"));
}

TEST(LpNormalization, ZeroStaysZero) {
  const Array x = array_of(DType::F32, {2, 2}, {3, -4, 0, 0});
  expect_close(run_op("LpNormalization", {x})[0], array_of(DType::F32, {2, 2}, {0.6, -0.8, 0, 0}),
               1e-6);
  expect_close(run_op("LpNormalization", {x}, {{"p", int64_t{1}}})[0],
               array_of(DType::F32, {2, 2}, {3.0 / 7, -4.0 / 7, 0, 0}), 1e-6);
  EXPECT_THAT(error_of(call_of("LpNormalization", {x}, {{"p", int64_t{3}}})), HasSubstr("p is 3"));
}

TEST(MeanVarianceNormalization, DefaultAndGivenAxes) {
  const Array x = random_array(DType::F32, {2, 3, 2, 2}, 1);
  for (const Ints& axes : {Ints{0, 2, 3}, Ints{1}, Ints{0, 1, 2, 3}}) {
    const Array want = filled(DType::F32, x.shape(), [&](const Ints& at) {
      const auto group = group_of(x, at, axes);
      return (value_at(x, at) - mean(group)) / (std::sqrt(variance(group)) + 1e-9);
    });
    expect_close(run_op("MeanVarianceNormalization", {x}, {{"axes", axes}})[0], want, 1e-5);
    if (axes.size() == 3) expect_close(run_op("MeanVarianceNormalization", {x})[0], want, 1e-5);
  }
}

}  // namespace
}  // namespace tilewright::tensor
