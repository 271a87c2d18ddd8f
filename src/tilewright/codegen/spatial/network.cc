#include "tilewright/codegen/spatial/network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/file.h"

namespace tilewright::spatial {

using cost::ImageLayout;
using cost::SpatialDim;
using cost::SpatialLayer;

namespace {

/// Axes n (with several images), channels, y, x, or with the channels last.
std::vector<SpatialDim> image(ImageLayout layout, std::optional<SpatialDim> n, SpatialDim channels,
                              SpatialDim y, SpatialDim x) {
  std::vector<SpatialDim> dims;
  if (n) dims.push_back(*n);
  if (layout == ImageLayout::ChannelsFirst) dims.push_back(channels);
  dims.push_back(std::move(y));
  dims.push_back(std::move(x));
  if (layout == ImageLayout::ChannelsLast) dims.push_back(channels);
  return dims;
}

/// What decides the mapping of a layer.
std::string shape_of(const SpatialLayer& layer) {
  std::string text = layer.biased ? "b " : "";
  for (const cost::SpatialLoop& loop : layer.loops)
    text += fmt::format("{}{}{}", loop.name, loop.extent, loop.reduces ? "+" : " ");
  for (const cost::SpatialTensor& tensor : layer.tensors) {
    text += fmt::format("/{}{}", tensor.element_bytes, tensor.packed ? "p" : "");
    for (const SpatialDim& dim : tensor.dims) {
      text += fmt::format("[{}-{}", dim.extent, dim.begin);
      for (const cost::SpatialTerm& term : dim.terms)
        text += fmt::format(" {}*{}", term.stride, term.loop);
    }
  }
  return text;
}

/// The tile of which every other one is a multiple, or nearly; where none fits, the smallest there
/// is.
cost::SpatialMapping smallest(const Design& design, const SpatialLayer& layer,
                              const cost::SpatialChoice& choice) {
  const cost::SpatialEvaluator evaluator(design, layer, choice);
  cost::SpatialMapping mapping;
  mapping.choice = choice;
  mapping.copies = {1, 1, 1};
  for (int loop = 0; loop < evaluator.unit().loops; ++loop)
    mapping.tile[loop] = cost::tile_sizes(evaluator, loop).front();
  return mapping;
}

}  // namespace

SpatialLayer run_of(const Network& network, const ConvLayer& layer, int64_t group,
                    ImageLayout input, ImageLayout output) {
  const NetworkValue& x = network.values[static_cast<size_t>(layer.input)];
  const NetworkValue& y = network.values[static_cast<size_t>(layer.output)];
  const int64_t inputs = x.channels / layer.groups, outputs = y.channels / layer.groups;
  SpatialLayer run;
  run.name = layer.name;
  run.biased = !layer.bias.empty();
  const auto add = [&](const char* name, int64_t extent, bool reduces) {
    run.loops.push_back({name, extent, reduces});
    return static_cast<int>(run.loops.size()) - 1;
  };
  std::optional<SpatialDim> n;
  if (x.images > 1) n = SpatialDim{{{add("n", x.images, false), 1}}, x.images};
  const int k = add("k", outputs, false), py = add("y", y.height, false),
            px = add("x", y.width, false), c = add("c", inputs, true),
            r = add("r", layer.kernel[0], true), s = add("s", layer.kernel[1], true);
  run.tensors[0] = {
      "input", image(input, n, {{{c, 1}}, x.channels, -group * inputs},
                     {{{py, layer.stride[0]}, {r, layer.dilation[0]}}, x.height, layer.pad[0]},
                     {{{px, layer.stride[1]}, {s, layer.dilation[1]}}, x.width, layer.pad[1]})};
  run.tensors[1] = {"weights",
                    {{{{k, 1}}, outputs},
                     {{{c, 1}}, inputs},
                     {{{r, 1}}, layer.kernel[0]},
                     {{{s, 1}}, layer.kernel[1]}},
                    1,
                    true};
  run.tensors[2] = {"result", image(output, n, {{{k, 1}}, y.channels, -group * outputs},
                                    {{{py, 1}}, y.height}, {{{px, 1}}, y.width})};
  return run;
}

const std::optional<cost::SpatialBest>& Mappings::best(const SpatialLayer& layer) {
  const std::string shape = shape_of(layer);
  if (chosen_) {
    const auto [at, is_new] = taken_.try_emplace(shape);
    if (is_new) at->second = chosen(layer);
    if (at->second) return at->second;
  }
  const auto [at, is_new] = known_->try_emplace(shape);
  if (is_new) at->second = cost::best_mapping(design_, layer);
  return at->second;
}

Mappings Mappings::with(FindMapping chosen) const {
  Mappings other = *this;
  other.chosen_ = std::move(chosen);
  other.taken_.clear();
  return other;
}

Error misfit(const SpatialLayer& layer, const Design& design) {
  const std::vector<cost::SpatialChoice> choices = cost::choices(design, layer);
  if (choices.empty())
    return {ErrorKind::Unsupported,
            fmt::format("no loops of the layer are those of a {}", name(design.unit))};
  const std::vector<std::string> why =
      misfits(design, layer, smallest(design, layer, choices.front()));
  Error error{ErrorKind::Capacity, "no tile of it fits the accelerator"};
  error.why = fmt::format("{}", fmt::join(why, "; "));
  return error;
}

std::optional<cost::SpatialBest> Mappings::chosen(const SpatialLayer& layer) const {
  const auto mapping = chosen_(layer);
  if (!mapping) return std::nullopt;
  const std::vector<cost::SpatialChoice> sound = cost::choices(design_, layer);
  if (std::find(sound.begin(), sound.end(), mapping->choice) == sound.end() ||
      !misfits(design_, layer, *mapping).empty())
    return std::nullopt;
  cost::SpatialBest best;
  best.mapping = *mapping;
  best.cost = cost::evaluate(design_, layer, *mapping);
  return best;
}

std::string workload_of(const SpatialLayer& layer) {
  return sha256("spatial layer " + shape_of(layer)).substr(0, 16);
}

Status supports(const Network& network, const ConvLayer& layer, Mappings& mappings) {
  const SpatialLayer run =
      run_of(network, layer, 0, ImageLayout::ChannelsFirst, ImageLayout::ChannelsFirst);
  if (mappings.best(run)) return {};
  return tl::unexpected<Error>(misfit(run, mappings.design()));
}

}  // namespace tilewright::spatial
