// From a model to the graph that is compiled for a spatial accelerator.
//
//   f32 graph -> quantised (scales are powers of two) -> layers placed:
//     conv 1, conv 2 (spatial/0), add (cpu: no unit computes it), conv 3 (spatial/1)
#include "tilewright/compile/spatial/place.h"

#include <fmt/format.h>

#include "tilewright/compile/fixed_layers.h"
#include "tilewright/compile/quantize_model.h"
#include "tilewright/compile/spatial/backend.h"
#include "tilewright/graph/ir/edit.h"

namespace tilewright::compile {
namespace {

/// What the model says of a layer: why it is none, or why the host is faster.
struct Verdict {
  Status can;
  std::string left_out;
};

Result<double> model_cycles(const spatial::Network& network, spatial::Mappings& mappings) {
  const spatial::ConvLayer& layer = network.layers.front();
  TW_TRY_STATUS(supports(network, layer, mappings));
  const auto order = cost::ImageLayout::ChannelsFirst;
  const auto& best = mappings.best(run_of(network, layer, 0, order, order));
  return static_cast<double>(layer.groups) * best->cost.cycles;
}

Verdict judge(const graph::Graph& graph, int node, spatial::Mappings& mappings) {
  const Result<SpatialNetwork> made = spatial_network(graph, layer_nodes(graph, node));
  if (!made) return {tl::unexpected<Error>(made.error()), {}};
  const Result<double> cycles = model_cycles(made->network, mappings);
  if (!cycles) return {tl::unexpected<Error>(cycles.error()), {}};
  const spatial::ConvLayer& layer = made->network.layers.front();
  const double macs =
      static_cast<double>(run_of(made->network, layer, 0, cost::ImageLayout::ChannelsFirst,
                                 cost::ImageLayout::ChannelsFirst)
                              .macs() *
                          layer.groups);
  const double host = macs / mappings.design().host.macs_per_cycle;
  if (host >= *cycles) return {};
  return {
      {},
      fmt::format("by the model the host takes {:.0f} cycles, the array {:.0f}", host, *cycles)};
}

LayerChoice choose(const graph::QuantizedGraph& quantized, spatial::Mappings& mappings) {
  const graph::Graph& graph = quantized.graph;
  std::vector<Verdict> verdicts(graph.nodes.size());
  for (size_t n = 0; n < verdicts.size(); ++n) {
    const graph::Node& node = graph.nodes[n];
    if (is_sum(node)) {
      verdicts[n].can = fail(ErrorKind::Unsupported, "nothing rounds its sums to 8 bits");
      continue;
    }
    verdicts[n] = judge(graph, static_cast<int>(n), mappings);
    if (!verdicts[n].left_out.empty())
      for (const int part : layer_nodes(graph, static_cast<int>(n)))
        verdicts[static_cast<size_t>(part)].left_out = verdicts[n].left_out;
  }
  return choose_layers(
      quantized, [&](int node) { return verdicts[static_cast<size_t>(node)].can; },
      [&](int node) { return verdicts[static_cast<size_t>(node)].left_out; });
}

}  // namespace

Result<QuantizedModel> prepare_for_spatial(const graph::Graph& model, const spatial::Design& design,
                                           const QuantizeSettings& settings,
                                           const CompileOptions& options) {
  if (settings.per_channel)
    return fail(ErrorKind::Usage,
                "spatial accelerators have one scale for all channels of a tensor", {},
                "leave out --per-channel");
  graph::QuantizeOptions form;
  form.target = spatial_abilities();
  QuantizedModel result = TW_TRY(quantize_model(model, settings, options, form));
  const graph::Graph& integer = result.quantized.graph;
  auto memo = std::make_shared<SpatialMemo>(design);
  const LayerChoice choice = choose(result.quantized, memo->mappings);
  const std::vector<int> launches = launches_of(integer, choice.on_device);
  result.placements = placements_of(integer, launches, choice, {});
  for (const int launch : launches)
    memo->devices.push_back(launch < 0 ? "" : fmt::format("{}/{}", kSpatialDevice, launch));
  result.memo = std::move(memo);
  result.laid_out = integer;
  if (!settings.allow_cpu) TW_TRY_STATUS(all_placed(result.placements, kSpatialDevice));
  return result;
}

}  // namespace tilewright::compile
