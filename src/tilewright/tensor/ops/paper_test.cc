#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/tensor/op_testing.h"
#include "tilewright/tensor/workload.h"

namespace tilewright::tensor {
namespace {

using testing::AttrMap;
using testing::call_of;
using testing::error_of;
using testing::expect_close;
using testing::filled;
using ::testing::HasSubstr;
using testing::Ints;
using testing::ours;
using testing::random_array;
using testing::run_op;
using testing::value_at;
using testing::value_or;

TEST(PaperOps, BilinearAndTensorProducts) {
  const Array x = random_array(DType::F32, {2, 3}, 1), w = random_array(DType::F32, {4, 3, 5}, 2);
  const Array y = random_array(DType::F32, {2, 5}, 3);
  expect_close(ours("Bilinear", {x, w, y}), filled(DType::F32, {2, 4}, [&](const Ints& at) {
                 double sum = 0;
                 for (int64_t i = 0; i < 3; ++i)
                   for (int64_t j = 0; j < 5; ++j)
                     sum += value_at(x, {at[0], i}) * value_at(w, {at[1], i, j}) *
                            value_at(y, {at[0], j});
                 return sum;
               }));
  const Array a = random_array(DType::I8, {2, 3, 4}, 4, -128, 127);
  const Array b = random_array(DType::I8, {4, 5}, 5, -128, 127);
  const Array c = random_array(DType::I8, {3, 5}, 6, -128, 127);
  expect_close(ours("MTTKRP", {a, b, c}), filled(DType::I32, {2, 5}, [&](const Ints& at) {
                 double sum = 0;
                 for (int64_t k = 0; k < 3; ++k)
                   for (int64_t l = 0; l < 4; ++l)
                     sum += value_at(a, {at[0], k, l}) * value_at(b, {l, at[1]}) *
                            value_at(c, {k, at[1]});
                 return sum;
               }));
  expect_close(ours("TTM", {a, b}), filled(DType::I32, {2, 3, 5}, [&](const Ints& at) {
                 double sum = 0;
                 for (int64_t l = 0; l < 4; ++l)
                   sum += value_at(a, {at[0], at[1], l}) * value_at(b, {l, at[2]});
                 return sum;
               }));
  const Array v = random_array(DType::F16, {2, 4}, 7), m = random_array(DType::F16, {2, 3, 4}, 8);
  expect_close(ours("Gemv", {m, v}), filled(DType::F16, {2, 3}, [&](const Ints& at) {
                 double sum = 0;
                 for (int64_t k = 0; k < 4; ++k)
                   sum += value_at(m, {at[0], at[1], k}) * value_at(v, {at[0], k});
                 return sum;
               }));
  EXPECT_THAT(error_of(call_of("Gemv", {m, Array(DType::F16, {4})}, {}, "tilewright")),
              HasSubstr("do not fit together"));
  EXPECT_THAT(error_of(call_of("MTTKRP", {a, b, b}, {}, "tilewright")),
              HasSubstr("input 2 must have shape [3, 5]"));
}

TEST(PaperOps, BlockCirculantAveragesDiagonalsOfEachTile) {
  const int64_t block = 3;
  const Array x = random_array(DType::F32, {7, 6}, 1);
  expect_close(ours("BlockCirculant", {x}, {{"block", block}}),
               filled(DType::F32, {7, 6},
                      [&](const Ints& at) {
                        if (at[0] >= 6) return 0.0;
                        const int64_t top = at[0] / block * block, left = at[1] / block * block;
                        const int64_t d = (at[1] - left - (at[0] - top) + block) % block;
                        double sum = 0;
                        for (int64_t a = 0; a < block; ++a)
                          for (int64_t b = 0; b < block; ++b)
                            if ((b - a + block) % block == d)
                              sum += value_at(x, {top + a, left + b});
                        return sum / static_cast<double>(block);
                      }),
               1e-6);
  EXPECT_THAT(error_of(call_of("BlockCirculant", {x}, {}, "tilewright")), HasSubstr("block is 0"));
}

TEST(PaperOps, ShiftReadsOneKernelPositionPerChannel) {
  const Array x = random_array(DType::F32, {1, 5, 6, 4}, 1);
  const Array index = testing::array_of(DType::I32, {4}, {0, 4, 8, 5});
  const AttrMap attrs = {{"kernel_shape", Ints{3, 3}},
                         {"pads", Ints{1, 1, 1, 1}},
                         {"strides", Ints{2, 1}},
                         {"dilations", Ints{1, 1}}};
  expect_close(ours("ShiftConv2D", {x, index}, attrs),
               filled(DType::F32, {1, 3, 6, 4}, [&](const Ints& at) {
                 const int64_t tap = index.get_int(at[3]);
                 return value_or(x, {0, at[1] * 2 + tap / 3 - 1, at[2] + tap % 3 - 1, at[3]}, 0);
               }));
  // A wild index must not read outside the input.
  const Array wild = testing::array_of(DType::I32, {4}, {-7, 99, 8, 0});
  EXPECT_EQ(ours("ShiftConv2D", {x, wild}, attrs).shape(), (Shape{1, 3, 6, 4}));
}

// Shapes of published cases, one per operator (and of the integer and batched variants).
struct Workload {
  const char* name;
  std::map<std::string, int64_t> params;
  DType dtype;
  std::vector<Shape> inputs;
  Shape output;
};

TEST(Workload, ShapesAreThePublishedOnes) {
  const std::map<std::string, int64_t> deep = {
      {"batch", 1},    {"in_channels", 3}, {"out_channels", 64}, {"depth", 16},   {"height", 112},
      {"width", 112},  {"kernel_d", 7},    {"kernel_h", 7},      {"kernel_w", 7}, {"stride_d", 2},
      {"stride_h", 2}, {"stride_w", 2},    {"pad_d", 3},         {"pad_h", 3},    {"pad_w", 3}};
  std::map<std::string, int64_t> undeep = deep;
  undeep["in_channels"] = 64, undeep["out_channels"] = 3, undeep["depth"] = 8;
  undeep["height"] = undeep["width"] = 56;
  const std::vector<Workload> cases = {
      {"gemv", {{"batch", 1}, {"m", 128}, {"k", 64}}, DType::F32, {{128, 64}, {64}}, {128}},
      {"gemv",
       {{"batch", 256}, {"m", 128}, {"k", 512}},
       DType::I8,
       {{256, 128, 512}, {256, 512}},
       {256, 128}},
      {"gemm",
       {{"batch", 1}, {"m", 32}, {"n", 16}, {"k", 8}},
       DType::F32,
       {{32, 8}, {8, 16}},
       {32, 16}},
      {"bilinear",
       {{"batch", 32}, {"out_features", 8}, {"in1_features", 10}, {"in2_features", 12}},
       DType::F32,
       {{32, 10}, {8, 10, 12}, {32, 12}},
       {32, 8}},
      {"conv1d",
       {{"batch", 1},
        {"in_channels", 192},
        {"out_channels", 128},
        {"length", 3136},
        {"kernel_l", 1},
        {"stride_l", 1},
        {"pad_l", 0},
        {"dilation_l", 1},
        {"groups", 1}},
       DType::F32,
       {{1, 192, 3136}, {128, 192, 1}},
       {1, 128, 3136}},
      {"conv_transpose1d",
       {{"batch", 1},
        {"in_channels", 128},
        {"out_channels", 192},
        {"length", 10},
        {"kernel_l", 3},
        {"stride_l", 2},
        {"pad_l", 1},
        {"output_pad_l", 1}},
       DType::F32,
       {{1, 128, 10}, {128, 192, 3}},
       {1, 192, 20}},
      {"conv2d",
       {{"batch", 1},
        {"in_channels", 3},
        {"out_channels", 64},
        {"height", 448},
        {"width", 448},
        {"kernel_h", 7},
        {"kernel_w", 7},
        {"stride_h", 2},
        {"stride_w", 2},
        {"pad_h", 3},
        {"pad_w", 3}},
       DType::F32,
       {{1, 3, 448, 448}, {64, 3, 7, 7}},
       {1, 64, 224, 224}},
      {"conv_transpose2d",
       {{"batch", 1},
        {"in_channels", 64},
        {"out_channels", 3},
        {"height", 224},
        {"width", 224},
        {"kernel_h", 7},
        {"kernel_w", 7},
        {"stride_h", 2},
        {"stride_w", 2},
        {"pad_h", 3},
        {"pad_w", 3}},
       DType::F32,
       {{1, 64, 224, 224}, {64, 3, 7, 7}},
       {1, 3, 447, 447}},
      {"conv3d", deep, DType::F32, {{1, 3, 16, 112, 112}, {64, 3, 7, 7, 7}}, {1, 64, 8, 56, 56}},
      {"conv_transpose3d",
       undeep,
       DType::F32,
       {{1, 64, 8, 56, 56}, {64, 3, 7, 7, 7}},
       {1, 3, 15, 111, 111}},
      {"group_conv2d",
       {{"batch", 1},
        {"in_channels", 64},
        {"out_channels", 192},
        {"height", 112},
        {"width", 112},
        {"kernel_h", 3},
        {"kernel_w", 3},
        {"pad_h", 1},
        {"pad_w", 1},
        {"groups", 4}},
       DType::F32,
       {{1, 64, 112, 112}, {192, 16, 3, 3}},
       {1, 192, 112, 112}},
      {"depthwise_conv2d",
       {{"batch", 1},
        {"in_channels", 32},
        {"out_channels", 64},
        {"height", 112},
        {"width", 112},
        {"kernel_h", 3},
        {"kernel_w", 3},
        {"pad_h", 1},
        {"pad_w", 1},
        {"groups", 32},
        {"channel_multiplier", 2}},
       DType::F32,
       {{1, 32, 112, 112}, {64, 1, 3, 3}},
       {1, 64, 112, 112}},
      {"dilated_conv2d",
       {{"batch", 1},
        {"in_channels", 8},
        {"out_channels", 4},
        {"height", 56},
        {"width", 56},
        {"kernel_h", 3},
        {"kernel_w", 3},
        {"dilation_h", 2},
        {"dilation_w", 2}},
       DType::F32,
       {{1, 8, 56, 56}, {4, 8, 3, 3}},
       {1, 4, 52, 52}},
      {"block_circulant_matrix",
       {{"rows", 1024}, {"cols", 256}, {"block", 8}},
       DType::F32,
       {{1024, 256}},
       {1024, 256}},
      {"shift_conv2d",
       {{"batch", 1},
        {"height", 128},
        {"width", 128},
        {"channels", 64},
        {"kernel_h", 3},
        {"kernel_w", 3},
        {"pad_h", 1},
        {"pad_w", 1}},
       DType::F32,
       {{1, 128, 128, 64}, {64}},
       {1, 128, 128, 64}},
      {"mttkrp",
       {{"i", 128}, {"j", 64}, {"k", 256}, {"l", 512}},
       DType::I8,
       {{128, 256, 512}, {512, 64}, {256, 64}},
       {128, 64}},
      {"gemm",
       {{"batch", 1}, {"m", 32}, {"n", 16}, {"k", 8}},
       DType::I8,
       {{32, 8}, {8, 16}},
       {32, 16}},
      {"depthwise_conv2d",
       {{"batch", 1},
        {"in_channels", 128},
        {"out_channels", 128},
        {"height", 32},
        {"width", 256},
        {"kernel_h", 3},
        {"kernel_w", 3},
        {"groups", 128}},
       DType::I8,
       {{1, 128, 32, 256}, {128, 1, 3, 3}},
       {1, 128, 30, 254}},
      {"ttm", {{"i", 2}, {"j", 3}, {"k", 4}, {"l", 5}}, DType::I8, {{2, 3, 5}, {5, 4}}, {2, 3, 4}},
  };
  for (const Workload& c : cases) {
    const auto call = workload_call(c.name, c.params, c.dtype);
    ASSERT_TRUE(call) << to_string(call.error());
    ASSERT_EQ(call->inputs.size(), c.inputs.size()) << c.name;
    for (size_t i = 0; i < c.inputs.size(); ++i)
      EXPECT_EQ(call->inputs[i].shape, c.inputs[i]) << c.name;
    const auto types = infer(*call);
    ASSERT_TRUE(types) << to_string(types.error());
    EXPECT_EQ((*types)[0].shape, c.output) << c.name;
    EXPECT_EQ((*types)[0].dtype, is_float(c.dtype) ? c.dtype : DType::I32) << c.name;
    EXPECT_TRUE(op_func(*call)) << c.name;
  }
}

TEST(Workload, ProblemsAreNamed) {
  const auto problem = [](const char* name, const std::map<std::string, int64_t>& params) {
    const auto call = workload_call(name, params);
    return call ? "accepted" : to_string(call.error());
  };
  EXPECT_THAT(problem("gemm", {{"m", 2}, {"n", 3}}), HasSubstr("gemm: the parameter k is missing"));
  EXPECT_THAT(problem("gemm", {{"m", 0}, {"n", 3}, {"k", 1}}), HasSubstr("m is 0"));
  EXPECT_THAT(problem("conv9d", {}), HasSubstr("conv9d is not known"));
  EXPECT_THAT(problem("group_conv2d", {{"batch", 1},
                                       {"in_channels", 5},
                                       {"out_channels", 4},
                                       {"height", 4},
                                       {"width", 4},
                                       {"kernel_h", 1},
                                       {"kernel_w", 1},
                                       {"groups", 2}}),
              HasSubstr("do not form 2 groups"));
}

}  // namespace
}  // namespace tilewright::tensor
