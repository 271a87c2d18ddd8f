// Networks of depthwise convolutions, and DenseNet.
#include <cmath>

#include "tilewright/zoo/net.h"

namespace tilewright::zoo {
namespace {

WindowAttrs depthwise(Net& net, ValueId x, int64_t kernel, int64_t stride, int64_t pad) {
  WindowAttrs w = window(kernel, stride, pad);
  w.groups = net.shape(x)[1];
  return w;
}

ValueId relu6(Net& net, ValueId x) { return net.node("Clip", {x, net.scalar(0), net.scalar(6)}); }

ValueId conv_bn_relu6(Net& net, ValueId x, int64_t out, const WindowAttrs& w) {
  return relu6(net, net.batch_norm(net.conv(x, out, w, false)));
}

/// He-normal weights double the variance of an input that no ReLU has halved; this undoes it.
const double kLinear = std::sqrt(0.5);

/// 3x3 depthwise and 1x1, each without activation in between; Xception's separable convolution.
ValueId separable(Net& net, ValueId x, int64_t out, double gain = 1.0) {
  x = net.conv(x, net.shape(x)[1], depthwise(net, x, 3, 1, 1), false);
  return net.batch_norm(net.conv(x, out, window(1), false), gain * kLinear);
}

}  // namespace

// source: Howard et al. (2017), width 1.0.
graph::Graph mobilenet_v1(const Options& options) {
  Net net("mobilenet_v1", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = conv_bn_relu6(net, x, 32, window(3, 2, 1));
  const int64_t layers[][2] = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                               {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                               {512, 1}, {1024, 2}, {1024, 1}};
  for (const auto& [channels, stride] : layers) {
    x = conv_bn_relu6(net, x, net.shape(x)[1], depthwise(net, x, 3, stride, 1));
    x = conv_bn_relu6(net, x, channels, window(1));
  }
  return net.finish({net.softmax(net.dense(net.flatten(net.global_pool(x)), 1000))});
}

// source: Sandler et al. (2018), table 2, width 1.0.
graph::Graph mobilenet_v2(const Options& options) {
  Net net("mobilenet_v2", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = conv_bn_relu6(net, x, 32, window(3, 2, 1));
  const int64_t rows[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  for (const auto& row : rows) {
    for (int64_t i = 0; i < row[2]; ++i) {
      const int64_t stride = i == 0 ? row[3] : 1, in = net.shape(x)[1];
      ValueId y = row[0] == 1 ? x : conv_bn_relu6(net, x, in * row[0], window(1));
      y = conv_bn_relu6(net, y, net.shape(y)[1], depthwise(net, y, 3, stride, 1));
      const bool residual = stride == 1 && in == row[1];
      y = net.batch_norm(net.conv(y, row[1], window(1), false), residual ? 0.5 : 1.0);
      x = residual ? net.add(x, y) : y;
    }
  }
  x = conv_bn_relu6(net, x, 1280, window(1));
  return net.finish({net.softmax(net.dense(net.flatten(net.global_pool(x)), 1000))});
}

// source: Chollet (2017), figure 5.
graph::Graph xception(const Options& options) {
  Net net("xception", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = net.conv_bn_relu(x, 32, window(3, 2));
  x = net.conv_bn_relu(x, 64, window(3));
  auto reduce = [&](ValueId in, int64_t first, int64_t out, bool activate) {
    // Both branches bring half of the sum's variance.
    const ValueId side = net.batch_norm(net.conv(in, out, window(1, 2), false), 0.5);
    ValueId y = separable(net, activate ? net.relu(in) : in, first);
    y = separable(net, net.relu(y), out, kLinear);
    return net.add(net.max_pool(y, window(3, 2, 1)), side);
  };
  x = reduce(x, 128, 128, false);
  x = reduce(x, 256, 256, true);
  x = reduce(x, 728, 728, true);
  for (int i = 0; i < 8; ++i) {
    ValueId y = separable(net, net.relu(x), 728);
    y = separable(net, net.relu(y), 728);
    x = net.add(x, separable(net, net.relu(y), 728, 0.3));
  }
  x = reduce(x, 728, 1024, true);
  x = net.relu(separable(net, x, 1536));
  x = net.relu(separable(net, x, 2048));
  return net.finish({net.softmax(net.dense(net.flatten(net.global_pool(x)), 1000))});
}

// source: Huang et al. (2017), growth 32, compression 0.5.
graph::Graph densenet121(const Options& options) {
  Net net("densenet121", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = net.max_pool(net.conv_bn_relu(x, 64, window(7, 2, 3)), window(3, 2, 1));
  const int64_t depths[] = {6, 12, 24, 16};
  for (int stage = 0; stage < 4; ++stage) {
    for (int64_t i = 0; i < depths[stage]; ++i) {
      ValueId y = net.conv(net.relu(net.batch_norm(x)), 128, window(1), false);
      y = net.conv(net.relu(net.batch_norm(y)), 32, window(3, 1, 1), false);
      x = net.concat({x, y});
    }
    if (stage == 3) break;
    x = net.conv(net.relu(net.batch_norm(x)), net.shape(x)[1] / 2, window(1), false);
    if (net.shape(x)[2] > 1) x = net.avg_pool(x, window(2, 2));
  }
  x = net.flatten(net.global_pool(net.relu(net.batch_norm(x))));
  return net.finish({net.softmax(net.dense(x, 1000))});
}

}  // namespace tilewright::zoo
