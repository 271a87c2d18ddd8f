#include "tilewright/codegen/dpu/testing/networks.h"

#include "tilewright/base/check.h"

namespace tilewright::dpu {
namespace {

enum class Variant { Torch, Caffe, Slim };

/// Where blocks change the number of channels, or halve the map, the shortcut does too.
ValueId shortcut(NetBuilder& net, ValueId x, int64_t channels, int stride) {
  if (net.value(x).channels == channels)
    return stride == 1 ? x : net.max_pool(x, square(1, stride));
  return net.conv(x, channels, square(1, stride), kNone);
}

ValueId residual_block(NetBuilder& net, ValueId x, int64_t channels, int stride, bool bottleneck,
                       Variant variant) {
  ValueId y;
  if (bottleneck) {
    const int first = variant == Variant::Caffe ? stride : 1;
    const int second = variant == Variant::Caffe ? 1 : stride;
    y = net.conv(x, channels / 4, square(1, first));
    const Window middle = variant == Variant::Slim ? same_window(3, second, net.value(y).height)
                                                   : square(3, second, 1);
    y = net.conv(net.conv(y, channels / 4, middle), channels, square(1), kNone);
  } else {
    y = net.conv(net.conv(x, channels, square(3, stride, 1)), channels, square(3, 1, 1), kNone);
  }
  return net.add(y, shortcut(net, x, channels, stride), kRelu);
}

Network resnet(const std::vector<int>& depths, bool bottleneck, Variant variant) {
  NetBuilder net;
  ValueId x = net.input(3, 224, 224);
  x = net.conv(x, 64, variant == Variant::Slim ? same_window(7, 2, 224) : square(7, 2, 3));
  if (variant == Variant::Torch) x = net.max_pool(x, square(3, 2, 1));
  if (variant == Variant::Caffe) x = net.max_pool(x, ceil_window(3, 2, 112));
  if (variant == Variant::Slim) x = net.max_pool(x, same_window(3, 2, 112));
  for (size_t stage = 0; stage < depths.size(); ++stage)
    for (int block = 0; block < depths[stage]; ++block) {
      // TensorFlow's slim models stride in the last block of a stage.
      const bool strided = variant == Variant::Slim ? block + 1 == depths[stage] && stage < 3
                                                    : block == 0 && stage > 0;
      x = residual_block(net, x, int64_t{bottleneck ? 256 : 64} << stage, strided ? 2 : 1,
                         bottleneck, variant);
    }
  return net.finish({x});
}

Network vgg16() {
  NetBuilder net;
  ValueId x = net.input(3, 224, 224);
  const int depths[] = {2, 2, 3, 3, 3};
  const int64_t channels[] = {64, 128, 256, 512, 512};
  for (int stage = 0; stage < 5; ++stage) {
    for (int i = 0; i < depths[stage]; ++i) x = net.conv(x, channels[stage], square(3, 1, 1));
    x = net.max_pool(x, square(2, 2));
  }
  x = net.conv(net.conv(x, 4096, square(7)), 4096, square(1));
  return net.finish({net.conv(x, 1000, square(1), kNone)});
}

Network squeezenet() {
  NetBuilder net;
  const auto fire = [&](ValueId x, int64_t squeeze, int64_t expand) {
    x = net.conv(x, squeeze, square(1));
    return net.concat({net.conv(x, expand, square(1)), net.conv(x, expand, square(3, 1, 1))});
  };
  const auto pool = [&](ValueId x) {
    return net.max_pool(x, ceil_window(3, 2, net.value(x).height));
  };
  ValueId x = pool(net.conv(net.input(3, 227, 227), 64, square(3, 2)));
  x = pool(fire(fire(x, 16, 64), 16, 64));
  x = pool(fire(fire(x, 32, 128), 32, 128));
  x = fire(fire(fire(fire(x, 48, 192), 48, 192), 64, 256), 64, 256);
  return net.finish({net.conv(x, 1000, square(1))});
}

Network inception_v1() {
  NetBuilder net;
  const auto conv = [&](ValueId x, int64_t out, int kernel, int stride = 1) {
    return net.conv(x, out, square(kernel, stride, kernel / 2));
  };
  const auto pool = [&](ValueId x) {
    return net.max_pool(x, ceil_window(3, 2, net.value(x).height));
  };
  const auto module = [&](ValueId x, const std::vector<int64_t>& c) {
    // The pool first: it can run beside the convolutions of the other branches.
    const ValueId pooled = net.max_pool(x, square(3, 1, 1));
    const ValueId a = conv(x, c[0], 1);
    const ValueId b = conv(conv(x, c[1], 1), c[2], 3);
    const ValueId d = conv(conv(x, c[3], 1), c[4], 5);
    return net.concat({a, b, d, conv(pooled, c[5], 1)});
  };
  ValueId x = pool(conv(net.input(3, 224, 224), 64, 7, 2));
  x = pool(conv(conv(x, 64, 1), 192, 3));
  x = module(module(x, {64, 96, 128, 16, 32, 32}), {128, 128, 192, 32, 96, 64});
  x = module(pool(x), {192, 96, 208, 16, 48, 64});
  x = module(x, {160, 112, 224, 24, 64, 64});
  x = module(x, {128, 128, 256, 24, 64, 64});
  x = module(x, {112, 144, 288, 32, 64, 64});
  x = module(x, {256, 160, 320, 32, 128, 128});
  x = module(pool(x), {256, 160, 320, 32, 128, 128});
  x = module(x, {384, 192, 384, 48, 128, 128});
  return net.finish({x});
}

Window rectangle(int h, int w) {
  Window out;
  out.kernel_h = h;
  out.kernel_w = w;
  out.pad_top = out.pad_bottom = h / 2;
  out.pad_left = out.pad_right = w / 2;
  return out;
}

/// Convolutions one after the other.
using Chain = std::vector<std::pair<int64_t, Window>>;

class InceptionV3 {
 public:
  Network run() {
    ValueId x = net_.input(3, 299, 299);
    x = chain(x, {{32, square(3, 2)}, {32, square(3)}, {64, square(3, 1, 1)}});
    x = chain(net_.max_pool(x, square(3, 2)), {{80, square(1)}, {192, square(3)}});
    x = net_.max_pool(x, square(3, 2));
    for (const int64_t pool : {32, 64, 64}) x = a(x, pool);
    x = net_.concat({chain(x, {{384, square(3, 2)}}),
                     chain(x, {{64, square(1)}, {96, square(3, 1, 1)}, {96, square(3, 2)}}),
                     net_.max_pool(x, square(3, 2))});
    for (const int64_t c : {128, 160, 160, 192}) x = b(x, c);
    x = net_.concat({chain(x, {{192, square(1)}, {320, square(3, 2)}}),
                     chain(x, {{192, square(1)},
                               {192, rectangle(1, 7)},
                               {192, rectangle(7, 1)},
                               {192, square(3, 2)}}),
                     net_.max_pool(x, square(3, 2))});
    x = c(c(x));
    return net_.finish({x});
  }

