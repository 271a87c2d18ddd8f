#include "tilewright/compile/vta/backend.h"

#include <fmt/format.h>

#include "tilewright/base/check.h"
#include "tilewright/compile/accelerator_backend.h"
#include "tilewright/compile/vta/device.h"
#include "tilewright/compile/vta/place.h"
#include "tilewright/compile/vta/quantized.h"
#include "tilewright/rules/vta/mapping.h"

namespace tilewright::compile {
namespace {

const VtaTarget& special(const CompileOptions& options) {
  const VtaTarget* vta = vta_target(options.target);
  TW_CHECK(vta != nullptr, "the target is {}", options.target.name);
  return *vta;
}

VtaLaunchOptions vta_options(const CompileOptions& options) {
  const VtaTarget& vta = special(options);
  VtaLaunchOptions launch;
  launch.copies = vta.copies;
  launch.serial = vta.serial;
  launch.tuned = options.tuned;
  launch.observer = options.observer;
  if (const auto memo = std::dynamic_pointer_cast<VtaLayerMemo>(options.memo)) launch.memo = memo;
  return launch;
}

class VtaBackend final : public AcceleratorBackend {
 public:
  std::string_view name() const override { return kVtaDevice; }
  const DeviceRuntime& runtime() const override { return vta_runtime(); }

  Result<hw::Target> target(const std::string& name, const TargetOptions& options) const override {
    VtaTarget vta;
    vta.config = TW_TRY(vta::load_config(options.hw.empty() ? vta::Config().name : options.hw));
    TW_TRY_STATUS(vta::check(vta.config));
    if (Status status = check_compilable(vta.config); !status)
      return tl::unexpected<Error>(std::move(status.error()).at("--hw " + options.hw));
    TW_TRY_STATUS(refuse_options_of_others(name, options));
    return as_target(vta);
  }

  Result<std::optional<QuantizedModel>> prepare(const graph::Graph& graph,
                                                const QuantizeSettings& settings,
                                                const CompileOptions& options) const override {
    return std::optional(TW_TRY(
        prepare_for_vta(graph, special(options).config, settings, options, vta_options(options))));
  }

  Result<std::vector<std::string>> place(const graph::Graph& graph,
                                         const CompileOptions& options) const override {
    return devices_of(graph,
                      TW_TRY(place_on_vta(graph, special(options).config, vta_options(options))),
                      kVtaDevice);
  }

  Result<LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                    const CompileOptions& options) const override {
    VtaLaunchCode code =
        TW_TRY(compile_vta_launch(graph, launch, special(options).config, vta_options(options)));
    LaunchCode made;
    made.device = kVtaDevice;
    made.bytes = vta::serialise(code.program);
    made.kernels = code.layers;
    made.detail = std::make_shared<const VtaLaunchCode>(std::move(code));
    return made;
  }

  std::vector<rules::RuleInfo> schedule_rules() const override { return rules::vta_rules(); }

  std::shared_ptr<BackendMemo> make_memo() const override {
    return std::make_shared<VtaLayerMemo>();
  }
};

}  // namespace

const Backend& vta_backend() {
  static const VtaBackend backend;
  return backend;
}

hw::Target as_target(const VtaTarget& vta) {
  const vta::Config& config = vta.config;
  hw::Target target = accelerator_target(kVtaDevice, vta);
  const auto memory = [&](const char* name, vta::Mem mem) {
    target.memories.push_back({name, 0, "device", config.depth(mem) * config.element_bytes(mem)});
  };
  memory("uop", vta::Mem::Uop);
  memory("inp", vta::Mem::Inp);
  memory("wgt", vta::Mem::Wgt);
  memory("acc", vta::Mem::Acc);
  target.queues = {
      {"load", {"inp", "wgt"}}, {"compute", {"uop", "inp", "wgt", "acc"}}, {"store", {"acc"}}};
  target.units = {
      fmt::format("gemm {}x{}x{}", config.batch(), config.block_in(), config.block_out()),
      fmt::format("alu {}x{}", config.batch(), config.block_out())};
  target.intrinsics = {"vta.gemm"};
  return target;
}

const VtaTarget* vta_target(const hw::Target& target) { return special_of<VtaTarget>(target); }

const VtaLaunchCode* vta_code(const LaunchCode& launch) { return detail_of<VtaLaunchCode>(launch); }

}  // namespace tilewright::compile
