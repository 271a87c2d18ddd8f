// DPU programs by themselves, from packages, dumps or text: for the verb `sim`.
#include "tilewright/accel/dpu/assembly.h"
#include "tilewright/accel/dpu/check.h"
#include "tilewright/compile/accelerator_programs.h"
#include "tilewright/compile/dpu/device.h"

namespace tilewright::compile {
namespace {

struct DpuPrograms {
  using Device = dpu::Device;
  using Program = dpu::Program;
  using Dump = dpu::Dump;
  using Report = dpu::LaunchReport;
  using Finding = dpu::Finding;
  static constexpr std::string_view kDumpFormat = "dpu-program-dump";

  static Result<Program> parse(std::string_view code) { return dpu::parse_program(code); }
  static Result<Program> parse_text(std::string_view text, const std::string& hardware,
                                    const std::string& place) {
    const dpu::Config config =
        TW_TRY(dpu::load_config(hardware.empty() ? dpu::Config().name : hardware));
    return dpu::parse_assembly(text, config, place);
  }
  static Result<Dump> read_dump(const std::string& folder) { return dpu::read_dump(folder); }
  static std::string assembly(const Program& program) { return dpu::assembly(program.runs); }
  static std::vector<Finding> check(const Program& program) { return dpu::check_program(program); }
  static Status retime(const std::string& name, Program& program, const std::string& hardware) {
    const dpu::Config other = TW_TRY(dpu::load_config(hardware));
    program.config.clock_mhz = other.clock_mhz;
    program.config.timing = other.timing;
    return check_dpu_hardware(name, program.config, hardware);
  }
  static Result<std::unique_ptr<Device>> open(const std::string& id, const Program& program) {
    return open_dpu(id, program.config, program.end());
  }
  static Result<Report> execute(Device& device, const Program& program,
                                const accel::LaunchOptions& options) {
    return dpu::execute(device, program, options);
  }
  static std::shared_ptr<LaunchRecord> record(std::string id,
                                              std::shared_ptr<const Program> program,
                                              Report report) {
    return std::make_shared<DpuLaunchRecord>(std::move(id), std::move(program), std::move(report));
  }
  static Status write_dump(const std::string& folder, const Program& program,
                           std::string final_image, const std::vector<accel::InsnTime>& times) {
    dpu::DumpResults results;
    results.final_image = std::move(final_image);
    if (!times.empty()) results.times.push_back(times);
    return dpu::write_dump(folder, program, results);
  }
};

}  // namespace

const ProgramReader& dpu_programs() {
  static const AcceleratorProgramReader<DpuPrograms> reader;
  return reader;
}

}  // namespace tilewright::compile
