// Programs of whole networks against plain convolutions.
#include "tilewright/codegen/spatial/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tilewright/accel/spatial/sim/fsim.h"
#include "tilewright/cost/spatial/testing/cases.h"

namespace tilewright::spatial {
namespace {

using Image = std::vector<int8_t>;  // NCHW

Image plain_conv(const Network& network, const ConvLayer& l, const Image& x) {
  const NetworkValue& in = network.values[size_t(l.input)];
  const NetworkValue& out = network.values[size_t(l.output)];
  const int64_t inputs = in.channels / l.groups, outputs = out.channels / l.groups;
  Image result;
  for (int64_t n = 0; n < out.images; ++n)
    for (int64_t k = 0; k < out.channels; ++k)
      for (int64_t y = 0; y < out.height; ++y)
        for (int64_t xx = 0; xx < out.width; ++xx) {
          int64_t sum = l.bias.empty() ? 0 : l.bias[size_t(k)];
          for (int64_t c = 0; c < inputs; ++c)
            for (int64_t r = 0; r < l.kernel[0]; ++r)
              for (int64_t s = 0; s < l.kernel[1]; ++s) {
                const int64_t iy = y * l.stride[0] + r * l.dilation[0] - l.pad[0];
                const int64_t ix = xx * l.stride[1] + s * l.dilation[1] - l.pad[1];
                if (iy < 0 || iy >= in.height || ix < 0 || ix >= in.width) continue;
                const int64_t channel = k / outputs * inputs + c;
                const int64_t at = ((n * in.channels + channel) * in.height + iy) * in.width + ix;
                const int64_t w = ((k * inputs + c) * l.kernel[0] + r) * l.kernel[1] + s;
                sum += int64_t{x[size_t(at)]} * l.weights[size_t(w)];
              }
          if (l.shift > 0) sum = (sum + (int64_t{1} << (l.shift - 1))) >> l.shift;
          result.push_back(int8_t(std::clamp<int64_t>(sum, l.low, l.high)));
        }
  return result;
}

/// Layers behind one another; some results leave.
class NetworkDraw {
 public:
  explicit NetworkDraw(uint64_t seed) : draw_(seed), random_(seed) {}

  Network network() {
    Network net;
    net.values.push_back({"x", draw_.between(1, 2), 4 * draw_.between(1, 6), draw_.between(4, 12),
                          draw_.between(4, 12)});
    net.inputs = {0};
    const int64_t layers = draw_.between(1, 4);
    for (int64_t i = 0; i < layers; ++i) add(net);
    net.outputs.push_back(int(layers));
    return net;
  }
  cost::CaseDraw& draw() { return draw_; }
  Image image(const NetworkValue& value) {
    Image data;
    for (int64_t i = 0; i < value.bytes(); ++i) data.push_back(int8_t(random_()));
    return data;
  }

 private:
  void add(Network& net) {
    ConvLayer l;
    l.name = "layer " + std::to_string(net.layers.size());
    l.input = int(net.values.size()) - 1;
    l.output = l.input + 1;
    const NetworkValue in = net.values.back();
    NetworkValue out = in;
    out.name = "value " + std::to_string(l.output);
    l.groups = draw_.one_of({1, 1, 1, 2, 4});
    out.channels = 4 * draw_.between(1, 6);
    for (size_t axis : {0, 1}) {
      const int64_t size = axis ? in.width : in.height;
      l.kernel[axis] = std::min<int64_t>(size, draw_.one_of({1, 2, 3}));
      l.stride[axis] = draw_.between(1, 2);
      l.pad[axis] = l.kernel[axis] > 1 ? draw_.below(2) : 0;
      const bool room = size + 2 * l.pad[axis] > 2 * (l.kernel[axis] - 1);
      l.dilation[axis] = room ? draw_.between(1, 2) : 1;
      const int64_t reach = (l.kernel[axis] - 1) * l.dilation[axis] + 1;
      (axis ? out.width : out.height) = (size + 2 * l.pad[axis] - reach) / l.stride[axis] + 1;
    }
    for (int64_t i = out.channels * in.channels / l.groups * l.kernel[0] * l.kernel[1]; i-- > 0;)
      l.weights.push_back(int8_t(random_()));
    for (int64_t i = 0; i < out.channels; ++i) l.bias.push_back(int32_t(random_() % 20000));
    l.shift = 8;
    l.low = draw_.below(2) ? 0 : -128;
    if (draw_.below(3) == 0) net.outputs.push_back(l.input), drop_input(net);
    net.values.push_back(out);
    net.layers.push_back(std::move(l));
  }
  static void drop_input(Network& net) {
    if (net.outputs.back() == 0) net.outputs.pop_back();
  }

