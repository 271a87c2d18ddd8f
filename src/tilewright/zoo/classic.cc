// Plain stacks of convolutions and fully connected layers.
#include "tilewright/zoo/net.h"

namespace tilewright::zoo {
namespace {

ValueId lrn(Net& net, ValueId x) {
  return net.node("LRN", {x}, {{"size", int64_t{5}}, {"alpha", 1e-4}, {"beta", 0.75}});
}

WindowAttrs pool_ceil(int64_t kernel, int64_t stride) {
  WindowAttrs w = window(kernel, stride);
  w.ceil = true;
  return w;
}

WindowAttrs grouped(int64_t kernel, int64_t pad, int64_t groups) {
  WindowAttrs w = window(kernel, 1, pad);
  w.groups = groups;
  return w;
}

}  // namespace

// source: Simonyan, Zisserman (2014), configurations D and E.
graph::Graph vgg(const Options& options, const std::string& name, const Ints& depths) {
  Net net(name, options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  const int64_t channels[] = {64, 128, 256, 512, 512};
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    for (int64_t i = 0; i < depths[stage]; ++i)
      x = net.relu(net.conv(x, channels[stage], window(3, 1, 1)));
    x = net.max_pool(x, window(2, 2));
  }
  x = net.relu(net.dense(net.flatten(x), 4096));
  x = net.relu(net.dense(x, 4096));
  return net.finish({net.softmax(net.dense(x, 1000))});
}

// source: Krizhevsky et al. (2012), as released with Caffe.
graph::Graph alexnet(const Options& options) {
  Net net("alexnet", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = net.max_pool(lrn(net, net.relu(net.conv(x, 96, window(11, 4)))), window(3, 2));
  x = net.max_pool(lrn(net, net.relu(net.conv(x, 256, grouped(5, 2, 2)))), window(3, 2));
  x = net.relu(net.conv(x, 384, window(3, 1, 1)));
  x = net.relu(net.conv(x, 384, grouped(3, 1, 2)));
  x = net.max_pool(net.relu(net.conv(x, 256, grouped(3, 1, 2))), window(3, 2));
  x = net.relu(net.dense(net.flatten(x), 4096));
  x = net.relu(net.dense(x, 4096));
  return net.finish({net.softmax(net.dense(x, 1000))});
}

// source: Sermanet et al. (2013), fast model; sizes as in the FlexTensor repository (192x192
// input).
graph::Graph overfeat(const Options& options) {
  Net net("overfeat", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = net.max_pool(net.relu(net.conv(x, 96, window(11, 4, 5))), window(2, 2));
  x = net.max_pool(net.relu(net.conv(x, 256, window(5, 1, 2))), window(2, 2));
  x = net.relu(net.conv(x, 512, window(3, 1, 1)));
  x = net.relu(net.conv(x, 1024, window(3, 1, 1)));
  x = net.max_pool(net.relu(net.conv(x, 1024, window(3, 1, 1))), window(2, 2));
  x = net.relu(net.dense(net.flatten(x), 3072));
  x = net.relu(net.dense(x, 4096));
  return net.finish({net.softmax(net.dense(x, 1000))});
}

// source: LeCun et al. (1998); tanh and average pooling.
graph::Graph lenet5(const Options& options) {
  Net net("lenet5", options);
  ValueId x = net.input("image", {options.batch, 1, options.size, options.size});
  x = net.avg_pool(net.node("Tanh", {net.conv(x, 6, window(5))}), window(2, 2));
  x = net.avg_pool(net.node("Tanh", {net.conv(x, 16, window(5))}), window(2, 2));
  x = net.node("Tanh", {net.dense(net.flatten(x), 120)});
  x = net.node("Tanh", {net.dense(x, 84)});
  return net.finish({net.softmax(net.dense(x, 10))});
}

// source: Mnih et al., Nature (2015); 18 actions.
graph::Graph dqn(const Options& options) {
  Net net("dqn", options);
  ValueId x = net.input("frames", {options.batch, 4, options.size, options.size});
  x = net.relu(net.conv(x, 32, window(8, 4)));
  x = net.relu(net.conv(x, 64, window(4, 2)));
  x = net.relu(net.conv(x, 64, window(3)));
  x = net.relu(net.dense(net.flatten(x), 512));
  return net.finish({net.dense(x, 18)});
}

// source: Iandola et al. (2016), release 1.1.
graph::Graph squeezenet(const Options& options) {
  Net net("squeezenet1.1", options);
  auto fire = [&](ValueId x, int64_t squeeze, int64_t expand) {
    x = net.relu(net.conv(x, squeeze, window(1)));
    return net.concat(
        {net.relu(net.conv(x, expand, window(1))), net.relu(net.conv(x, expand, window(3, 1, 1)))});
  };
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = net.max_pool(net.relu(net.conv(x, 64, window(3, 2))), pool_ceil(3, 2));
  x = fire(fire(x, 16, 64), 16, 64);
  x = net.max_pool(x, pool_ceil(3, 2));
  x = fire(fire(x, 32, 128), 32, 128);
  x = net.max_pool(x, pool_ceil(3, 2));
  x = fire(fire(fire(fire(x, 48, 192), 48, 192), 64, 256), 64, 256);
  x = net.relu(net.conv(net.node("Dropout", {x}), 1000, window(1)));
  return net.finish({net.softmax(net.flatten(net.global_pool(x)))});
}

}  // namespace tilewright::zoo
