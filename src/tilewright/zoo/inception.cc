// The Inception family. source: Szegedy et al. (2014, 2015, 2016).
#include "tilewright/zoo/net.h"

namespace tilewright::zoo {
namespace {

WindowAttrs rectangle(int64_t h, int64_t w) {
  WindowAttrs out{h, w};
  out.pads = {h / 2, w / 2, h / 2, w / 2};
  return out;
}

/// conv-bn-relu layers one after the other.
struct Layer {
  int64_t out;
  WindowAttrs window;
};
ValueId chain(Net& net, ValueId x, const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) x = net.conv_bn_relu(x, layer.out, layer.window);
  return x;
}

ValueId pooled(Net& net, ValueId x, int64_t out) {
  return net.conv_bn_relu(net.avg_pool(x, window(3, 1, 1)), out, window(1));
}

ValueId v3_a(Net& net, ValueId x, int64_t pool_channels) {
  return net.concat({chain(net, x, {{64, window(1)}}),
                     chain(net, x, {{48, window(1)}, {64, window(5, 1, 2)}}),
                     chain(net, x, {{64, window(1)}, {96, window(3, 1, 1)}, {96, window(3, 1, 1)}}),
                     pooled(net, x, pool_channels)});
}

ValueId v3_b(Net& net, ValueId x, int64_t c) {
  return net.concat({chain(net, x, {{192, window(1)}}),
                     chain(net, x, {{c, window(1)}, {c, rectangle(1, 7)}, {192, rectangle(7, 1)}}),
                     chain(net, x,
                           {{c, window(1)},
                            {c, rectangle(7, 1)},
                            {c, rectangle(1, 7)},
                            {c, rectangle(7, 1)},
                            {192, rectangle(1, 7)}}),
                     pooled(net, x, 192)});
}

ValueId v3_c(Net& net, ValueId x) {
  const ValueId a = chain(net, x, {{384, window(1)}});
  const ValueId b = chain(net, x, {{448, window(1)}, {384, window(3, 1, 1)}});
  return net.concat({chain(net, x, {{320, window(1)}}), chain(net, a, {{384, rectangle(1, 3)}}),
                     chain(net, a, {{384, rectangle(3, 1)}}),
                     chain(net, b, {{384, rectangle(1, 3)}}),
                     chain(net, b, {{384, rectangle(3, 1)}}), pooled(net, x, 192)});
}

ValueId v4_stem(Net& net, ValueId x) {
  x = chain(net, x, {{32, window(3, 2)}, {32, window(3)}, {64, window(3, 1, 1)}});
  x = net.concat({net.max_pool(x, window(3, 2)), chain(net, x, {{96, window(3, 2)}})});
  x = net.concat(
      {chain(net, x, {{64, window(1)}, {96, window(3)}}),
       chain(net, x,
             {{64, window(1)}, {64, rectangle(1, 7)}, {64, rectangle(7, 1)}, {96, window(3)}})});
  return net.concat({chain(net, x, {{192, window(3, 2)}}), net.max_pool(x, window(3, 2))});
}

ValueId v4_a(Net& net, ValueId x) {
  return net.concat(
      {pooled(net, x, 96), chain(net, x, {{96, window(1)}}),
       chain(net, x, {{64, window(1)}, {96, window(3, 1, 1)}}),
       chain(net, x, {{64, window(1)}, {96, window(3, 1, 1)}, {96, window(3, 1, 1)}})});
}

ValueId v4_b(Net& net, ValueId x) {
  return net.concat(
      {pooled(net, x, 128), chain(net, x, {{384, window(1)}}),
       chain(net, x, {{192, window(1)}, {224, rectangle(1, 7)}, {256, rectangle(7, 1)}}),
       chain(net, x,
             {{192, window(1)},
              {192, rectangle(1, 7)},
              {224, rectangle(7, 1)},
              {224, rectangle(1, 7)},
              {256, rectangle(7, 1)}})});
}

ValueId v4_c(Net& net, ValueId x) {
  const ValueId a = chain(net, x, {{384, window(1)}});
  const ValueId b =
      chain(net, x, {{384, window(1)}, {448, rectangle(1, 3)}, {512, rectangle(3, 1)}});
  return net.concat(
      {pooled(net, x, 256), chain(net, x, {{256, window(1)}}),
       chain(net, a, {{256, rectangle(1, 3)}}), chain(net, a, {{256, rectangle(3, 1)}}),
       chain(net, b, {{256, rectangle(3, 1)}}), chain(net, b, {{256, rectangle(1, 3)}})});
}

ValueId head(Net& net, ValueId x) {
  return net.softmax(net.dense(net.flatten(net.global_pool(x)), 1000));
}

/// GoogLeNet; with batch norms it has no LRN, as releases for accelerators have it.
graph::Graph googlenet(const Options& options, const std::string& name, bool batch_norms) {
  Net net(name, options);
  auto conv = [&](ValueId x, int64_t out, int64_t kernel, int64_t stride = 1) {
    const WindowAttrs w = window(kernel, stride, kernel / 2);
    return batch_norms ? net.conv_bn_relu(x, out, w) : net.relu(net.conv(x, out, w));
  };
  auto pool = [&](ValueId x) {
    WindowAttrs w = window(3, 2);
    w.ceil = true;
    return net.max_pool(x, w);
  };
  auto lrn = [&](ValueId x) {
    if (batch_norms) return x;
    return net.node("LRN", {x}, {{"size", int64_t{5}}, {"alpha", 1e-4}, {"beta", 0.75}});
  };
  auto module = [&](ValueId x, const Ints& c) {
    return net.concat({conv(x, c[0], 1), conv(conv(x, c[1], 1), c[2], 3),
                       conv(conv(x, c[3], 1), c[4], 5),
                       conv(net.max_pool(x, window(3, 1, 1)), c[5], 1)});
  };
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = lrn(pool(conv(x, 64, 7, 2)));
  x = pool(lrn(conv(conv(x, 64, 1), 192, 3)));
  x = module(module(x, {64, 96, 128, 16, 32, 32}), {128, 128, 192, 32, 96, 64});
  x = module(pool(x), {192, 96, 208, 16, 48, 64});
  x = module(x, {160, 112, 224, 24, 64, 64});
  x = module(x, {128, 128, 256, 24, 64, 64});
  x = module(x, {112, 144, 288, 32, 64, 64});
  x = module(x, {256, 160, 320, 32, 128, 128});
  x = module(pool(x), {256, 160, 320, 32, 128, 128});
  x = module(x, {384, 192, 384, 48, 128, 128});
  return net.finish({head(net, x)});
}

}  // namespace