  cost::CaseDraw draw_;
  std::mt19937_64 random_;
};

TEST(SpatialNetwork, ComputesWhatItsLayersMean) {
  NetworkDraw random(3);
  int channels_last = 0;
  for (int i = 0; i < 30; ++i) {
    const Design design = random.draw().design();
    const Network net = random.network();
    SCOPED_TRACE(std::to_string(i) + "\n" + to_toml(design));
    Mappings mappings(design);
    const Result<Compiled> made = compile(net, mappings);
    ASSERT_TRUE(made) << made.error().what << " " << made.error().why;
    const Program& program = made->program;
    std::vector<Image> values = {random.image(net.values[0])};
    for (const ConvLayer& l : net.layers)
      values.push_back(plain_conv(net, l, values[size_t(l.input)]));
    const auto device = make_fsim(design);
    const std::string_view bytes(reinterpret_cast<const char*>(values[0].data()), values[0].size());
    Program with_input = program;
    with_input.image.replace(program.inputs[0].address - program.base, bytes.size(), bytes);
    const Result<LaunchReport> report = execute(*device, with_input);
    ASSERT_TRUE(report) << report.error().what << " " << report.error().why;
    for (size_t o = 0; o < net.outputs.size(); ++o) {
      Image result(program.outputs[o].bytes);
      ASSERT_TRUE(device->read(program.outputs[o].address, reinterpret_cast<char*>(result.data()),
                               result.size()));
      EXPECT_EQ(result, values[size_t(net.outputs[o])]) << program.outputs[o].name;
    }
    for (const LayerPlan& plan : made->layers)
      channels_last += plan.output == cost::ImageLayout::ChannelsLast;
    if (HasFailure()) return;
  }
  EXPECT_GT(channels_last, 5);
}

TEST(SpatialMappings, TakesWhatIsChosenIfItRuns) {
  const Design design;
  const cost::SpatialLayer layer =
      cost::conv2d({.inputs = 32, .outputs = 48, .height = 14, .width = 14, .kernel = 3});
  Mappings by_model(design);
  const cost::SpatialMapping best = by_model.best(layer)->mapping;
  const auto with = [&](const cost::SpatialMapping& mapping) {
    const auto chosen = [&](const cost::SpatialLayer&) { return std::optional(mapping); };
    return by_model.with(chosen).best(layer)->mapping;
  };
  cost::SpatialMapping other = best;
  other.copies = {1, 1, 1};
  EXPECT_EQ(with(other), other);
  EXPECT_EQ(by_model.best(layer)->mapping, best) << "what is chosen is of the copy alone";
  other.choice.k = 1;  // no loop that is summed over
  EXPECT_EQ(with(other), best);
  cost::SpatialMapping large = best;
  large.copies = {2, 2, 2};
  for (size_t loop = 0; loop < layer.loops.size(); ++loop)
    large.tile[loop] = layer.loops[loop].extent;
  Design small = design;
  small.spad_kb = small.local_kb = 16;
  ASSERT_FALSE(cost::misfits(small, layer, large).empty());
  Mappings mappings =
      Mappings(small).with([&](const cost::SpatialLayer&) { return std::optional(large); });
  EXPECT_NE(mappings.best(layer)->mapping, large);
}

TEST(SpatialNetwork, SaysWhyALayerDoesNotFit) {
  Design design;
  design.rows = design.cols = 64;
  design.spad_kb = 0;  // less than any file may have
  Network net;
  net.values = {{"x", 1, 64, 1, 1}, {"y", 1, 64, 1, 1}};
  ConvLayer l;
  l.name = "layer";
  l.input = 0, l.output = 1;
  net.layers = {l};
  Mappings mappings(design);
  const Status can = supports(net, net.layers[0], mappings);
  ASSERT_FALSE(can);
  EXPECT_EQ(can.error().kind, ErrorKind::Capacity);
  EXPECT_EQ(can.error().why,
            "scratchpad: 0.1 KiB of 0 KiB (input 1 x 0.1 KiB, weights 1 x 0.1 KiB)");
}

}  // namespace
}  // namespace tilewright::spatial
