// Layers of the integer graph on Gemmini:
//
//   ConvInteger -> Requantize (half_even)   =>  a layer of codegen/gemmini
//   ToTiles, FromTiles                      =>  nothing: values lie in DRAM like that
//
// In DRAM a value is [image][row][column][channel], channels filled up to a multiple of DIM.
#include "tilewright/compile/gemmini/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/codegen/gemmini/layer.h"
#include "tilewright/compile/fixed_layers.h"
#include "tilewright/compile/gemmini/backend.h"
#include "tilewright/compile/quantize_model.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/layout/border.h"
#include "tilewright/tensor/window.h"

namespace tilewright::compile {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

/// A layer, and the values that it reads and makes; -1: none.
struct GemminiLayer {
  gemmini::Layer layer;
  int product = -1;  ///< the ConvInteger
  ValueId x = -1, weights = -1, bias = -1, residual = -1, y = -1;
};

tl::unexpected<Error> refuse_layer(const std::string& why) {
  return fail(ErrorKind::Unsupported, why);
}

const tensor::TensorType& type_of(const Graph& graph, ValueId id) {
  return graph.values[static_cast<size_t>(id)].type;
}
bool is_known(const Graph& graph, ValueId id) {
  return id >= 0 && graph.values[static_cast<size_t>(id)].constant.has_value();
}

gemmini::LayerAxis axis_of(const tensor::Window& window, size_t axis) {
  return {window.input[axis],   window.output[axis],    window.kernel[axis],
          window.strides[axis], window.dilations[axis], window.begin[axis]};
}

/// Bias, residual, shift and bounds.
Status read_requantize(const Graph& graph, const Node& node, GemminiLayer& into) {
  const auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : -1; };
  const auto attr = [&](const char* key, int64_t fallback) {
    return node.attrs.get_int(key, fallback);
  };
  gemmini::Layer& layer = into.layer;
  into.bias = input(1), into.residual = input(2), into.y = node.outputs[0];
  if (input(3) >= 0 || (attr("half_even", 0) == 0 && attr("shift", 0) + attr("pre_shift", 0) > 0))
    return refuse_layer("its scales are no powers of two");
  const int64_t lo = attr("lo", -128);
  if (lo != -128 && lo != 0) return refuse_layer(fmt::format("it clips to {} at least", lo));
  layer.bias = into.bias >= 0, layer.residual = into.residual >= 0;
  if (layer.bias &&
      (!is_known(graph, into.bias) || element_count(type_of(graph, into.bias).shape) != layer.n))
    return refuse_layer("its bias is not one known number per channel");
  if (layer.residual && attr("residual_multiplier", 1) != 1)
    return refuse_layer("its residual is multiplied");
  layer.shift = static_cast<int>(attr("shift", 0));
  layer.residual_shift = static_cast<int>(attr("residual_shift", 0));
  layer.relu = lo == 0;
  layer.high = static_cast<int>(attr("hi", 127));
  return gemmini::clips(layer) ? gemmini::check_clip(layer) : Status{};
}

/// The convolution in front of it.
Status read_product(const Graph& graph, const Node& conv, GemminiLayer& into) {
  if (conv.inputs.size() != 2) return refuse_layer("its operands have zero points");
  into.x = conv.inputs[0], into.weights = conv.inputs[1];
  const tensor::TensorType &x = type_of(graph, into.x), &w = type_of(graph, into.weights);
  if (x.shape.size() != 4 || x.dtype != DType::I8 || w.dtype != DType::I8)
    return refuse_layer(
        fmt::format("it reads {} and {}", graph::to_string(x), graph::to_string(w)));
  if (!is_known(graph, into.weights)) return refuse_layer("its weights are not known");
  if (const int64_t groups = conv.attrs.get_int("group", 1); groups != 1)
    return refuse_layer(
        fmt::format("it is {} convolutions of {} channels each", groups, w.shape[1]));
  const tensor::Window window =
      TW_TRY(tensor::conv_window(graph::op_call(graph, conv), x.shape, w.shape));
  gemmini::Layer& layer = into.layer;
  layer.name = conv.name;
  layer.images = x.shape[0];
  layer.h = axis_of(window, 0), layer.w = axis_of(window, 1);
  layer.k = w.shape[1], layer.n = w.shape[0];
  const bool pixels = layer.taps() == 1 && layer.h.stride * layer.w.stride == 1 &&
                      layer.h.in == layer.h.out && layer.w.in == layer.w.out;
  if (!pixels) return {};
  // A product of matrices: all pixels are one row.
  layer.w.in = layer.w.out = layer.images * layer.h.out * layer.w.out;
  layer.images = layer.h.in = layer.h.out = 1;
  return {};
}