graph::Graph inception_v1(const Options& options) {
  return googlenet(options, "inception_v1", false);
}
graph::Graph inception_v1_bn(const Options& options) {
  return googlenet(options, "inception_v1_bn", true);
}

graph::Graph inception_v3(const Options& options) {
  Net net("inception_v3", options);
  ValueId x = net.input("data", {options.batch, 3, options.size, options.size});
  x = chain(net, x, {{32, window(3, 2)}, {32, window(3)}, {64, window(3, 1, 1)}});
  x = chain(net, net.max_pool(x, window(3, 2)), {{80, window(1)}, {192, window(3)}});
  x = net.max_pool(x, window(3, 2));
  for (int64_t pool : {32, 64, 64}) x = v3_a(net, x, pool);
  x = net.concat({chain(net, x, {{384, window(3, 2)}}),
                  chain(net, x, {{64, window(1)}, {96, window(3, 1, 1)}, {96, window(3, 2)}}),
                  net.max_pool(x, window(3, 2))});
  for (int64_t c : {128, 160, 160, 192}) x = v3_b(net, x, c);
  x = net.concat(
      {chain(net, x, {{192, window(1)}, {320, window(3, 2)}}),
       chain(
           net, x,
           {{192, window(1)}, {192, rectangle(1, 7)}, {192, rectangle(7, 1)}, {192, window(3, 2)}}),
       net.max_pool(x, window(3, 2))});
  x = v3_c(net, v3_c(net, x));
  return net.finish({head(net, x)});
}

graph::Graph inception_v4(const Options& options) {
  Net net("inception_v4", options);
  ValueId x = v4_stem(net, net.input("data", {options.batch, 3, options.size, options.size}));
  for (int i = 0; i < 4; ++i) x = v4_a(net, x);
  x = net.concat({net.max_pool(x, window(3, 2)), chain(net, x, {{384, window(3, 2)}}),
                  chain(net, x, {{192, window(1)}, {224, window(3, 1, 1)}, {256, window(3, 2)}})});
  for (int i = 0; i < 7; ++i) x = v4_b(net, x);
  x = net.concat({net.max_pool(x, window(3, 2)),
                  chain(net, x, {{192, window(1)}, {192, window(3, 2)}}),
                  chain(net, x,
                        {{256, window(1)},
                         {256, rectangle(1, 7)},
                         {320, rectangle(7, 1)},
                         {320, window(3, 2)}})});
  for (int i = 0; i < 3; ++i) x = v4_c(net, x);
  return net.finish({head(net, x)});
}

}  // namespace tilewright::zoo