 private:
  ValueId chain(ValueId x, const Chain& layers) {
    for (const auto& [channels, window] : layers) x = net_.conv(x, channels, window);
    return x;
  }
  ValueId pooled(ValueId x, int64_t out) {
    return net_.conv(net_.average_pool(x, square(3, 1, 1)), out, square(1));
  }
  ValueId a(ValueId x, int64_t pool) {
    return net_.concat({chain(x, {{64, square(1)}}),
                        chain(x, {{48, square(1)}, {64, square(5, 1, 2)}}),
                        chain(x, {{64, square(1)}, {96, square(3, 1, 1)}, {96, square(3, 1, 1)}}),
                        pooled(x, pool)});
  }
  ValueId b(ValueId x, int64_t c) {
    return net_.concat({chain(x, {{192, square(1)}}),
                        chain(x, {{c, square(1)}, {c, rectangle(1, 7)}, {192, rectangle(7, 1)}}),
                        chain(x, {{c, square(1)},
                                  {c, rectangle(7, 1)},
                                  {c, rectangle(1, 7)},
                                  {c, rectangle(7, 1)},
                                  {192, rectangle(1, 7)}}),
                        pooled(x, 192)});
  }
  ValueId c(ValueId x) {
    const ValueId d = chain(x, {{384, square(1)}});
    const ValueId e = chain(x, {{448, square(1)}, {384, square(3, 1, 1)}});
    return net_.concat({chain(x, {{320, square(1)}}), chain(d, {{384, rectangle(1, 3)}}),
                        chain(d, {{384, rectangle(3, 1)}}), chain(e, {{384, rectangle(1, 3)}}),
                        chain(e, {{384, rectangle(3, 1)}}), pooled(x, 192)});
  }
  NetBuilder net_;
};

Network yolov3_voc() {
  NetBuilder net;
  const auto conv = [&](ValueId x, int64_t channels, int kernel, int stride = 1) {
    return net.conv(x, channels, square(kernel, stride, kernel / 2), kLeaky);
  };
  ValueId x = conv(net.input(3, 416, 416), 32, 3);
  std::vector<ValueId> stages, outputs;
  const int depths[] = {1, 2, 8, 8, 4};
  for (int stage = 0; stage < 5; ++stage) {
    const int64_t channels = int64_t{64} << stage;
    x = conv(x, channels, 3, 2);
    for (int i = 0; i < depths[stage]; ++i)
      x = net.add(conv(conv(x, channels / 2, 1), channels, 3), x);
    stages.push_back(x);
  }
  for (size_t scale = 0; scale < 3; ++scale) {
    const int64_t channels = int64_t{512} >> scale;
    if (scale > 0) x = net.concat({net.upsample(conv(x, channels, 1), 2), stages[4 - scale]});
    for (int i = 0; i < 2; ++i) x = conv(conv(x, channels, 1), 2 * channels, 3);
    x = conv(x, channels, 1);
    // Three boxes of 4 places, a score and 20 classes.
    outputs.push_back(net.conv(conv(x, 2 * channels, 3), 75, square(1), kNone));
  }
  return net.finish(outputs);
}

}  // namespace

Network known_network(const std::string& name) {
  if (name == "resnet18") return resnet({2, 2, 2, 2}, false, Variant::Torch);
  if (name == "resnet50") return resnet({3, 4, 6, 3}, true, Variant::Caffe);
  if (name == "resnet50_slim") return resnet({3, 4, 6, 3}, true, Variant::Slim);
  if (name == "vgg16") return vgg16();
  if (name == "squeezenet1.1") return squeezenet();
  if (name == "inception_v1") return inception_v1();
  if (name == "inception_v3") return InceptionV3().run();
  if (name == "yolov3_voc") return yolov3_voc();
  TW_CHECK(false, "no network {}", name);
  return {};
}

}  // namespace tilewright::dpu
