#include "tilewright/codegen/dpu/testing/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/accel/dpu/sim/fsim.h"
#include "tilewright/codegen/dpu/testing/networks.h"

namespace tilewright::dpu {
namespace {

template <class T>
void random_numbers(std::vector<T>& into, Rng& rng, int64_t most) {
  for (T& value : into) value = static_cast<T>(rng.between(-most, most));
}

Activation random_activation(Rng& rng) {
  const Activation all[] = {kNone, kRelu, kLeaky, kRelu6};
  return all[rng.below(4)];
}

template <class Op>
void fill_conv(Op& op, int64_t sums, Rng& rng) {
  random_numbers(op.weights, rng, 20);
  random_numbers(op.bias, rng, 3000);
  op.shift = static_cast<int>(std::log2(10.0 * std::sqrt(static_cast<double>(sums)))) +
             static_cast<int>(rng.between(-1, 2));
  op.act = random_activation(rng);
}

Window random_window(Rng& rng, const Value& x, bool dilated) {
  Window w;
  const auto axis = [&](int64_t size, int& kernel, int& stride, int& dilation, int& before,
                        int& after) {
    kernel = static_cast<int>(rng.between(1, std::min<int64_t>(size, rng.chance(0.1) ? 9 : 4)));
    stride = static_cast<int>(rng.chance(0.6) ? 1 : rng.between(1, 3));
    if (dilated && rng.chance(0.2) && (kernel - 1) * 2 < size) {
      dilation = 2;
      stride = 1;
    }
    const int most = std::min(15, (kernel - 1) * dilation);
    before = static_cast<int>(rng.between(0, most));
    after = static_cast<int>(rng.between(0, most));
  };
  axis(x.height, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom);
  axis(x.width, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right);
  if (w.dilation_h > 1 || w.dilation_w > 1) w.stride_h = w.stride_w = 1;
  return w;
}

ValueId random_slice(NetBuilder& net, ValueId x, Rng& rng) {
  const Value& v = net.value(x);
  SliceLayer from;
  Value part = v;
  const auto axis = [&](int64_t size, int64_t& begin, int64_t& count) {
    if (rng.chance(0.4)) return;
    begin = rng.below(size);
    count = rng.between(1, size - begin);
  };
  axis(v.channels, from.channel, part.channels);
  axis(v.height, from.row, part.height);
  axis(v.width, from.column, part.width);
  return net.slice(x, from, part);
}

ValueId random_layer(NetBuilder& net, std::vector<ValueId>& values, Rng& rng, bool all) {
  // Mostly the newest, so that networks are deep; sometimes an old one, so that maps live long.
  const size_t newest = values.size() - 1;
  const ValueId x =
      values[rng.chance(0.6) ? newest
                             : static_cast<size_t>(rng.below(static_cast<int64_t>(values.size())))];
  const Value v = net.value(x);
  std::vector<ValueId> same, same_rows;
  for (const ValueId id : values) {
    const Value& other = net.value(id);
    if (other.height != v.height || other.width != v.width) continue;
    same_rows.push_back(id);
    if (other.channels == v.channels) same.push_back(id);
  }
  const auto pick = [&](const std::vector<ValueId>& from) {
    return from[static_cast<size_t>(rng.below(static_cast<int64_t>(from.size())))];
  };
  const int64_t channels = rng.chance(0.5) ? rng.between(1, 3) * 16 : rng.between(1, 50);
  switch (rng.below(all ? 11 : 10)) {
    case 10:
      return random_slice(net, x, rng);
    case 0:
      return net.max_pool(x, random_window(rng, v, false));
    case 1:
      return net.average_pool(x, random_window(rng, v, false), all && rng.chance(0.5));
    case 2:
      return net.add(x, pick(same));
    case 3:
      return net.concat({x, pick(same_rows)});
    case 4: {
      if (v.height > 12 || v.width > 12) return net.scale(x, static_cast<int>(rng.between(-2, 2)));
      return net.upsample(x, static_cast<int>(rng.between(1, 3)));
    }
    case 5: {
      if (v.height > 12 || v.width > 12) break;
      Window w = square(static_cast<int>(rng.between(1, 5)), static_cast<int>(rng.between(1, 3)));
      w.pad_top = w.pad_left = static_cast<int>(rng.below(w.kernel_h));
      w.pad_bottom = static_cast<int>(rng.between(1 - w.stride_h, w.kernel_h - 1));
      w.pad_right = static_cast<int>(rng.between(1 - w.stride_w, w.kernel_w - 1));
      const int64_t height = (v.height - 1) * w.stride_h + w.kernel_h - w.pad_top - w.pad_bottom;
      const int64_t width = (v.width - 1) * w.stride_w + w.kernel_w - w.pad_left - w.pad_right;
      if (height < 1 || width < 1) break;
      return net.deconv(x, channels, w);
    }
    case 6:
      return net.conv(x, v.channels, random_window(rng, v, true), kNone,
                      static_cast<int>(v.channels));
    case 7: {
      const int groups = v.channels % 2 == 0 ? 2 : 1;
      return net.conv(x, channels * groups, random_window(rng, v, true), kNone, groups);
    }
    default:
      break;
  }
  return net.conv(x, channels, random_window(rng, v, true));
}

size_t index(const Value& v, int64_t c, int64_t h, int64_t w) {
  return static_cast<size_t>((c * v.height + h) * v.width + w);
}

/// One image's bytes of a tensor in DDR: [height][width][groups][pe][16].
size_t place_in_ddr(const DdrTensor& t, int pe, int image, int64_t c, int64_t h, int64_t w) {
  const int64_t word = (h * t.width + w) * groups(t.channels) + c / kLanes;
  return static_cast<size_t>((word * pe + image) * kLanes + c % kLanes);
}

}  // namespace

void fill(Network& network, Rng& rng) {
  for (Layer& layer : network.layers) {
    Value& out = network.values[static_cast<size_t>(layer.output)];
    if (auto* conv = std::get_if<ConvLayer>(&layer.op)) {
      fill_conv(*conv, static_cast<int64_t>(conv->weights.size()) / out.channels, rng);
    } else if (auto* deconv = std::get_if<DeconvLayer>(&layer.op)) {
      fill_conv(*deconv, static_cast<int64_t>(deconv->weights.size()) / out.channels, rng);
    } else if (auto* eltwise = std::get_if<EltwiseLayer>(&layer.op)) {
      eltwise->act = random_activation(rng);
      for (int& shift : eltwise->shift_read) shift = static_cast<int>(rng.below(3));
    }
  }
}

Network random_network(Rng& rng, int layers, int64_t size, bool all) {
  NetBuilder net;
  std::vector<ValueId> values;
  const int64_t channels[] = {1, 3, 8, 16, 20, 40};
  values.push_back(net.input(channels[rng.below(6)], rng.between(1, size), rng.between(1, size)));
  if (rng.chance(0.2)) {
    const Value v = net.value(values[0]);
    values.push_back(net.input(channels[rng.below(6)], v.height, v.width));
  }
  const size_t inputs = values.size();
  std::vector<ValueId> used;
  const int count = static_cast<int>(rng.between(1, layers));
  for (int i = 0; i < count; ++i) values.push_back(random_layer(net, values, rng, all));
  std::vector<ValueId> outputs = {values.back()};
  for (size_t i = inputs; i + 1 < values.size(); ++i)
    if (rng.chance(0.15)) outputs.push_back(values[i]);
  Network network = net.finish(outputs);
  fill(network, rng);
  return network;
}

Config random_config(Rng& rng, int64_t shrink) {
  Config config;
  config.pe = static_cast<int>(rng.chance(0.7) ? 4 : rng.between(1, 8));
  for (int& depth : config.fm_depth)
    depth = static_cast<int>(std::max<int64_t>(64, depth / rng.between(1, shrink)));
  config.pm_depth =
      static_cast<int>(std::max<int64_t>(64, config.pm_depth / rng.between(1, shrink)));
  if (rng.chance(0.3)) config.format_unit = 0;
  CompilerChoices& c = config.compiler;
  c.layer_barrier = rng.chance(0.5);
  c.prefetch = rng.chance(0.5);
  c.overlap_fc = rng.chance(0.5);
  c.dense_average = rng.chance(0.3);
  c.parallel_branches = rng.chance(0.5);
  c.fusion = rng.chance(0.7);
  c.address_tokens = rng.chance(0.5);
  c.reorder_stride = rng.chance(0.5);
  c.phase_deconvolution = rng.chance(0.7);
  return config;
}

Images random_images(const Network& network, const Config& config, Rng& rng) {
  Images images(static_cast<size_t>(config.pe));
  for (auto& image : images)
    for (const ValueId id : network.inputs) {
      std::vector<int8_t> data(
          static_cast<size_t>(network.values[static_cast<size_t>(id)].elements()));
      random_numbers(data, rng, 127);
      image.push_back(std::move(data));
    }
  return images;
}

Result<Images> run_program(const Program& program, const Images& images) {
  const auto device = make_fsim(program.config, program.end());
  return run_program(*device, program, images);
}

Result<Images> run_program(Device& device, const Program& program, const Images& images) {
  Program loaded = program;
  const int pe = program.config.pe;
  for (size_t i = 0; i < program.input_tensors.size(); ++i) {
    const DdrTensor& t = program.input_tensors[i];
    const Value v{t.name, t.channels, t.height, t.width, 0};
    char* to = loaded.image.data() + (program.inputs[i].address - program.base);
    for (int b = 0; b < pe; ++b)
      for (int64_t c = 0; c < t.channels; ++c)
        for (int64_t h = 0; h < t.height; ++h)
          for (int64_t w = 0; w < t.width; ++w) {
            const size_t plain =
                static_cast<size_t>(((b * t.height + h) * t.width + w) * t.channels + c);
            const size_t at = t.reg == Reg::Format ? plain : place_in_ddr(t, pe, b, c, h, w);
            to[at] = static_cast<char>(images[static_cast<size_t>(b)][i][index(v, c, h, w)]);
          }
  }
  TW_TRY(execute(device, loaded));
  Images results(static_cast<size_t>(pe));
  for (size_t i = 0; i < program.output_tensors.size(); ++i) {
    const DdrTensor& t = program.output_tensors[i];
    std::string bytes(program.outputs[i].bytes, '\0');
    TW_TRY_STATUS(device.read(program.outputs[i].address, bytes.data(), bytes.size()));
    for (int b = 0; b < pe; ++b) {
      std::vector<int8_t> data;
      for (int64_t c = 0; c < t.channels; ++c)
        for (int64_t h = 0; h < t.height; ++h)
          for (int64_t w = 0; w < t.width; ++w)
            data.push_back(static_cast<int8_t>(bytes[place_in_ddr(t, pe, b, c, h, w)]));
      results[static_cast<size_t>(b)].push_back(std::move(data));
    }
  }
  return results;
}

std::string difference(const Network& network, const Images& images, const Images& results) {
  for (size_t b = 0; b < images.size(); ++b) {
    std::map<ValueId, std::vector<int8_t>> inputs;
    for (size_t i = 0; i < network.inputs.size(); ++i) inputs[network.inputs[i]] = images[b][i];
    const auto expected = interpret(network, inputs);
    for (size_t i = 0; i < network.outputs.size(); ++i) {
      const auto& right = expected.at(network.outputs[i]);
      const auto& got = results[b][i];
      for (size_t e = 0; e < right.size(); ++e)
        if (right[e] != got[e])
          return fmt::format("image {}, {}, element {}: {} instead of {}", b,
                             network.values[static_cast<size_t>(network.outputs[i])].name, e,
                             int{got[e]}, int{right[e]});
    }
  }
  return {};
}

std::string describe(const Network& network) {
  std::string text;
  for (const ValueId id : network.inputs) {
    const Value& v = network.values[static_cast<size_t>(id)];
    text += fmt::format("input {}: {}x{}x{}\n", id, v.channels, v.height, v.width);
  }
  for (const Layer& layer : network.layers) {
    const Value& v = network.values[static_cast<size_t>(layer.output)];
    text += fmt::format("{} (", layer.name);
    for (const ValueId id : layer.inputs) text += fmt::format(" {}", id);
    text += fmt::format(" ) -> {}: {}x{}x{}", layer.output, v.channels, v.height, v.width);
    const auto window = [&](const Window& w, int group_count) {
      text += fmt::format(" k{}x{} s{}x{} d{}x{} pads {},{},{},{} groups {}", w.kernel_h,
                          w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w, w.pad_top,
                          w.pad_left, w.pad_bottom, w.pad_right, group_count);
    };
    if (const auto* conv = std::get_if<ConvLayer>(&layer.op)) window(conv->window, conv->groups);
    if (const auto* conv = std::get_if<DeconvLayer>(&layer.op)) window(conv->window, conv->groups);
    if (const auto* pool = std::get_if<PoolLayer>(&layer.op)) {
      window(pool->window, 1);
      if (!pool->means.empty()) text += " without padding";
    }
    if (const auto* slice = std::get_if<SliceLayer>(&layer.op))
      text += fmt::format(" from {},{},{}", slice->channel, slice->row, slice->column);
    text += "\n";
  }
  text += "outputs:";
  for (const ValueId id : network.outputs) text += fmt::format(" {}", id);
  return text + "\n";
}

}  // namespace tilewright::dpu
