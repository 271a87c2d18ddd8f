#include "tilewright/compile/fpga/backend.h"

#include <fmt/format.h>

#include "tilewright/compile/accelerator_backend.h"
#include "tilewright/compile/fpga/layers.h"
#include "tilewright/compile/pass_names.h"
#include "tilewright/compile/quantize_model.h"
#include "tilewright/hw/fpga_device_file.h"

namespace tilewright::compile {
namespace {

constexpr int64_t kBram18Bytes = 18 * 1024 / 8, kBram4Bytes = 4 * 1024 / 8,
                  kUramBytes = 288 * 1024 / 8;

class FpgaBackend final : public AcceleratorBackend {
 public:
  std::string_view name() const override { return kFpgaTarget; }
  const DeviceRuntime& runtime() const override { return fpga_runtime(); }

  Result<hw::Target> target(const std::string& name, const TargetOptions& options) const override {
    const std::string hw = options.hw.empty() ? hw::fpga_names().front() : options.hw;
    const FpgaTarget fpga{TW_TRY(hw::load_fpga_device(hw)), !options.own_designs};
    TW_TRY_STATUS(refuse_tf32(name, options));
    return as_target(fpga);
  }

  bool takes_floats() const override { return true; }
  Result<std::optional<QuantizedModel>> prepare(const graph::Graph& graph,
                                                const QuantizeSettings& settings,
                                                const CompileOptions& options) const override {
    QuantizedModel result;
    const bool integers = settings.samples || graph::is_qdq(graph);
    if (integers) {
      graph::QuantizeOptions form;
      form.target.first_convolutions = true;
      form.wide_outputs = false;  // sums cannot be read twice
      result = TW_TRY(quantize_model(graph, settings, options, form));
      result.laid_out = result.quantized.graph;
    } else {
      result.laid_out = graph;
    }
    auto memo = std::make_shared<FpgaMemo>(integers);
    CompileOptions own = options;
    own.memo = result.memo = memo;
    own.network = {};  // records say how designs are made, not which there are
    const graph::Graph planned = TW_TRY(plan_graph(result.laid_out, own)).graph;
    FpgaPlaces places = TW_TRY(place_on_fpga(planned, own, *memo));
    options.observer.say(places.summary);
    result.placements = std::move(places.nodes);
    if (!settings.allow_cpu) TW_TRY_STATUS(all_placed(result.placements, kFpgaTarget));
    return std::optional(std::move(result));
  }

  /// Those of plain values: designs read and write tensors as the model has them.
  std::string passes(const CompileOptions& options) const override {
    const auto* memo = dynamic_cast<const FpgaMemo*>(options.memo.get());
    if (memo != nullptr && memo->integers()) return {};
    return pass_names(options, {"integer_products", "zero_points", "join_groups", "block_layout"});
  }

  Result<std::vector<std::string>> place(const graph::Graph& graph,
                                         const CompileOptions& options) const override {
    FpgaMemo own;
    return TW_TRY(place_on_fpga(graph, options, memo_of(options, own))).devices;
  }

  Result<LaunchCode> compile_launch(const graph::Graph& graph, const graph::Group& launch,
                                    const CompileOptions& options) const override {
    FpgaMemo own;
    return compile_fpga_layers(graph, launch, options, memo_of(options, own));
  }

  bool takes_funcs() const override { return true; }
  Result<std::optional<LaunchCode>> compile_func(const Func& func,
                                                 const CompileOptions& options) const override {
    return std::optional(TW_TRY(compile_fpga_program(func, options)));
  }

  std::shared_ptr<BackendMemo> make_memo() const override { return std::make_shared<FpgaMemo>(); }

 private:
  /// `own` where the caller keeps none.
  static FpgaMemo& memo_of(const CompileOptions& options, FpgaMemo& own) {
    auto* memo = dynamic_cast<FpgaMemo*>(options.memo.get());
    return memo == nullptr ? own : *memo;
  }
};

}  // namespace

const Backend& fpga_backend() {
  static const FpgaBackend backend;
  return backend;
}

hw::Target as_target(const FpgaTarget& fpga) {
  const hw::FpgaDevice& device = fpga.device;
  hw::Target target = accelerator_target(kFpgaTarget, fpga);
  const bool ice40 = device.family == hw::FpgaFamily::Ice40;
  const auto add = [&](const char* name, int64_t blocks, int64_t bytes) {
    if (blocks > 0) target.memories.push_back({name, 0, "device", blocks * bytes, blocks});
  };
  add("bram", device.cells.bram18, ice40 ? kBram4Bytes : kBram18Bytes);
  add("uram", device.cells.uram, kUramBytes);
  target.memories.push_back({device.memory.name, 1, "device",
                             device.memory.bytes * device.memory.channels, device.memory.channels});
  target.units = {fmt::format("{} DSPs", device.cells.dsps)};
  return target;
}

const FpgaTarget* fpga_target(const hw::Target& target) { return special_of<FpgaTarget>(target); }

}  // namespace tilewright::compile
