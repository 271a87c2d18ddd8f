#include "tilewright/compile/fpga/backend.h"

#include <fmt/format.h>

#include "tilewright/compile/accelerator_backend.h"
#include "tilewright/compile/fpga/launch.h"
#include "tilewright/compile/fpga/program.h"
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
    FpgaTarget fpga{TW_TRY(hw::load_fpga_device(hw))};
    TW_TRY_STATUS(refuse_tf32(name, options));
    return as_target(fpga);
  }

  Result<std::optional<QuantizedModel>> prepare(const graph::Graph&, const QuantizeSettings&,
                                                const CompileOptions&) const override {
    return fail(ErrorKind::Unsupported, "models are not compiled for FPGAs",
                "there is no code for their layers", "tilewright compile MODEL --target cpu");
  }

  bool takes_funcs() const override { return true; }
  Result<std::optional<LaunchCode>> compile_func(const Func& func,
                                                 const CompileOptions& options) const override {
    const hw::FpgaDevice& device = fpga_target(options.target)->device;
    auto detail = std::make_shared<FpgaLaunchCode>();
    FpgaProgram& program = detail->program;
    program = fpga_program(func, device, options.network);
    options.observer.say(program.remark);
    LaunchCode made;
    made.device = kFpgaTarget;
    made.bytes = TW_TRY(fpga_code(program.func, device));
    made.notes = TW_TRY(fpga_notes(program, device));
    made.stale_records = program.stale_records;
    made.record = program.record;
    if (!program.steps.empty()) {
      KernelReport& report = made.kernels.emplace_back();
      report.steps = {func.name};
      report.func = func;
      report.trace = program.steps;
      report.scheduled = program.func;
      report.record = program.record;
    }
    made.detail = std::move(detail);
    return std::optional(std::move(made));
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
