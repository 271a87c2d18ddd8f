#include "tilewright/compile/spatial/programs.h"

#include "tilewright/accel/spatial/assembly.h"
#include "tilewright/accel/spatial/check.h"
#include "tilewright/compile/accelerator_programs.h"
#include "tilewright/compile/spatial/device.h"

namespace tilewright::compile {
namespace {

struct SpatialPrograms {
  using Device = spatial::Device;
  using Program = spatial::Program;
  using Dump = spatial::Dump;
  using Report = spatial::LaunchReport;
  using Finding = spatial::Finding;
  static constexpr std::string_view kDumpFormat = "spatial-program-dump";

  static Result<Program> parse(std::string_view code) { return spatial::parse_program(code); }
  static Result<Program> parse_text(std::string_view text, const std::string& hardware,
                                    const std::string& place) {
    const spatial::Design design =
        TW_TRY(load_design(hardware.empty() ? spatial::Design().name : hardware));
    return spatial::parse_assembly(text, design, place);
  }
  static Result<Dump> read_dump(const std::string& folder) { return spatial::read_dump(folder); }
  static std::string assembly(const Program& program) { return spatial::assembly(program.runs); }
  static std::vector<Finding> check(const Program& program) {
    return spatial::check_program(program);
  }
  static Status retime(const std::string& name, Program& program, const std::string& hardware) {
    const spatial::Design other = TW_TRY(load_design(hardware));
    program.design.clock_mhz = other.clock_mhz;
    program.design.timing = other.timing;
    return check_spatial_hardware(name, program.design, hardware);
  }
  static Result<std::unique_ptr<Device>> open(const std::string& id, const Program& program) {
    return open_spatial(id, program.design);
  }
  static Result<Report> execute(Device& device, const Program& program,
                                const accel::LaunchOptions& options) {
    return spatial::execute(device, program, options);
  }
  static std::shared_ptr<LaunchRecord> record(std::string id,
                                              std::shared_ptr<const Program> program,
                                              Report report) {
    return std::make_shared<SpatialLaunchRecord>(std::move(id), std::move(program),
                                                 std::move(report));
  }
  static Status write_dump(const std::string& folder, const Program& program,
                           std::string final_image, const std::vector<accel::InsnTime>&) {
    return spatial::write_dump(folder, program, final_image);
  }
};

}  // namespace

const ProgramReader& spatial_programs() {
  static const AcceleratorProgramReader<SpatialPrograms> reader;
  return reader;
}

}  // namespace tilewright::compile
