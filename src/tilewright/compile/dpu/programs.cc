// DPU programs by themselves, from packages or dumps: for the verb `sim`.
#include <fmt/format.h>

#include "tilewright/accel/dpu/assembly.h"
#include "tilewright/accel/dpu/check.h"
#include "tilewright/compile/dpu/device.h"
#include "tilewright/compile/expected_results.h"
#include "tilewright/compile/hardware_text.h"

namespace tilewright::compile {
namespace {

class DpuProgram final : public DeviceProgram {
 public:
  DpuProgram(std::string name, dpu::Dump dump) : name_(std::move(name)), dump_(std::move(dump)) {}

  size_t instructions() const override {
    size_t count = 0;
    for (const dpu::Run& run : dump_.program.runs) count += run.insns.size();
    return count;
  }

  std::vector<std::string> assembly() const override {
    const std::string text = dpu::assembly(dump_.program.runs);
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1)
      lines.push_back(text.substr(at, (end = text.find('\n', at)) - at));
    return lines;
  }

  std::vector<ProgramFinding> check() const override {
    std::vector<ProgramFinding> findings;
    for (const dpu::Finding& finding : dpu::check_program(dump_.program))
      findings.push_back(
          {true, std::string(dpu::name(finding.rule)), finding.run, finding.insn, finding.text});
    return findings;
  }

  Status retime(const std::string& hardware) override {
    const dpu::Config other = TW_TRY(dpu::load_config(hardware));
    dpu::Config& own = dump_.program.config;
    own.clock_mhz = other.clock_mhz;
    own.timing = other.timing;
    return check_dpu_hardware(name_, own, hardware);
  }

  Result<SimulatedProgram> simulate(const LaunchSettings& settings) override {
    const dpu::Program& program = dump_.program;
    device_ = TW_TRY(open_dpu(settings.device, program.config, program.end()));
    accel::LaunchOptions options;
    options.record_times = settings.record_times;
    dpu::LaunchReport report = TW_TRY(dpu::execute(*device_, program, options));
    times_ = report.times;
    SimulatedProgram done;
    TW_TRY_STATUS(
        compare_results(*device_, program, program.runs.size() - 1, dump_.expected, done));
    done.record = std::make_shared<DpuLaunchRecord>(
        device_->name(), std::make_shared<const dpu::Program>(program), std::move(report));
    return done;
  }

  Status write_dump(const std::string& folder) const override {
    if (device_ == nullptr) return fail(ErrorKind::Usage, fmt::format("'{}' did not run", name_));
    const dpu::Program& program = dump_.program;
    dpu::DumpResults results;
    results.final_image.resize(program.image.size());
    TW_TRY_STATUS(
        device_->read(program.base, results.final_image.data(), results.final_image.size()));
    if (!times_.empty()) results.times.push_back(times_);
    return dpu::write_dump(folder, program, results);
  }

 private:
  std::string name_;
  dpu::Dump dump_;
  std::unique_ptr<dpu::Device> device_;  ///< of the last run
  std::vector<dpu::InsnTime> times_;     ///< of it
};

class DpuProgramReader final : public ProgramReader {
 public:
  Result<std::unique_ptr<DeviceProgram>> parse(const std::string& name,
                                               std::string_view code) const override {
    dpu::Dump dump;
    dump.program = TW_TRY(dpu::parse_program(code));
    return std::make_unique<DpuProgram>(name, std::move(dump));
  }

  Result<std::unique_ptr<DeviceProgram>> parse_text(const std::string& name, std::string_view text,
                                                    const std::string& place,
                                                    const std::string& hardware) const override {
    const dpu::Config config =
        TW_TRY(dpu::load_config(hardware.empty() ? dpu::Config().name : hardware));
    dpu::Dump dump;
    dump.program = TW_TRY(dpu::parse_assembly(text, config, place));
    return std::make_unique<DpuProgram>(name, std::move(dump));
  }

  bool is_dump(const std::string& folder) const override {
    return dump_format(folder) == "dpu-program-dump";
  }

  Result<std::unique_ptr<DeviceProgram>> read_dump(const std::string& name,
                                                   const std::string& folder) const override {
    return std::make_unique<DpuProgram>(name, TW_TRY(dpu::read_dump(folder)));
  }
};

}  // namespace

const ProgramReader& dpu_programs() {
  static const DpuProgramReader reader;
  return reader;
}

}  // namespace tilewright::compile
