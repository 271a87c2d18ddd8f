#include "tilewright/codegen/dpu/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/dpu/testing/networks.h"

namespace tilewright::dpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// One channel, one row.
std::vector<int8_t> run_row(Network network, std::vector<int8_t> row) {
  return interpret(network, {{network.inputs[0], std::move(row)}}).at(network.outputs[0]);
}

Network one_conv(int8_t weight, int32_t bias, int shift, Activation act, int width) {
  NetBuilder net;
  Network network = net.finish({net.conv(net.input(1, 1, width), 1, square(1), act)});
  auto& conv = std::get<ConvLayer>(network.layers[0].op);
  conv.weights = {weight};
  conv.bias = {bias};
  conv.shift = shift;
  return network;
}

TEST(DpuInterpret, RoundsTiesUp) {
  // 3/2, 1/2, -1/2, -3/2
  EXPECT_THAT(run_row(one_conv(1, 0, 1, kNone, 4), {3, 1, -1, -3}), ElementsAre(2, 1, 0, -1));
  EXPECT_THAT(run_row(one_conv(2, 1, -2, kNone, 3), {3, 100, -100}), ElementsAre(28, 127, -128));
}

TEST(DpuInterpret, ActivatesBeforeRounding) {
  // -10 * 26/256 = -1.016; -44 * 26/256 / 2 = -2.234
  EXPECT_THAT(run_row(one_conv(1, 0, 0, kLeaky, 2), {-10, 7}), ElementsAre(-1, 7));
  EXPECT_THAT(run_row(one_conv(1, 0, 1, kLeaky, 1), {-44}), ElementsAre(-2));
  EXPECT_THAT(run_row(one_conv(1, 0, 0, kRelu, 2), {-10, 7}), ElementsAre(0, 7));
  Network six = one_conv(1, 0, 0, kRelu6, 3);
  six.values[1].fix_point = 3;
  EXPECT_THAT(run_row(six, {-10, 47, 90}), ElementsAre(0, 47, 48));
}

TEST(DpuInterpret, AddsWithGuardBits) {
  NetBuilder net;
  const ValueId x = net.input(1, 1, 3);
  Network network = net.finish({net.add(x, x)});
  auto& add = std::get<EltwiseLayer>(network.layers[0].op);
  add.shift_read[1] = 3;
  // floor(4*a) + floor(4*a / 8), by 4: 5 -> (20 + 2)/4 = 5.5; -5 -> (-20 - 3)/4 = -5.75
  EXPECT_THAT(run_row(network, {5, -5, 127}), ElementsAre(6, -6, 127));
}

TEST(DpuInterpret, ConvolvesWithPadsStrideAndDilation) {
  NetBuilder net;
  Window w = square(1);
  w.kernel_w = 3;
  w.pad_left = 1;
  w.dilation_w = 2;
  Network network = net.finish({net.conv(net.input(1, 1, 6), 1, w, kNone)});
  std::get<ConvLayer>(network.layers[0].op).weights = {1, 10, 100};
  // columns x-1, x+1, x+3; the first is outside for x = 0
  std::get<ConvLayer>(network.layers[0].op).shift = 2;
  EXPECT_THAT(run_row(network, {1, 2, 3, 1, 0, 0}), ElementsAre(30, 8, 3));
}

TEST(DpuInterpret, TransposedConvolutionSpreads) {
  NetBuilder net;
  Window w = square(1);
  w.kernel_w = 3;
  w.stride_w = 2;
  w.pad_left = 1;
  Network network = net.finish({net.deconv(net.input(1, 1, 2), 1, w)});
  std::get<DeconvLayer>(network.layers[0].op).weights = {1, 2, 3};
  // 5 at 0, 1, 2 and 7 at 2, 3, 4, the first cut off
  EXPECT_THAT(run_row(network, {5, 7}), ElementsAre(10, 22, 14, 21));
}

TEST(DpuNetwork, ChecksShapes) {
  NetBuilder net;
  Network network = net.finish({net.conv(net.input(3, 8, 8), 16, square(3, 2, 1))});
  EXPECT_TRUE(check(network));
  network.values[1].height = 5;
  std::get<ConvLayer>(network.layers[0].op).bias.pop_back();
  const Status status = check(network);
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("makes 16x4x4, but conv1 is 16x5x4"));
  EXPECT_THAT(to_string(status.error()), HasSubstr("has 15 biases, not 16"));
}

TEST(DpuNetwork, ChecksSlices) {
  NetBuilder net;
  const ValueId x = net.input(20, 8, 8);
  const Network network = net.finish({net.slice(x, {8, 4, 0}, {"", 13, 5, 8})});
  const Status status = check(network);
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("takes channels 8 to 21 of 20"));
  EXPECT_THAT(to_string(status.error()), HasSubstr("takes rows 4 to 9 of 8"));
}

TEST(DpuNetwork, ChecksOrder) {
  NetBuilder net;
  const ValueId x = net.input(3, 8, 8);
  Network network = net.finish({net.conv(net.conv(x, 4, square(1)), 4, square(1))});
  std::swap(network.layers[0], network.layers[1]);
  const Status status = check(network);
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("reads value 1, which nothing before it makes"));
}

TEST(DpuSupports, NamesEveryLimitWithNumbers) {
  NetBuilder net;
  Network network = net.finish({net.conv(net.input(5000, 40, 40), 1, square(17, 9, 0))});
  const Status status = supports(Config{}, network, network.layers[0]);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(status.error().why, HasSubstr("kernel_h 17 is not 1 to 16"));
  EXPECT_THAT(status.error().why, HasSubstr("stride_w 9 is not 1 to 8"));
  EXPECT_THAT(status.error().why, HasSubstr("channels 5000 is not 1 to 4096"));
}

// A window in the padding alone has no row to begin with.
TEST(DpuSupports, RefusesPaddingLargerThanTheKernel) {
  for (int kernel = 1; kernel <= 5; ++kernel)
    for (int pad = 0; pad <= 7; ++pad)
      for (int side = 0; side < 4; ++side) {
        Window w = square(kernel);
        int* const sides[] = {&w.pad_top, &w.pad_left, &w.pad_bottom, &w.pad_right};
        *sides[side] = pad;
        NetBuilder net;
        const ValueId x = net.input(16, 9, 9);
        const Network network = net.finish({net.conv(x, 16, w), net.max_pool(x, w)});
        for (const Layer& layer : network.layers) {
          const Status status = supports(Config{}, network, layer);
          ASSERT_EQ(status.has_value(), pad < kernel) << kernel << " " << pad;
          if (status) continue;
          EXPECT_THAT(status.error().why, HasSubstr(std::to_string(pad) + " is not 0 to " +
                                                    std::to_string(kernel - 1)));
        }
      }
}

TEST(DpuSupports, BoundsSums) {
  NetBuilder net;
  Network network = net.finish({net.conv(net.input(1, 1, 1), 1, square(1))});
  auto& conv = std::get<ConvLayer>(network.layers[0].op);
  conv.weights = {-128};
  conv.bias = {(1 << 30) - 128 * 128 - 1};
  EXPECT_TRUE(supports(Config{}, network, network.layers[0]));
  ++conv.bias[0];
  const Status status = supports(Config{}, network, network.layers[0]);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().why, HasSubstr("reach 1073741824"));
}

}  // namespace
}  // namespace tilewright::dpu
