#include "tilewright/compile/vta/programs.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/replay.h"
#include "tilewright/compile/hardware_text.h"
#include "tilewright/compile/vta/device.h"
#include "tilewright/compile/vta/hardware_fit.h"

namespace tilewright::compile {
namespace {

class VtaProgram final : public DeviceProgram {
 public:
  VtaProgram(std::string name, vta::Dump dump) : name_(std::move(name)), dump_(std::move(dump)) {}

  size_t instructions() const override {
    size_t count = 0;
    for (const vta::Run& run : dump_.program.runs) count += run.insns.size();
    return count;
  }

  std::vector<std::string> assembly() const override {
    const vta::Program& program = dump_.program;
    std::vector<std::string> lines;
    for (const vta::Run& run : program.runs)
      for (size_t i = 0; i < run.insns.size(); ++i) {
        for (const vta::Span& span : run.spans)
          if (span.begin == i) lines.push_back("; " + span.name);
        lines.push_back(fmt::format("{:6}  {}", i, vta::disassemble(program.config, run.insns[i])));
      }
    return lines;
  }

  std::vector<ProgramFinding> check() const override {
    std::vector<ProgramFinding> findings;
    for (const vta::Finding& finding : vta::check_program(dump_.program))
      findings.push_back({finding.error, std::string(vta::name(finding.rule)), finding.run,
                          finding.insn, finding.text});
    return findings;
  }

  Status retime(const std::string& hardware) override {
    const vta::Config config = TW_TRY(vta::load_config(hardware));
    vta::Config& own = dump_.program.config;
    TW_TRY_STATUS(check_hardware(name_, own, hardware, config));
    own = config;
    return {};
  }

  Result<SimulatedProgram> simulate(const LaunchSettings& settings) override {
    const vta::Program& program = dump_.program;
    device_ = TW_TRY(open_vta(settings.device, program.config, program.end()));
    vta::LaunchOptions launch;
    launch.record_times = settings.record_times;
    vta::Replay replay = TW_TRY(vta::replay(*device_, dump_, launch));
    SimulatedProgram done;
    done.record = std::make_shared<VtaLaunchRecord>(
        device_->name(), std::make_shared<const vta::Program>(program), std::move(replay.report));
    done.compared = replay.compared;
    if (const auto& m = replay.mismatch)
      done.mismatch = {m->where, m->run, m->first, m->actual, m->expected, m->count, m->compared};
    return done;
  }

  Status write_dump(const std::string& folder) const override {
    const vta::Program& program = dump_.program;
    std::string final_image(program.image.size(), '\0');
    if (device_ == nullptr) return fail(ErrorKind::Usage, fmt::format("'{}' did not run", name_));
    TW_TRY_STATUS(device_->read(program.base, final_image.data(), final_image.size()));
    return vta::write_dump(folder, program, final_image);
  }

 private:
  std::string name_;
  vta::Dump dump_;
  std::unique_ptr<vta::Device> device_;  ///< of the last run
};

class VtaProgramReader final : public ProgramReader {
 public:
  Result<std::unique_ptr<DeviceProgram>> parse(const std::string& name,
                                               std::string_view code) const override {
    vta::Dump dump;
    dump.program = TW_TRY(vta::parse_program(code));
    return std::make_unique<VtaProgram>(name, std::move(dump));
  }

  bool is_dump(const std::string& folder) const override {
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::path(folder) / "manifest.json", error))
      return false;
    // One that says nothing clear is read here, for its problems.
    const std::string format = dump_format(folder);
    return format == "vta-program-dump" || !format.ends_with("-program-dump");
  }

  Result<std::unique_ptr<DeviceProgram>> read_dump(const std::string& name,
                                                   const std::string& folder) const override {
    return std::make_unique<VtaProgram>(name, TW_TRY(vta::read_dump(folder)));
  }
};

}  // namespace

const ProgramReader& vta_programs() {
  static const VtaProgramReader reader;
  return reader;
}

}  // namespace tilewright::compile
