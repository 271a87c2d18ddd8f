#include "tilewright/compile/spatial/programs.h"

#include <fmt/format.h>

#include "tilewright/accel/spatial/assembly.h"
#include "tilewright/accel/spatial/check.h"
#include "tilewright/compile/expected_results.h"
#include "tilewright/compile/hardware_text.h"
#include "tilewright/compile/spatial/device.h"

namespace tilewright::compile {
namespace {

class SpatialProgram final : public DeviceProgram {
 public:
  SpatialProgram(std::string name, spatial::Dump dump)
      : name_(std::move(name)), dump_(std::move(dump)) {}

  size_t instructions() const override {
    size_t count = 0;
    for (const spatial::Run& run : dump_.program.runs) count += run.insns.size();
    return count;
  }

  std::vector<std::string> assembly() const override {
    const std::string text = spatial::assembly(dump_.program.runs);
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1)
      lines.push_back(text.substr(at, (end = text.find('\n', at)) - at));
    return lines;
  }

  std::vector<ProgramFinding> check() const override {
    std::vector<ProgramFinding> findings;
    for (const spatial::Finding& finding : spatial::check_program(dump_.program))
      findings.push_back({true, std::string(spatial::name(finding.rule)), finding.run, finding.insn,
                          finding.text});
    return findings;
  }

  Status retime(const std::string& hardware) override {
    const spatial::Design other = TW_TRY(load_design(hardware));
    spatial::Design& own = dump_.program.design;
    own.clock_mhz = other.clock_mhz;
    own.timing = other.timing;
    return check_spatial_hardware(name_, own, hardware);
  }

  Result<SimulatedProgram> simulate(const LaunchSettings& settings) override {
    const spatial::Program& program = dump_.program;
    device_ = TW_TRY(open_spatial(settings.device, program.design));
    accel::LaunchOptions options;
    options.record_times = settings.record_times;
    spatial::LaunchReport report = TW_TRY(spatial::execute(*device_, program, options));
    SimulatedProgram done;
    TW_TRY_STATUS(
        compare_results(*device_, program, program.runs.size() - 1, dump_.expected, done));
    done.record = std::make_shared<SpatialLaunchRecord>(
        device_->name(), std::make_shared<const spatial::Program>(program), std::move(report));
    return done;
  }

  Status write_dump(const std::string& folder) const override {
    if (device_ == nullptr) return fail(ErrorKind::Usage, fmt::format("'{}' did not run", name_));
    const spatial::Program& program = dump_.program;
    std::string final_image(program.image.size(), '\0');
    TW_TRY_STATUS(device_->read(program.base, final_image.data(), final_image.size()));
    return spatial::write_dump(folder, program, final_image);
  }

 private:
  std::string name_;
  spatial::Dump dump_;
  std::unique_ptr<spatial::Device> device_;  ///< of the last run
};

class SpatialProgramReader final : public ProgramReader {
 public:
  Result<std::unique_ptr<DeviceProgram>> parse(const std::string& name,
                                               std::string_view code) const override {
    spatial::Dump dump;
    dump.program = TW_TRY(spatial::parse_program(code));
    return std::make_unique<SpatialProgram>(name, std::move(dump));
  }

  Result<std::unique_ptr<DeviceProgram>> parse_text(const std::string& name, std::string_view text,
                                                    const std::string& place,
                                                    const std::string& hardware) const override {
    const spatial::Design design =
        TW_TRY(load_design(hardware.empty() ? spatial::Design().name : hardware));
    spatial::Dump dump;
    dump.program = TW_TRY(spatial::parse_assembly(text, design, place));
    return std::make_unique<SpatialProgram>(name, std::move(dump));
  }

  bool is_dump(const std::string& folder) const override {
    return dump_format(folder) == "spatial-program-dump";
  }

  Result<std::unique_ptr<DeviceProgram>> read_dump(const std::string& name,
                                                   const std::string& folder) const override {
    return std::make_unique<SpatialProgram>(name, TW_TRY(spatial::read_dump(folder)));
  }
};

}  // namespace

const ProgramReader& spatial_programs() {
  static const SpatialProgramReader reader;
  return reader;
}

}  // namespace tilewright::compile
