// From a model to the graph that is compiled for the DPU.
//
//   f32 graph -> quantised (scales are powers of two) -> layers placed:
//     conv 1 (dpu), add (dpu), softmax (cpu: no layer)
//   -> launch 0 = {conv 1, add}; ToTiles before it and FromTiles behind it run on the processor
#include "tilewright/compile/dpu/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/compile/dpu/backend.h"
#include "tilewright/compile/quantize_model.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/layout/border.h"

namespace tilewright::compile {
namespace {

using graph::Node;

/// Nodes that are layers, or the sum inside of one; the others' reasons by name.
struct Choice {
  std::vector<bool> on_device;
  std::map<std::string, Error> reasons;
  std::set<std::string> left_out;  ///< by the compiler's rules: [compiler] global_pool
};

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

Choice choose(const graph::QuantizedGraph& quantized, const dpu::Config& config,
              const FixPoints& points) {
  const graph::Graph& graph = quantized.graph;
  Choice choice;
  choice.on_device.resize(graph.nodes.size());
  const std::vector<bool> behind = behind_global_pools(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!config.compiler.global_pool && behind[n]) {
      choice.left_out.insert(graph.nodes[n].name);
      continue;
    }
    const Status can = supports_layer(config, graph, static_cast<int>(n), points);
    if (can) {
      for (const int part : dpu_layer(graph, static_cast<int>(n)))
        choice.on_device[static_cast<size_t>(part)] = true;
    } else {
      Error reason = can.error();
      // Why it is in f32 says more than that there is no such layer.
      const auto f32 = quantized.f32_reasons.find(graph.nodes[n].name);
      if (f32 != quantized.f32_reasons.end()) reason.what = f32->second, reason.why.clear();
      choice.reasons.emplace(graph.nodes[n].name, std::move(reason));
      // The sum inside of a layer is nothing by itself: the reason is the layer's.
      for (const int part : dpu_layer(graph, static_cast<int>(n)))
        if (part != static_cast<int>(n))
          choice.reasons[graph.nodes[static_cast<size_t>(part)].name] =
              Error{can.error().kind, fmt::format("one layer with {}", graph.nodes[n].name)};
    }
  }
  return choice;
}

std::vector<graph::Placement> placements_of(const graph::Graph& laid_out,
                                            const std::vector<int>& launch, const Choice& choice) {
  std::vector<graph::Placement> places;
  for (size_t n = 0; n < laid_out.nodes.size(); ++n) {
    const Node& node = laid_out.nodes[n];
    graph::Placement place;
    place.node = static_cast<int>(n);
    place.name = node.name;
    place.op = node.op;
    place.where = launch[n] >= 0 ? graph::Where::Accelerator : graph::Where::Cpu;
    const auto reason = choice.reasons.find(node.name);
    if (choice.left_out.contains(node.name)) {
      place.why = "[compiler] global_pool is \"cpu\"";
      place.meant = true;
    } else if (launch[n] < 0 && reason != choice.reasons.end()) {
      place.why = reason->second.what;
      if (!reason->second.why.empty()) place.why += ": " + reason->second.why;
      place.kind = reason->second.kind;
    } else if (launch[n] < 0) {
      place.why = "between the model's layout and that of the DPU's memory";
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace

std::vector<int> launches_of(const graph::Graph& graph, const std::vector<bool>& on_device) {
  const std::vector<int> producer = graph::producers(graph);
  std::vector<int> level(graph.nodes.size(), 0), launch(graph.nodes.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const graph::ValueId id : graph.nodes[n].inputs) {
      const int p = id < 0 ? -1 : producer[static_cast<size_t>(id)];
      if (p < 0) continue;
      const auto from = static_cast<size_t>(p);
      level[n] = std::max(level[n], level[from] + (on_device[from] && !on_device[n] ? 1 : 0));
    }
    if (on_device[n]) launch[n] = level[n];
  }
  return launch;
}

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
  const Choice choice = choose(result.quantized, config, points);
  const graph::TileShape tile{config.pe, dpu::kLanes, dpu::kLanes, graph::TileOrder::PixelsFirst};
  graph::Launched launched =
      TW_TRY(graph::tile_borders(integer, launches_of(integer, choice.on_device), tile));
  result.placements = placements_of(launched.graph, launched.launch, choice);
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
