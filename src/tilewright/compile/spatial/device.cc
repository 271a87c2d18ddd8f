#include "tilewright/compile/spatial/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/accel/spatial/rtl/rtl.h"
#include "tilewright/accel/spatial/sim/fsim.h"
#include "tilewright/accel/spatial/sim/tsim.h"
#include "tilewright/base/names.h"
#include "tilewright/compile/accelerator_launch.h"
#include "tilewright/compile/spatial/backend.h"
#include "tilewright/compile/spatial/programs.h"

namespace tilewright::compile {
namespace {

std::string spatial_label(const spatial::Design& design) {
  return fmt::format("{} {}x{}, {} KiB, {} MHz", spatial::name(design.unit), design.rows,
                     design.cols, design.spad_kb, design.clock_mhz);
}

class SpatialRuntime final : public DeviceRuntime {
 public:
  std::vector<DeviceRow> devices() const override {
    return {{"spatial:fsim", "functional simulator: results, no time"},
            {"spatial:tsim", "cycle simulator: results and cycles", true},
            {"spatial:rtl", "the generated Verilog under Verilator", true}};
  }

  /// Tools of rtl are only looked for: building the model takes long.
  std::vector<DeviceState> states() const override {
    std::vector<DeviceState> states = DeviceRuntime::states();
    const Result<std::string> version = checked_version(kVerilator);
    if (!version)
      states.back().reason = fmt::format("{}: {}", version.error().what, version.error().why);
    return states;
  }

  Result<std::vector<TargetSummary>> targets() const override {
    const spatial::Design design;
    return std::vector<TargetSummary>{
        {"accelerators",
         {{"target", kSpatialDevice}, {"hw", design.name}, {"label", spatial_label(design)}},
         {fmt::format("{} --hw {}", kSpatialDevice, design.name), spatial_label(design),
          fmt::format("{} MAC/cycle", design.units()), "simulators"}}};
  }

  Result<std::unique_ptr<runtime::Launch>> load_launch(
      const std::string& name, std::string_view code, const LaunchSettings& settings,
      const std::shared_ptr<LaunchLog>& log) const override {
    auto program = std::make_shared<const spatial::Program>(TW_TRY(spatial::parse_program(code)));
    std::shared_ptr<spatial::Device> device =
        TW_TRY(open_spatial(settings.device, program->design));
    using SpatialLaunch = AcceleratorLaunch<spatial::Device, spatial::Program>;
    const auto record = [id = device->name(), program](spatial::LaunchReport report) {
      return std::make_shared<SpatialLaunchRecord>(id, program, std::move(report));
    };
    const auto dump = [](const std::string& folder, const spatial::Program& dumped,
                         const std::string& final_image) {
      return spatial::write_dump(folder, dumped, final_image);
    };
    return SpatialLaunch::create(name, program, std::move(device), settings, log, {record, dump});
  }

  Result<LaunchSummary> summary(const std::string& name, std::string_view code) const override {
    const spatial::Program program = TW_TRY(spatial::parse_program(code));
    const spatial::Design& hw = program.design;
    size_t instructions = 0;
    for (const spatial::Run& run : program.runs) instructions += run.insns.size();
    LaunchSummary summary;
    summary.list = "accelerators";
    summary.line = fmt::format("{}: target {}, hardware {} ({}), {} instructions", name,
                               kSpatialDevice, hw.name, spatial_label(hw), instructions);
    summary.json = {{"program", name},
                    {"target", kSpatialDevice},
                    {"hw", hw.name},
                    {"label", spatial_label(hw)},
                    {"clock_mhz", hw.clock_mhz},
                    {"instructions", instructions}};
    return summary;
  }

  Result<bool> fits_hardware(const std::string& name, std::string_view code,
                             const std::string& hardware) const override {
    TW_TRY_STATUS(
        check_spatial_hardware(name, TW_TRY(spatial::parse_program(code)).design, hardware));
    return true;
  }

  const ProgramReader* programs() const override { return &spatial_programs(); }
  const HardwareReader* hardware() const override { return &spatial_hardware(); }
};

}  // namespace

const DeviceRuntime& spatial_runtime() {
  static const SpatialRuntime runtime;
  return runtime;
}

Result<std::unique_ptr<spatial::Device>> open_spatial(const std::string& id,
                                                      const spatial::Design& design) {
  if (id.empty() || id == kSpatialDevice || id == "spatial:fsim") return spatial::make_fsim(design);
  if (id == "spatial:tsim") return spatial::make_tsim(design);
  if (id == "spatial:rtl") return spatial::make_rtl(design);
  std::vector<std::string> ids;
  for (const DeviceRow& row : spatial_runtime().devices()) ids.push_back(row.id);
  return fail(ErrorKind::Device, fmt::format("'{}' cannot run code for spatial", id),
              fmt::format("devices for it: {}", fmt::join(ids, ", ")), did_you_mean(id, ids));
}

}  // namespace tilewright::compile
