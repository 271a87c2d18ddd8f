#include "tilewright/compile/dpu/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/compile/cpu/backend.h"
#include "tilewright/compile/dpu/device.h"
#include "tilewright/compile/dpu/place.h"

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

/// The places of `wanted` among the values that a network's inputs or outputs stand for.
std::vector<dpu::ValueId> in_order(const std::vector<dpu::ValueId>& ids,
                                   const std::vector<graph::ValueId>& origin,
                                   const std::vector<graph::ValueId>& wanted) {
  std::vector<dpu::ValueId> ordered;
  for (const graph::ValueId value : wanted) {
    const auto found = std::find_if(ids.begin(), ids.end(), [&](dpu::ValueId id) {
      return origin[static_cast<size_t>(id)] == value;
    });
    if (found != ids.end()) ordered.push_back(*found);
  }
  TW_CHECK(ordered.size() == ids.size(), "a launch has {} values, its network {}", ordered.size(),
           ids.size());
  return ordered;
}

/// The network of a launch, inputs and outputs in the launch's order.
Result<dpu::Network> network_of(const graph::Graph& graph, const graph::Group& launch,
                                const FixPoints& points) {
  DpuNetwork made = TW_TRY(dpu_network(graph, launch.nodes, points));
  made.network.inputs = in_order(made.network.inputs, made.origin, launch.inputs);
  made.network.outputs = in_order(made.network.outputs, made.origin, launch.outputs);
  return std::move(made.network);
}

class DpuBackend final : public Backend {
 public:
  std::string_view name() const override { return kDpuDevice; }
  const DeviceRuntime& runtime() const override { return dpu_runtime(); }
  std::vector<std::string> target_names() const override { return {kDpuDevice}; }

  Result<hw::Target> target(const std::string& name, const TargetOptions& options) const override {
    DpuTarget dpu;
    dpu.config = TW_TRY(dpu::load_config(options.hw.empty() ? dpu.config.name : options.hw));
    TW_TRY_STATUS(dpu::check(dpu.config));
    TW_TRY_STATUS(refuse_tf32(name, options));
    return as_target(dpu);
  }

  Result<std::optional<QuantizedModel>> prepare(const graph::Graph& graph,
                                                const QuantizeSettings& settings,
                                                const CompileOptions& options) const override {
    return std::optional(TW_TRY(prepare_for_dpu(graph, config_of_dpu(options), settings, options)));
  }

  /// Integer graphs went through the passes before.
  std::string passes(const CompileOptions&) const override { return {}; }
  void set_up(graph::PassContext&, const CompileOptions&,
              std::vector<records::Record>&) const override {}
  bool always_fuses() const override { return true; }

  Result<std::vector<std::string>> place(const graph::Graph& graph,
                                         const CompileOptions& options) const override {
    const DpuMemo& memo = memo_of(options);
    TW_CHECK(memo.devices.size() == graph.nodes.size(), "the memo is of another graph");
    return memo.devices;
  }

  Result<LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                    const CompileOptions& options) const override {
    const dpu::Network network = TW_TRY(network_of(graph, launch, memo_of(options).fix_points));
    dpu::CompileOptions how;
    how.cancelled = [&] { return options.observer.check(); };
    auto detail = std::make_shared<DpuLaunchCode>();
    detail->compiled = TW_TRY(dpu::compile(network, config_of_dpu(options), how));
    LaunchCode made;
    made.device = kDpuDevice;
    made.bytes = dpu::serialise(detail->compiled.program);
    made.detail = std::move(detail);
    return made;
  }

  /// Layers are no scheduled Funcs.
  std::vector<rules::RuleInfo> schedule_rules() const override { return {}; }

  void describe(runtime::Program& program, const CompileOptions& options) const override {
    cpu_backend().describe(program, options);
  }
};

}  // namespace

const Backend& dpu_backend() {
  static const DpuBackend backend;
  return backend;
}

hw::Target as_target(const DpuTarget& dpu) {
  const dpu::Config& config = dpu.config;
  hw::Target target;
  target.kind = hw::TargetKind::Accelerator;
  target.name = target.backend = kDpuDevice;
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
  target.special = std::any(dpu);
  return target;
}

const DpuTarget* dpu_target(const hw::Target& target) {
  const auto* any = std::get_if<std::any>(&target.special);
  return any == nullptr ? nullptr : std::any_cast<DpuTarget>(any);
}

const DpuLaunchCode* dpu_code(const LaunchCode& launch) {
  return dynamic_cast<const DpuLaunchCode*>(launch.detail.get());
}

}  // namespace tilewright::compile
