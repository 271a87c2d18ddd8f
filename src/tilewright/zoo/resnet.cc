// ResNet v1. source: He et al., Deep Residual Learning (2015); the slim variant: TensorFlow-slim.
#include <algorithm>
#include <cmath>

#include "tilewright/zoo/net.h"

namespace tilewright::zoo {
namespace {

/// Residual branches end in a batch norm of small gain, as trained networks have: the sum over a
/// stage of `depth` blocks then keeps its variance even at 152 layers.
double branch_gain(int64_t depth) {
  return std::min(0.3, 0.8 / std::sqrt(static_cast<double>(depth)));
}

ValueId shortcut(Net& net, ValueId x, int64_t channels, int64_t stride, int variant) {
  if (net.shape(x)[1] == channels) {
    return stride == 1 ? x : net.max_pool(x, window(1, stride));
  }
  const WindowAttrs w = variant == kSlim ? same(1, stride) : window(1, stride);
  return net.batch_norm(net.conv(x, channels, w, false));
}

ValueId basic_block(Net& net, ValueId x, int64_t channels, int64_t stride, double gain) {
  ValueId y = net.conv_bn_relu(x, channels, window(3, stride, 1));
  y = net.batch_norm(net.conv(y, channels, window(3, 1, 1), false), gain);
  return net.relu(net.add(y, shortcut(net, x, channels, stride, kCaffe)));
}

ValueId bottleneck_block(Net& net, ValueId x, int64_t channels, int64_t stride, int variant,
                         double gain) {
  const int64_t first = variant == kCaffe ? stride : 1;
  const int64_t second = variant == kCaffe ? 1 : stride;
  ValueId y = net.conv_bn_relu(x, channels / 4, window(1, first));
  y = net.conv_bn_relu(y, channels / 4, variant == kSlim ? same(3, second) : window(3, second, 1));
  y = net.batch_norm(net.conv(y, channels, window(1), false), gain);
  return net.relu(net.add(y, shortcut(net, x, channels, stride, variant)));
}

}  // namespace

graph::Graph resnet(const Options& options, const std::string& name, const Ints& depths,
                    bool bottleneck, int variant) {
  Net net(name, options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = net.conv_bn_relu(x, 64, variant == kSlim ? same(7, 2) : window(7, 2, 3));
  WindowAttrs pool = variant == kTorch ? window(3, 2, 1) : window(3, 2);
  if (variant == kSlim) pool = same(3, 2);
  pool.ceil = variant == kCaffe;
  x = net.max_pool(x, pool);
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    const int64_t channels = (bottleneck ? 256 : 64) << stage;
    const double gain = branch_gain(depths[stage]);
    for (int64_t block = 0; block < depths[stage]; ++block) {
      // TF-slim strides in the last block of a stage, the others in the first.
      const bool strided =
          variant == kSlim ? block + 1 == depths[stage] && stage < 3 : block == 0 && stage > 0;
      const int64_t stride = strided ? 2 : 1;
      x = bottleneck ? bottleneck_block(net, x, channels, stride, variant, gain)
                     : basic_block(net, x, channels, stride, gain);
    }
  }
  return net.finish({net.softmax(net.dense(net.flatten(net.global_pool(x)), 1000))});
}

}  // namespace tilewright::zoo
