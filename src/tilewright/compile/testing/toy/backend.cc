#include "tilewright/compile/testing/toy/backend.h"

#include <fmt/format.h>

#include "tilewright/compile/accelerator_backend.h"
#include "tilewright/compile/accelerator_launch.h"
#include "tilewright/compile/quantize_model.h"
#include "tilewright/compile/testing/toy/layers.h"

namespace tilewright::toy {
namespace {

class ToyRecord final : public compile::LaunchRecord {
 public:
  ToyRecord(std::string device, LaunchReport report)
      : device_(std::move(device)), report_(std::move(report)) {}

  std::string device() const override { return device_; }
  std::vector<compile::Count> counters() const override {
    std::vector<compile::Count> counts;
    for_each_field(report_.counters, [&](std::string_view name, uint64_t value) {
      counts.push_back({std::string(name), value});
    });
    return counts;
  }

 private:
  std::string device_;
  LaunchReport report_;
};

class ToyRuntime final : public compile::DeviceRuntime {
 public:
  std::vector<compile::DeviceRow> devices() const override {
    return {{"toy:sim", "functional simulator: results, no time"}};
  }

  Result<std::vector<compile::TargetSummary>> targets() const override {
    return std::vector<compile::TargetSummary>{
        {"accelerators",
         {{"target", kName}, {"hw", kName}},
         {kName, fmt::format("{} + {} bytes", kBufBytes, kOutBytes), "1 dot", "simulator"}}};
  }

  Result<std::unique_ptr<runtime::Launch>> load_launch(
      const std::string& name, std::string_view code, const compile::LaunchSettings& settings,
      const std::shared_ptr<compile::LaunchLog>& log) const override {
    auto program = std::make_shared<const Program>(TW_TRY(parse_program(code)));
    std::shared_ptr<Device> device = make_simulator(program->end());
    const auto record = [id = device->name()](LaunchReport report) {
      return std::make_shared<ToyRecord>(id, std::move(report));
    };
    return compile::AcceleratorLaunch<Device, Program>::create(
        name, std::move(program), std::move(device), settings, log, {record, nullptr});
  }

  Result<compile::LaunchSummary> summary(const std::string& name,
                                         std::string_view code) const override {
    const Program program = TW_TRY(parse_program(code));
    compile::LaunchSummary summary;
    summary.list = "accelerators";
    summary.json = {
        {"program", name}, {"target", kName}, {"instructions", program.runs[0].insns.size()}};
    summary.line =
        fmt::format("{}: target {}, {} instructions", name, kName, program.runs[0].insns.size());
    return summary;
  }
};

class ToyBackend final : public compile::AcceleratorBackend {
 public:
  std::string_view name() const override { return kName; }

  const compile::DeviceRuntime& runtime() const override {
    static const ToyRuntime runtime;
    return runtime;
  }

  Result<hw::Target> target(const std::string& name,
                            const compile::TargetOptions& options) const override {
    if (!options.hw.empty())
      return fail(ErrorKind::Usage, "toy has one configuration", {}, "leave --hw out");
    TW_TRY_STATUS(compile::refuse_options_of_others(name, options));
    hw::Target target = compile::accelerator_target(kName, {});
    target.memories = {{"buf", 0, "device", kBufBytes}, {"out", 0, "device", kOutBytes}};
    target.queues = {{"load", {"buf", "out"}}, {"compute", {"buf", "out"}}};
    target.units = {"dot"};
    return target;
  }

  Result<std::optional<compile::QuantizedModel>> prepare(
      const graph::Graph& graph, const compile::QuantizeSettings& settings,
      const compile::CompileOptions& options) const override {
    graph::QuantizeOptions form;
    form.wide_outputs = false;  // sums cannot be read twice
    compile::QuantizedModel model = TW_TRY(compile::quantize_model(graph, settings, options, form));
    model.laid_out = model.quantized.graph;
    model.placements = toy::place(model.laid_out);
    if (!settings.allow_cpu) TW_TRY_STATUS(compile::all_placed(model.placements, kName));
    return std::optional(std::move(model));
  }

  Result<std::vector<std::string>> place(const graph::Graph& graph,
                                         const compile::CompileOptions&) const override {
    return compile::devices_of(graph, toy::place(graph), kName);
  }

  Result<compile::LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                             const compile::CompileOptions&) const override {
    const Program program = TW_TRY(toy::compile(graph, launch));
    compile::LaunchCode code;
    code.device = kName;
    code.bytes = serialise(program);
    return code;
  }
};

}  // namespace

const compile::Backend& toy_backend() {
  static const ToyBackend backend;
  return backend;
}

}  // namespace tilewright::toy
