// Detection and image generation.
#include "tilewright/zoo/net.h"

namespace tilewright::zoo {
namespace {

ValueId conv_bn_leaky(Net& net, ValueId x, int64_t out, int64_t kernel, int64_t stride = 1) {
  return net.leaky(net.batch_norm(net.conv(x, out, window(kernel, stride, kernel / 2), false)));
}

ValueId upsample(Net& net, ValueId x) {
  Array scales(DType::F32, {4});
  for (int i = 0; i < 4; ++i) scales.set(i, i < 2 ? 1 : 2);
  return net.node("Resize", {x, -1, net.constant(std::move(scales))},
                  {{"mode", std::string("nearest")},
                   {"nearest_mode", std::string("floor")},
                   {"coordinate_transformation_mode", std::string("asymmetric")}});
}

/// Channels of a scale's output: three boxes with place, size, confidence and classes.
constexpr int64_t head_channels(int64_t classes) { return 3 * (5 + classes); }
constexpr int64_t kCocoHead = head_channels(80);

// source: Redmon, Farhadi (2018); raw outputs of the three scales.
graph::Graph yolov3_of(const Options& options, const std::string& name, int64_t classes) {
  Net net(name, options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = conv_bn_leaky(net, x, 32, 3);
  std::vector<ValueId> stages;
  const int64_t depths[] = {1, 2, 8, 8, 4};
  for (int stage = 0; stage < 5; ++stage) {
    const int64_t channels = int64_t{64} << stage;
    x = conv_bn_leaky(net, x, channels, 3, 2);
    for (int64_t i = 0; i < depths[stage]; ++i) {
      const ValueId y = conv_bn_leaky(net, x, channels / 2, 1);
      const ValueId branch = net.batch_norm(net.conv(y, channels, window(3, 1, 1), false), 0.2);
      x = net.add(x, net.leaky(branch));
    }
    stages.push_back(x);
  }
  std::vector<ValueId> outputs;
  for (int scale = 0; scale < 3; ++scale) {
    const int64_t channels = int64_t{512} >> scale;
    if (scale > 0)
      x = net.concat({upsample(net, conv_bn_leaky(net, x, channels, 1)), stages[4 - scale]});
    for (int i = 0; i < 2; ++i)
      x = conv_bn_leaky(net, conv_bn_leaky(net, x, channels, 1), 2 * channels, 3);
    x = conv_bn_leaky(net, x, channels, 1);
    outputs.push_back(
        net.conv(conv_bn_leaky(net, x, 2 * channels, 3), head_channels(classes), window(1)));
  }
  return net.finish(outputs);
}

}  // namespace

// source: Redmon et al. (2016), figure 3.
graph::Graph yolov1(const Options& options) {
  Net net("yolov1", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  auto conv = [&](ValueId in, int64_t out, int64_t kernel, int64_t stride = 1) {
    return net.leaky(net.conv(in, out, window(kernel, stride, kernel / 2)));
  };
  auto pool = [&](ValueId in) { return net.max_pool(in, window(2, 2)); };
  x = pool(conv(x, 64, 7, 2));
  x = pool(conv(x, 192, 3));
  x = pool(conv(conv(conv(conv(x, 128, 1), 256, 3), 256, 1), 512, 3));
  for (int i = 0; i < 4; ++i) x = conv(conv(x, 256, 1), 512, 3);
  x = pool(conv(conv(x, 512, 1), 1024, 3));
  for (int i = 0; i < 2; ++i) x = conv(conv(x, 512, 1), 1024, 3);
  x = conv(conv(x, 1024, 3), 1024, 3, 2);
  x = conv(conv(x, 1024, 3), 1024, 3);
  x = net.leaky(net.dense(net.flatten(x), 4096));
  return net.finish({net.dense(x, 7 * 7 * 30)});
}

graph::Graph yolov3(const Options& options) { return yolov3_of(options, "yolov3", 80); }
graph::Graph yolov3_voc(const Options& options) { return yolov3_of(options, "yolov3_voc", 20); }

// source: Darknet's yolov3-tiny configuration.
graph::Graph yolov3_tiny(const Options& options) {
  Net net("yolov3_tiny", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  ValueId middle = -1;
  for (int64_t channels = 16; channels <= 512; channels *= 2) {
    x = conv_bn_leaky(net, x, channels, 3);
    if (channels == 256) middle = x;
    x = net.max_pool(x, channels == 512 ? same(2, 1) : window(2, 2));
  }
  x = conv_bn_leaky(net, conv_bn_leaky(net, x, 1024, 3), 256, 1);
  const ValueId coarse = net.conv(conv_bn_leaky(net, x, 512, 3), kCocoHead, window(1));
  x = net.concat({upsample(net, conv_bn_leaky(net, x, 128, 1)), middle});
  const ValueId fine = net.conv(conv_bn_leaky(net, x, 256, 3), kCocoHead, window(1));
  return net.finish({coarse, fine});
}

// source: Radford et al. (2015), figure 1; 4x4 kernels as in common releases.
graph::Graph dcgan(const Options& options) {
  Net net("dcgan", options);
  ValueId x = net.input("z", {options.batch, 100, 1, 1});
  const int64_t first = options.size / 16;
  x = net.relu(net.batch_norm(net.conv_transpose(x, 1024, first, 1, 0, false)));
  for (int64_t channels : {512, 256, 128})
    x = net.relu(net.batch_norm(net.conv_transpose(x, channels, 4, 2, 1, false)));
  return net.finish({net.node("Tanh", {net.conv_transpose(x, 3, 4, 2, 1)})});
}

// source: Ronneberger et al. (2015), figure 1: valid convolutions, cropped skips, one input
// channel.
graph::Graph unet(const Options& options) {
  Net net("unet", options);
  ValueId x = net.input("image", {options.batch, 1, options.size, options.size});
  auto twice = [&](ValueId in, int64_t channels) {
    const ValueId y = net.relu(net.conv(in, channels, window(3)));
    return net.relu(net.conv(y, channels, window(3)));
  };
  std::vector<ValueId> skips;
  for (int64_t channels = 64; channels <= 512; channels *= 2) {
    skips.push_back(twice(x, channels));
    x = net.max_pool(skips.back(), window(2, 2));
  }
  x = twice(x, 1024);
  for (int64_t channels = 512; channels >= 64; channels /= 2) {
    x = net.conv_transpose(x, channels, 2, 2, 0);
    const ValueId skip = skips.back();
    skips.pop_back();
    const int64_t size = net.shape(x)[2], start = (net.shape(skip)[2] - size) / 2;
    const ValueId crop = net.node(
        "Slice",
        {skip, net.ints({start, start}), net.ints({start + size, start + size}), net.ints({2, 3})});
    x = twice(net.concat({crop, x}), channels);
  }
  return net.finish({net.conv(x, 2, window(1))});
}

// source: Yan et al., Shift-Net (2018); the transposed convolutions of the FlexTensor repository.
// The shift of channels by one pixel is a depthwise convolution with one-hot kernels.
graph::Graph shift_net(const Options& options) {
  Net net("shift_net", options);
  ValueId x = net.input("image", {options.batch, 3, options.size, options.size});
  std::vector<ValueId> skips;
  for (int64_t channels : {64, 128, 256, 512, 512, 512, 512, 512}) {
    if (!skips.empty()) x = net.leaky(x, 0.2);
    x = net.conv(x, channels, window(4, 2, 1));
    if (!skips.empty() && net.shape(x)[2] > 1) x = net.batch_norm(x);
    skips.push_back(x);
  }
  skips.pop_back();
  for (int64_t channels : {512, 512, 512, 512, 256, 128, 64}) {
    x = net.batch_norm(net.conv_transpose(net.relu(x), channels, 4, 2, 1));
    const ValueId skip = skips.back();
    skips.pop_back();
    std::vector<ValueId> parts = {x, skip};
    if (net.shape(x)[1] == 256 && net.shape(skip)[1] == 256) {
      Array kernels(DType::F32, {256, 1, 3, 3});
      for (int64_t c = 0; c < 256; ++c) kernels.set(c * 9 + c % 9, 1);
      WindowAttrs w = window(3, 1, 1);
      w.groups = 256;
      tensor::AttrValue group = int64_t{256};
      parts.push_back(net.node("Conv", {x, net.constant(std::move(kernels))},
                               {{"group", group}, {"pads", w.pads}}));
    }
    x = net.concat(std::move(parts));
  }
  return net.finish({net.node("Tanh", {net.conv_transpose(net.relu(x), 3, 4, 2, 1)})});
}

}  // namespace tilewright::zoo