/// The layer that `node`, a Requantize, ends. errors: Unsupported, Capacity.
Result<GemminiLayer> gemmini_layer(const gemmini::Config& config, const Graph& graph,
                                   const Node& node, const std::vector<int>& producer,
                                   const std::vector<std::vector<int>>& users) {
  if (node.op != "Requantize") return refuse_layer(node.op + " is no product");
  GemminiLayer made;
  made.product = producer[static_cast<size_t>(node.inputs[0])];
  if (made.product < 0 || graph.nodes[static_cast<size_t>(made.product)].op != "ConvInteger" ||
      users[static_cast<size_t>(node.inputs[0])].size() != 1)
    return refuse_layer("its sums come from no product of its own");
  TW_TRY_STATUS(read_product(graph, graph.nodes[static_cast<size_t>(made.product)], made));
  TW_TRY_STATUS(read_requantize(graph, node, made));
  TW_TRY(gemmini::choose_tile(config, made.layer));
  return made;
}

LayerChoice choose_gemmini_layers(const gemmini::Config& config,
                                  const graph::QuantizedGraph& quantized) {
  const Graph& graph = quantized.graph;
  const std::vector<int> producer = producers(graph);
  const std::vector<std::vector<int>> users = consumers(graph);
  LayerChoice choice;
  choice.on_device.resize(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op == "ConvInteger") continue;  // with its Requantize
    const Result<GemminiLayer> layer = gemmini_layer(config, graph, node, producer, users);
    if (layer) {
      choice.on_device[n] = choice.on_device[static_cast<size_t>(layer->product)] = true;
      continue;
    }
    Error reason = layer.error();
    // Why it is in f32 says more than that there are no commands for it.
    const auto f32 = quantized.f32_reasons.find(node.name);
    if (f32 != quantized.f32_reasons.end()) reason.what = f32->second, reason.why.clear();
    if (node.op == "Requantize")
      if (const int p = producer[static_cast<size_t>(node.inputs[0])]; p >= 0)
        choice.reasons.emplace(graph.nodes[static_cast<size_t>(p)].name, reason);
    choice.reasons.emplace(node.name, std::move(reason));
  }
  return choice;
}

/// Commands and image of one launch.
class LaunchCompiler {
 public:
  LaunchCompiler(const gemmini::Config& config, const Graph& graph)
      : config_(config),
        graph_(graph),
        producer_(producers(graph)),
        users_(consumers(graph)),
        image_(accel::kPage, gemmini::kDramBytes) {}

  Result<GemminiLaunch> run(const graph::Group& launch) {
    for (const int n : launch.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      if (node.op == "ConvInteger") continue;  // with its Requantize
      Status done = node.op == "FromTiles" || node.op == "ToTiles" ? alias(node) : layer(node);
      if (!done) return tl::unexpected<Error>(std::move(done.error()).at(node.name));
    }
    for (const ValueId id : launch.inputs)
      if (!is_known(graph_, id)) image_.add_input(TW_TRY(region(id)));
    for (const ValueId id : launch.outputs) image_.add_output(TW_TRY(region(id)));
    gemmini::Program& program = made_.program;
    static_cast<accel::Image&>(program) = image_.take();
    program.config = config_;
    return std::move(made_);
  }

 private:
  const graph::Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  /// Bytes from one pixel of an image to the next.
  uint64_t pitch(int64_t channels) const {
    return static_cast<uint64_t>((channels + config_.dim - 1) / config_.dim * config_.dim);
  }
  /// Bytes in DRAM: an image [n, c, h, w], or its tiles, which lie as they are.
  uint64_t bytes(ValueId id) const {
    const Shape& s = value(id).type.shape;
    const auto all = static_cast<uint64_t>(element_count(s));
    return s.size() == 4 ? static_cast<uint64_t>(s[0] * s[2] * s[3]) * pitch(s[1]) : all;
  }
  /// Where a value is: room for it is made when first asked for.
  Result<uint64_t> address(ValueId id) {
    if (const auto found = places_.find(id); found != places_.end()) return found->second;
    if (is_known(graph_, id))
      return fail(ErrorKind::Unsupported,
                  fmt::format("it reads the constant '{}'", value(id).name));
    return places_[id] = TW_TRY(image_.allocate(value(id).name, bytes(id), kAlign));
  }
  Result<accel::Region> region(ValueId id) {
    return accel::Region{value(id).name, TW_TRY(address(id)), bytes(id)};
  }
  Status alias(const Node& node) {
    places_[node.outputs[0]] = TW_TRY(address(node.inputs[0]));
    return {};
  }
  Result<uint64_t> constant(const std::string& name, std::string_view contents) {
    const uint64_t at = TW_TRY(image_.allocate(name, contents.size(), kAlign));
    image_.write(at, contents);
    return at;
  }

