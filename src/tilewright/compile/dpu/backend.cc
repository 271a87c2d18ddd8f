#include "tilewright/compile/dpu/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/compile/accelerator_backend.h"
#include "tilewright/compile/dpu/device.h"
#include "tilewright/compile/dpu/place.h"
#include "tilewright/records/workload.h"

namespace tilewright::compile {
namespace {

const dpu::Config& config_of_dpu(const CompileOptions& options) {
  const DpuTarget* dpu = dpu_target(options.target);
  TW_CHECK(dpu != nullptr, "the target is {}", options.target.name);
  return dpu->config;
}

/// What `prepare` found out about this graph.
const DpuMemo& memo_of(const CompileOptions& options) {
  const auto* memo = dynamic_cast<const DpuMemo*>(options.memo.get());
  TW_CHECK(memo != nullptr, "a graph for the DPU is compiled with the memo of its preparation");
  return *memo;
}

/// What each value of `wanted` is in the network.
std::vector<dpu::ValueId> ids_of(const DpuNetwork& made,
                                 const std::vector<graph::ValueId>& wanted) {
  std::vector<dpu::ValueId> ids;
  for (const graph::ValueId value : wanted)
    if (const auto found = made.ids.find(value); found != made.ids.end())
      ids.push_back(found->second);
  return ids;
}

/// A launch reads and writes values in its own order, and a value in two forms, as an image and in
/// tiles, is one output of the program.
void arrange(const std::vector<dpu::ValueId>& made, const std::vector<dpu::ValueId>& wanted,
             std::vector<accel::Region>& regions, std::vector<dpu::DdrTensor>& tensors) {
  const std::vector<accel::Region> old_regions = std::move(regions);
  const std::vector<dpu::DdrTensor> old_tensors = std::move(tensors);
  regions.clear(), tensors.clear();
  for (const dpu::ValueId id : wanted) {
    const auto at = static_cast<size_t>(std::find(made.begin(), made.end(), id) - made.begin());
    TW_CHECK(at < made.size(), "a launch has a value that its network has not");
    regions.push_back(old_regions[at]);
    tensors.push_back(old_tensors[at]);
    const auto same = std::count_if(regions.begin(), regions.end() - 1, [&](const auto& region) {
      return region.name.starts_with(old_regions[at].name);
    });
    if (same > 0) regions.back().name += fmt::format("#{}", same + 1);
    tensors.back().name = regions.back().name;
  }
}

/// For `explain`: the ways that were tried, then where each layer's result is and how it is made.
std::vector<LayerNote> notes_of(const dpu::Compiled& compiled) {
  std::vector<LayerNote> notes(1);
  for (const dpu::Attempt& attempt : compiled.attempts)
    notes[0].lines.push_back(attempt.why.empty()
                                 ? fmt::format("{}: {} cycles", attempt.what, attempt.cycles)
                                 : fmt::format("{}: {}", attempt.what, attempt.why));
  for (const dpu::LayerPlan& layer : compiled.layers) {
    LayerNote& note = notes.emplace_back();
    note.layer = layer.name;
    note.lines = {layer.how, "result in " + layer.home};
    if (!layer.with.empty()) note.lines.push_back("in one pass with " + layer.with);
  }
  return notes;
}

class DpuBackend final : public AcceleratorBackend {
 public:
  std::string_view name() const override { return kDpuDevice; }
  const DeviceRuntime& runtime() const override { return dpu_runtime(); }

  Result<hw::Target> target(const std::string& name, const TargetOptions& options) const override {
    DpuTarget dpu;
    dpu.config = TW_TRY(dpu::load_config(options.hw.empty() ? dpu.config.name : options.hw));
    TW_TRY_STATUS(dpu::check(dpu.config));
    TW_TRY_STATUS(refuse_options_of_others(name, options));
    return as_target(dpu);
  }

  Result<std::optional<QuantizedModel>> prepare(const graph::Graph& graph,
                                                const QuantizeSettings& settings,
                                                const CompileOptions& options) const override {
    return std::optional(TW_TRY(prepare_for_dpu(graph, config_of_dpu(options), settings, options)));
  }

  Result<std::vector<std::string>> place(const graph::Graph& graph,
                                         const CompileOptions& options) const override {
    if (options.memo == nullptr) return takes_models(name());
    const DpuMemo& memo = memo_of(options);
    TW_CHECK(memo.devices.size() == graph.nodes.size(), "the memo is of another graph");
    return memo.devices;
  }

  Result<LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                    const CompileOptions& options) const override {
    DpuNetwork network = TW_TRY(dpu_network(graph, launch.nodes, memo_of(options).fix_points));
    dpu::CompileOptions how;
    how.cancelled = [&] { return options.observer.check(); };
    LaunchCode made;
    if (options.network) made.record = options.network(dpu_workload(network.network));
    if (made.record)
      if (Result<dpu::Way> way = dpu::parse_way(made.record->schedule)) how.way = *std::move(way);
    auto detail = std::make_shared<DpuLaunchCode>();
    detail->compiled = TW_TRY(dpu::compile(network.network, config_of_dpu(options), how));
    dpu::Program& program = detail->compiled.program;
    arrange(network.network.inputs, ids_of(network, launch.inputs), program.inputs,
            program.input_tensors);
    arrange(network.network.outputs, ids_of(network, launch.outputs), program.outputs,
            program.output_tensors);
    if (made.record && !(how.way && detail->compiled.way == *how.way)) {
      made.record.reset();
      made.stale_records = 1;
    }
    made.device = kDpuDevice;
    made.bytes = dpu::serialise(program);
    made.notes = notes_of(detail->compiled);
    detail->network = std::move(network.network);
    made.detail = std::move(detail);
    return made;
  }
};

}  // namespace

const Backend& dpu_backend() {
  static const DpuBackend backend;
  return backend;
}

hw::Target as_target(const DpuTarget& dpu) {
  const dpu::Config& config = dpu.config;
  hw::Target target = accelerator_target(kDpuDevice, dpu);
  for (int m = 0; m < dpu::kMemories; ++m)
    target.memories.push_back({fmt::format("fm{}", m), 0, "processing element",
                               config.fm_words(m) * dpu::kLanes, dpu::kBanks});
  target.memories.push_back({"pm", 0, "kernel", int64_t{config.pm_depth} * dpu::kPmWordBytes});
  const std::vector<std::string> maps = {"fm0", "fm1", "fm2"};
  std::vector<std::string> all = maps;
  all.push_back("pm");
  target.queues = {{"load", all}, {"save", maps}, {"conv", all}, {"misc", maps}};
  target.units = {
      fmt::format("{} x conv {}x{}x{}", config.pe, dpu::kBanks, dpu::kLanes, dpu::kLanes),
      fmt::format("{} x misc 2x{}", config.pe, dpu::kLanes)};
  target.intrinsics = {"dpu.conv", "dpu.pool", "dpu.elew"};
  return target;
}

const DpuTarget* dpu_target(const hw::Target& target) { return special_of<DpuTarget>(target); }

std::string dpu_workload(const dpu::Network& network) {
  return records::workload_key(dpu::shape_text(network));
}

const DpuLaunchCode* dpu_code(const LaunchCode& launch) { return detail_of<DpuLaunchCode>(launch); }

}  // namespace tilewright::compile
