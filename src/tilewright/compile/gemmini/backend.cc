#include "tilewright/compile/gemmini/backend.h"

#include <fmt/format.h>

#include "tilewright/base/check.h"
#include "tilewright/compile/accelerator_backend.h"
#include "tilewright/compile/gemmini/device.h"
#include "tilewright/compile/gemmini/layers.h"

namespace tilewright::compile {
namespace {

const gemmini::Config& config_of_gemmini(const CompileOptions& options) {
  const auto* special = special_of<GemminiTarget>(options.target);
  TW_CHECK(special != nullptr, "the target is {}", options.target.name);
  return special->config;
}

class GemminiBackend final : public AcceleratorBackend {
 public:
  std::string_view name() const override { return kGemminiDevice; }
  const DeviceRuntime& runtime() const override { return gemmini_runtime(); }

  Result<hw::Target> target(const std::string& name, const TargetOptions& options) const override {
    GemminiTarget special;
    special.config =
        TW_TRY(gemmini::load_config(options.hw.empty() ? special.config.name : options.hw));
    TW_TRY_STATUS(gemmini::check(special.config));
    TW_TRY_STATUS(refuse_options_of_others(name, options));
    return as_target(special);
  }

  Result<std::optional<QuantizedModel>> prepare(const graph::Graph& graph,
                                                const QuantizeSettings& settings,
                                                const CompileOptions& options) const override {
    return std::optional(
        TW_TRY(prepare_for_gemmini(graph, config_of_gemmini(options), settings, options)));
  }

  Result<std::vector<std::string>> place(const graph::Graph& graph,
                                         const CompileOptions& options) const override {
    const auto* memo = dynamic_cast<const GemminiMemo*>(options.memo.get());
    if (memo == nullptr) return takes_models(name());
    TW_CHECK(memo->devices.size() == graph.nodes.size(), "the memo is of another graph");
    return memo->devices;
  }

  Result<LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                    const CompileOptions& options) const override {
    GemminiLaunch made = TW_TRY(compile_for_gemmini(config_of_gemmini(options), graph, launch));
    LaunchCode code;
    code.device = kGemminiDevice;
    code.bytes = gemmini::serialise(made.program);
    code.notes = std::move(made.notes);
    return code;
  }
};

}  // namespace

const Backend& gemmini_backend() {
  static const GemminiBackend backend;
  return backend;
}

hw::Target as_target(const GemminiTarget& gemmini) {
  const gemmini::Config& config = gemmini.config;
  hw::Target target = accelerator_target(kGemminiDevice, gemmini);
  target.memories = {{"scratchpad", 0, "device", int64_t{config.spad_kb} * 1024, config.banks},
                     {"accumulator", 0, "device", int64_t{config.acc_kb} * 1024}};
  const std::vector<std::string> both = {"scratchpad", "accumulator"};
  target.queues = {{"load", both}, {"execute", both}, {"store", both}};
  target.units = {fmt::format("{0}x{0} multiplies and adds", config.dim)};
  target.intrinsics = {"gemmini.compute"};
  return target;
}

}  // namespace tilewright::compile
