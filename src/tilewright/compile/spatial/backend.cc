#include "tilewright/compile/spatial/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/base/check.h"
#include "tilewright/codegen/spatial/product.h"
#include "tilewright/compile/accelerator_backend.h"
#include "tilewright/compile/spatial/device.h"
#include "tilewright/compile/spatial/func.h"
#include "tilewright/compile/spatial/place.h"

namespace tilewright::compile {
namespace {

const spatial::Design& design_of(const CompileOptions& options) {
  const SpatialTarget* spatial = spatial_target(options.target);
  TW_CHECK(spatial != nullptr, "the target is {}", options.target.name);
  return spatial->design;
}

/// What `prepare` found out about this graph.
SpatialMemo& spatial_memo(const CompileOptions& options) {
  auto* memo = dynamic_cast<SpatialMemo*>(options.memo.get());
  TW_CHECK(memo != nullptr, "a graph for spatial is compiled with the memo of its preparation");
  return *memo;
}

/// A launch reads and writes values in its own order.
void arrange(const SpatialNetwork& made, const std::vector<graph::ValueId>& wanted,
             const std::vector<int>& ids, std::vector<accel::Region>& regions) {
  const std::vector<accel::Region> old = std::move(regions);
  regions.clear();
  for (const graph::ValueId value : wanted) {
    const auto found = made.ids.find(value);
    if (found == made.ids.end()) continue;  // weights
    const auto at =
        static_cast<size_t>(std::find(ids.begin(), ids.end(), found->second) - ids.begin());
    TW_CHECK(at < old.size(), "a launch has a value that its network has not");
    regions.push_back(old[at]);
  }
}

size_t param_of(const Func& func, const std::string& name) {
  size_t at = 0;
  while (at < func.params.size() && func.params[at].buffer.name() != name) ++at;
  return at;
}

std::string_view order_name(cost::ImageLayout layout) {
  return layout == cost::ImageLayout::ChannelsFirst ? "NCHW" : "NHWC";
}

/// For `explain`: the mapping of each layer, and what it costs by the model.
std::vector<LayerNote> notes_of(const spatial::Compiled& compiled) {
  std::vector<LayerNote> notes(1);
  double cycles = 0;
  for (const spatial::LayerPlan& layer : compiled.layers) {
    cycles += layer.cycles;
    LayerNote& note = notes.emplace_back();
    note.layer = layer.name;
    note.lines = {
        layer.mapping,
        fmt::format("{:.0f} cycles by the model, {:.2f} of the least; what binds: {}", layer.cycles,
                    layer.cycles / std::max(layer.bound, 1.0), cost::name(layer.binds))};
    if (layer.input)
      note.lines.push_back(
          fmt::format("input {}, result {}", order_name(*layer.input), order_name(*layer.output)));
    if (layer.runs > 1) note.lines.push_back(fmt::format("{} runs, one per group", layer.runs));
  }
  notes[0].lines = {fmt::format("{} layer{}, {:.0f} cycles by the model, {} instructions",
                                compiled.layers.size(), compiled.layers.size() == 1 ? "" : "s",
                                cycles, compiled.program.runs[0].insns.size())};
  return notes;
}

/// Mappings that records have; what is no mapping of the layer is left to the model.
spatial::FindMapping recorded_mappings(const FindNetwork& network) {
  if (!network) return {};
  return [network](const cost::SpatialLayer& layer) -> std::optional<cost::SpatialMapping> {
    const auto record = network(spatial::workload_of(layer));
    if (!record) return std::nullopt;
    const Result<cost::SpatialMapping> mapping = cost::parse_mapping(layer, record->schedule);
    return mapping ? std::optional(*mapping) : std::nullopt;
  };
}

/// Of the records of its layers one whose mapping is in the code, one that changed something before
/// others; those that do not fit are counted.
void note_records(const SpatialLaunchCode& code, const FindNetwork& network, LaunchCode& launch) {
  for (size_t i = 0; network && i < code.network.layers.size(); ++i) {
    const spatial::LayerPlan& plan = code.compiled.layers[i];
    auto record = network(spatial::workload_of(
        run_of(code.network, code.network.layers[i], 0, *plan.input, *plan.output)));
    if (!record) continue;
    if (record->schedule != plan.mapping)
      ++launch.stale_records;
    else if (!launch.record || launch.record->point.empty())
      launch.record = std::move(record);
  }
}

class SpatialBackend final : public AcceleratorBackend {
 public:
  std::string_view name() const override { return kSpatialDevice; }
  const DeviceRuntime& runtime() const override { return spatial_runtime(); }

