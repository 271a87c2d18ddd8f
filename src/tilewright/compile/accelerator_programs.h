// Programs of an accelerator by themselves, from packages, dumps or text, for the verb `sim`:
// whatever its instructions are.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/accel/common/device.h"
#include "tilewright/compile/device_backend.h"
#include "tilewright/compile/expected_results.h"
#include "tilewright/compile/hardware_text.h"

namespace tilewright::compile {

/// `Own` has what is the accelerator's own, as types and static members:
///   Device, Program, Dump {program, expected}, Report, Finding;
///   kDumpFormat;
///   parse(code), parse_text(text, hardware, place) -> Result<Program>;
///   read_dump(folder) -> Result<Dump>;
///   assembly(program) -> the text that `sim --asm` prints; check(program) -> findings;
///   retime(name, program, hardware): takes over its clock and timing, and says if it is another;
///   open(id, program) -> Result<std::unique_ptr<Device>>;
///   execute(device, program, options) -> Result<Report>;
///   record(id, program, report) -> the launch record;
///   write_dump(folder, program, final image, times of the instructions if they were kept).
template <class Own>
class AcceleratorProgram final : public DeviceProgram {
 public:
  AcceleratorProgram(std::string name, typename Own::Dump dump)
      : name_(std::move(name)), dump_(std::move(dump)) {}

  size_t instructions() const override {
    size_t count = 0;
    for (const auto& run : dump_.program.runs) count += run.insns.size();
    return count;
  }

  std::vector<std::string> assembly() const override {
    const std::string text = Own::assembly(dump_.program);
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1)
      lines.push_back(text.substr(at, (end = text.find('\n', at)) - at));
    return lines;
  }

  std::vector<ProgramFinding> check() const override {
    std::vector<ProgramFinding> findings;
    for (const typename Own::Finding& f : Own::check(dump_.program))
      findings.push_back({true, std::string(name(f.rule)), f.run, f.insn, f.text});
    return findings;
  }

  Status retime(const std::string& hardware) override {
    return Own::retime(name_, dump_.program, hardware);
  }

  Result<SimulatedProgram> simulate(const LaunchSettings& settings) override {
    const typename Own::Program& program = dump_.program;
    device_ = TW_TRY(Own::open(settings.device, program));
    accel::LaunchOptions options;
    options.record_times = settings.record_times;
    typename Own::Report report = TW_TRY(Own::execute(*device_, program, options));
    times_ = report.times;
    SimulatedProgram done;
    TW_TRY_STATUS(
        compare_results(*device_, program, program.runs.size() - 1, dump_.expected, done));
    done.record = Own::record(
        device_->name(), std::make_shared<const typename Own::Program>(program), std::move(report));
    return done;
  }

  Status write_dump(const std::string& folder) const override {
    if (device_ == nullptr) return fail(ErrorKind::Usage, fmt::format("'{}' did not run", name_));
    const typename Own::Program& program = dump_.program;
    std::string final_image(program.image.size(), '\0');
    TW_TRY_STATUS(device_->read(program.base, final_image.data(), final_image.size()));
    return Own::write_dump(folder, program, std::move(final_image), times_);
  }

 private:
  std::string name_;
  typename Own::Dump dump_;
  std::unique_ptr<typename Own::Device> device_;  ///< of the last run
  std::vector<accel::InsnTime> times_;            ///< of it
};

template <class Own>
class AcceleratorProgramReader final : public ProgramReader {
 public:
  Result<std::unique_ptr<DeviceProgram>> parse(const std::string& name,
                                               std::string_view code) const override {
    return made(name, TW_TRY(Own::parse(code)));
  }

  Result<std::unique_ptr<DeviceProgram>> parse_text(const std::string& name, std::string_view text,
                                                    const std::string& place,
                                                    const std::string& hardware) const override {
    return made(name, TW_TRY(Own::parse_text(text, hardware, place)));
  }

  bool is_dump(const std::string& folder) const override {
    return dump_format(folder) == Own::kDumpFormat;
  }

  Result<std::unique_ptr<DeviceProgram>> read_dump(const std::string& name,
                                                   const std::string& folder) const override {
    return std::make_unique<AcceleratorProgram<Own>>(name, TW_TRY(Own::read_dump(folder)));
  }

 private:
  static std::unique_ptr<DeviceProgram> made(const std::string& name,
                                             typename Own::Program program) {
    typename Own::Dump dump;
    dump.program = std::move(program);
    return std::make_unique<AcceleratorProgram<Own>>(name, std::move(dump));
  }
};

}  // namespace tilewright::compile
