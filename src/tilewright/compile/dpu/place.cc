// From a model to the graph that is compiled for the DPU.
//
//   f32 graph -> quantised (scales are powers of two) -> layers placed:
//     conv 1 (dpu), add (dpu), softmax (cpu: no layer)
//   -> launch 0 = {conv 1, add}; ToTiles before it and FromTiles behind it run on the processor
#include "tilewright/compile/dpu/place.h"

#include <fmt/format.h>

#include "tilewright/compile/dpu/backend.h"
#include "tilewright/compile/fixed_layers.h"
#include "tilewright/compile/quantize_model.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/layout/border.h"

namespace tilewright::compile {
namespace {

using graph::Node;

/// Whether the node makes one pixel of an image.
bool is_global_average(const graph::Graph& graph, const Node& node) {
  if (node.op != "AveragePoolFixed") return false;
  const Shape& y = graph.values[static_cast<size_t>(node.outputs[0])].type.shape;
  return y.size() == 4 && y[2] == 1 && y[3] == 1;
}

/// Global average pools and everything behind them, for a compiler that leaves those to the
/// processor.
std::vector<bool> behind_global_pools(const graph::Graph& graph) {
  const std::vector<int> producer = graph::producers(graph);
  std::vector<bool> behind(graph.nodes.size(), false);
  for (size_t n = 0; n < behind.size(); ++n) {
    behind[n] = is_global_average(graph, graph.nodes[n]);
    for (const graph::ValueId id : graph.nodes[n].inputs)
      if (const int p = id < 0 ? -1 : producer[static_cast<size_t>(id)]; p >= 0)
        behind[n] = behind[n] || behind[static_cast<size_t>(p)];
  }
  return behind;
}

LayerChoice choose(const graph::QuantizedGraph& quantized, const dpu::Config& config,
                   const FixPoints& points) {
  const std::vector<bool> behind = behind_global_pools(quantized.graph);
  return choose_layers(
      quantized, [&](int node) { return supports_layer(config, quantized.graph, node, points); },
      [&](int node) -> std::string {
        const bool left = !config.compiler.global_pool && behind[static_cast<size_t>(node)];
        return left ? "[compiler] global_pool is \"cpu\"" : "";
      });
}

}  // namespace

Result<QuantizedModel> prepare_for_dpu(const graph::Graph& model, const dpu::Config& config,
                                       const QuantizeSettings& settings,
                                       const CompileOptions& options) {
  if (settings.per_channel)
    return fail(ErrorKind::Usage, "the DPU has one scale for all channels of a tensor", {},
                "leave out --per-channel");
  graph::QuantizeOptions form;
  form.target = dpu_abilities(config);
  QuantizedModel result = TW_TRY(quantize_model(model, settings, options, form));
  const graph::Graph& integer = result.quantized.graph;
  const FixPoints points = fix_points(result.quantized);
  const LayerChoice choice = choose(result.quantized, config, points);
  const graph::TileShape tile{config.pe, dpu::kLanes, dpu::kLanes, graph::TileOrder::PixelsFirst};
  graph::Launched launched =
      TW_TRY(graph::tile_borders(integer, launches_of(integer, choice.on_device), tile));
  result.placements = placements_of(launched.graph, launched.launch, choice,
                                    "between the model's layout and that of the DPU's memory");
  auto memo = std::make_shared<DpuMemo>();
  for (const int launch : launched.launch)
    memo->devices.push_back(launch < 0 ? "" : fmt::format("{}/{}", kDpuDevice, launch));
  for (const graph::ValueId id : launched.origin)
    memo->fix_points.push_back(id < 0 ? std::nullopt : points[static_cast<size_t>(id)]);
  result.memo = std::move(memo);
  result.laid_out = std::move(launched.graph);
  if (!settings.allow_cpu) TW_TRY_STATUS(all_placed(result.placements, kDpuDevice));
  return result;
}

}  // namespace tilewright::compile