  Result<hw::Target> target(const std::string& name, const TargetOptions& options) const override {
    SpatialTarget spatial;
    spatial.design = TW_TRY(load_design(options.hw.empty() ? spatial.design.name : options.hw));
    TW_TRY_STATUS(refuse_options_of_others(name, options));
    return as_target(spatial);
  }

  Result<std::optional<QuantizedModel>> prepare(const graph::Graph& graph,
                                                const QuantizeSettings& settings,
                                                const CompileOptions& options) const override {
    return std::optional(TW_TRY(prepare_for_spatial(graph, design_of(options), settings, options)));
  }

  Result<std::vector<std::string>> place(const graph::Graph& graph,
                                         const CompileOptions& options) const override {
    const SpatialMemo& memo = spatial_memo(options);
    TW_CHECK(memo.devices.size() == graph.nodes.size(), "the memo is of another graph");
    return memo.devices;
  }

  Result<LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                    const CompileOptions& options) const override {
    SpatialNetwork network = TW_TRY(spatial_network(graph, launch.nodes));
    auto detail = std::make_shared<SpatialLaunchCode>();
    spatial::Mappings mappings =
        spatial_memo(options).mappings.with(recorded_mappings(options.network));
    detail->compiled = TW_TRY(
        spatial::compile(network.network, mappings, [&] { return options.observer.check(); }));
    spatial::Program& program = detail->compiled.program;
    arrange(network, launch.inputs, network.network.inputs, program.inputs);
    arrange(network, launch.outputs, network.network.outputs, program.outputs);
    LaunchCode made;
    made.device = kSpatialDevice;
    made.bytes = spatial::serialise(program);
    made.notes = notes_of(detail->compiled);
    detail->network = std::move(network.network);
    note_records(*detail, options.network, made);
    made.detail = std::move(detail);
    return made;
  }

  bool takes_funcs() const override { return true; }
  Result<std::optional<LaunchCode>> compile_func(const Func& func,
                                                 const CompileOptions& options) const override {
    SpatialFunc product = TW_TRY(spatial_func(func));
    spatial::KnownFactors known;
    for (size_t t : {0, 1}) {
      const Param& param = func.params[product.params[t]];
      if (!param.values) continue;
      known[t] = param.values->as<int8_t>();
      product.layer.tensors[t].packed =
          spatial::can_pack(product.layer.tensors[t]) && !product.layer.tensors[0].packed;
    }
    spatial::Mappings mappings(design_of(options));
    auto detail = std::make_shared<SpatialLaunchCode>();
    detail->compiled = TW_TRY(spatial::compile_product(product.layer, known, mappings));
    spatial::Program& program = detail->compiled.program;
    // Inputs in the order of the parameters.
    std::stable_sort(program.inputs.begin(), program.inputs.end(),
                     [&](const accel::Region& a, const accel::Region& b) {
                       return param_of(func, a.name) < param_of(func, b.name);
                     });
    LaunchCode made;
    made.device = kSpatialDevice;
    made.bytes = spatial::serialise(program);
    made.notes = notes_of(detail->compiled);
    made.detail = std::move(detail);
    return std::optional(std::move(made));
  }
};

}  // namespace

const Backend& spatial_backend() {
  static const SpatialBackend backend;
  return backend;
}

hw::Target as_target(const SpatialTarget& spatial) {
  const spatial::Design& design = spatial.design;
  hw::Target target = accelerator_target(kSpatialDevice, spatial);
  target.memories = {
      {"scratchpad", 0, "array", design.spad_bytes(), design.banks},
      {"private", 0, "array", design.local_bytes(), static_cast<int>(spatial::sum_parts(design))}};
  target.queues = {
      {"load", {"scratchpad"}}, {"compute", {"scratchpad", "private"}}, {"store", {"private"}}};
  target.units = {fmt::format("{} {}x{}", spatial::name(design.unit), design.rows, design.cols)};
  return target;
}

const SpatialTarget* spatial_target(const hw::Target& target) {
  return special_of<SpatialTarget>(target);
}

}  // namespace tilewright::compile