  Status layer(const Node& node) {
    const GemminiLayer made = TW_TRY(gemmini_layer(config_, graph_, node, producer_, users_));
    const gemmini::Layer& layer = made.layer;
    gemmini::LayerPlaces places;
    places.x = TW_TRY(address(made.x));
    const Array& weights = *value(made.weights).constant;
    places.weights =
        TW_TRY(constant(layer.name, gemmini::pack_weights(layer, weights.as<int8_t>())));
    if (layer.bias) {
      const auto bias = gemmini::loaded_bias(layer, value(made.bias).constant->as<int32_t>());
      places.bias = TW_TRY(
          constant(layer.name, {reinterpret_cast<const char*>(bias.data()), 4 * bias.size()}));
    }
    if (layer.residual) places.residual = TW_TRY(address(made.residual));
    places.y = TW_TRY(address(made.y));
    if (gemmini::clips(layer)) {
      places.unclipped = TW_TRY(image_.allocate(layer.name + "/unclipped", bytes(made.y), kAlign));
      places.offsets = TW_TRY(constant(layer.name, gemmini::clip_offsets(config_, layer)));
    }
    places.x_pitch = pitch(layer.k);
    places.y_pitch = places.residual_pitch = pitch(layer.n);
    const gemmini::LayerTile tile = TW_TRY(gemmini::choose_tile(config_, layer));
    gemmini::Run& run = add_run(layer.name);
    gemmini::emit(config_, layer, places, tile, run.insns);
    close(run);
    size_t commands = run.insns.size();
    if (gemmini::clips(layer)) {
      gemmini::Run& clip = add_run(layer.name + "/clip");
      gemmini::emit_clip(config_, layer, places, clip.insns);
      close(clip);
      commands += clip.insns.size();
    }
    note(layer, tile, commands);
    return {};
  }
  /// A run per layer: it reads what an earlier one wrote, behind a fence.
  gemmini::Run& add_run(const std::string& name) {
    gemmini::Run& run = made_.program.runs.emplace_back();
    run.spans.push_back({name, 0, 0});
    return run;
  }
  static void close(gemmini::Run& run) { run.spans[0].end = run.insns.size(); }
  void note(const gemmini::Layer& layer, const gemmini::LayerTile& tile, size_t commands) {
    const gemmini::LayerTraffic bytes = gemmini::traffic(config_, layer, tile);
    made_.notes.push_back(
        {layer.name,
         {"tiles of " + gemmini::to_string(tile),
          fmt::format("{} commands; bytes of DRAM: {} of x, {} of weights, {} of bias, {} of the "
                      "residual, {} to clip, {} of the result",
                      commands, bytes.x, bytes.weights, bytes.bias, bytes.residual, bytes.clip,
                      bytes.y)}});
  }

  static constexpr uint64_t kAlign = 64;
  const gemmini::Config& config_;
  const Graph& graph_;
  const std::vector<int> producer_;
  const std::vector<std::vector<int>> users_;
  accel::ImageBuilder image_;
  std::map<ValueId, uint64_t> places_;
  GemminiLaunch made_;
};

}  // namespace

graph::IntegerAbilities gemmini_abilities() {
  graph::IntegerAbilities can;
  can.first_convolutions = true;
  can.half_even = true;
  return can;
}

Result<QuantizedModel> prepare_for_gemmini(const graph::Graph& model, const gemmini::Config& config,
                                           const QuantizeSettings& settings,
                                           const CompileOptions& options) {
  if (settings.per_channel)
    return fail(ErrorKind::Usage, "Gemmini has one scale for all channels of a tensor", {},
                "leave out --per-channel");
  graph::QuantizeOptions form;
  form.target = gemmini_abilities();
  form.wide_outputs = false;  // sums cannot be read twice
  QuantizedModel result = TW_TRY(quantize_model(model, settings, options, form));
  const Graph& integer = result.quantized.graph;
  const LayerChoice choice = choose_gemmini_layers(config, result.quantized);
  const graph::TileShape tile{1, config.dim, config.dim, graph::TileOrder::PixelsFirst};
  graph::Launched launched =
      TW_TRY(graph::tile_borders(integer, launches_of(integer, choice.on_device), tile));
  result.placements = placements_of(launched.graph, launched.launch, choice,
                                    "between the model's layout and that of Gemmini's memory");
  auto memo = std::make_shared<GemminiMemo>();
  for (const int launch : launched.launch)
    memo->devices.push_back(launch < 0 ? "" : fmt::format("{}/{}", kGemminiDevice, launch));
  result.memo = std::move(memo);
  result.laid_out = std::move(launched.graph);
  if (!settings.allow_cpu) TW_TRY_STATUS(all_placed(result.placements, kGemminiDevice));
  return result;
}

Result<GemminiLaunch> compile_for_gemmini(const gemmini::Config& config, const graph::Graph& graph,
                                          const graph::Group& launch) {
  return LaunchCompiler(config, graph).run(launch);
}

}  // namespace tilewright::compile
