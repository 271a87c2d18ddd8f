// Gemmini programs by themselves, from packages, dumps or text: for the verb `sim`.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/gemmini/check.h"
#include "tilewright/accel/gemmini/work.h"
#include "tilewright/compile/expected_results.h"
#include "tilewright/compile/gemmini/device.h"
#include "tilewright/compile/hardware_text.h"

namespace tilewright::compile {
namespace {

class GemminiProgram final : public DeviceProgram {
 public:
  GemminiProgram(std::string name, gemmini::Dump dump)
      : name_(std::move(name)), dump_(std::move(dump)) {}

  size_t instructions() const override {
    size_t count = 0;
    for (const gemmini::Run& run : dump_.program.runs) count += run.insns.size();
    return count;
  }
  std::vector<std::string> assembly() const override {
    const std::string text = gemmini::assembly(dump_.program);
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1)
      lines.push_back(text.substr(at, (end = text.find('\n', at)) - at));
    return lines;
  }
  std::vector<ProgramFinding> check() const override {
    std::vector<ProgramFinding> findings;
    for (const gemmini::Finding& f : gemmini::check_program(dump_.program))
      findings.push_back({true, std::string(gemmini::name(f.rule)), f.run, f.insn, f.text});
    return findings;
  }
  /// There is no timing.
  Status retime(const std::string& hardware) override {
    return check_gemmini_hardware(name_, dump_.program.config, hardware);
  }

  Result<SimulatedProgram> simulate(const LaunchSettings& settings) override {
    const gemmini::Program& program = dump_.program;
    device_ = TW_TRY(open_gemmini(settings.device, program.config, program.end()));
    gemmini::LaunchReport report = TW_TRY(gemmini::execute(*device_, program));
    SimulatedProgram done;
    TW_TRY_STATUS(
        compare_results(*device_, program, program.runs.size() - 1, dump_.expected, done));
    done.record = std::make_shared<GemminiRecord>(device_->name(), std::move(report));
    return done;
  }

  Status write_dump(const std::string& folder) const override {
    if (device_ == nullptr) return fail(ErrorKind::Usage, fmt::format("'{}' did not run", name_));
    const gemmini::Program& program = dump_.program;
    std::string image(program.image.size(), '\0');
    TW_TRY_STATUS(device_->read(program.base, image.data(), image.size()));
    return gemmini::write_dump(folder, program, image);
  }

 private:
  std::string name_;
  gemmini::Dump dump_;
  std::unique_ptr<gemmini::Device> device_;  ///< of the last run
};

/// Where the DRAM ends that the commands touch.
uint64_t dram_end(const gemmini::Config& config, const std::vector<gemmini::Insn>& insns) {
  gemmini::Context context(config);
  uint64_t end = accel::kPage;
  for (const gemmini::Insn& insn : insns) {
    const Result<gemmini::Work> work = context.next(insn);
    if (!work) continue;  // the checker says so
    gemmini::DramSpan span;
    if (const auto* in = std::get_if<gemmini::MoveIn>(&*work); in != nullptr && in->dram != 0)
      span = gemmini::dram_span(in->dram, in->stride, in->to.rows, in->to.cols * in->element_bytes);
    if (const auto* out = std::get_if<gemmini::MoveOut>(&*work))
      span = gemmini::dram_span(out->dram, out->stride, out->from.rows,
                                out->from.cols * out->element_bytes);
    end = std::max(end, span.end);
  }
  return end;
}

class GemminiProgramReader final : public ProgramReader {
 public:
  Result<std::unique_ptr<DeviceProgram>> parse(const std::string& name,
                                               std::string_view code) const override {
    gemmini::Dump dump;
    dump.program = TW_TRY(gemmini::parse_program(code));
    return std::make_unique<GemminiProgram>(name, std::move(dump));
  }

  /// DRAM is zeros, as far as the commands reach.
  Result<std::unique_ptr<DeviceProgram>> parse_text(const std::string& name, std::string_view text,
                                                    const std::string& place,
                                                    const std::string& hardware) const override {
    constexpr uint64_t kMost = uint64_t{1} << 30;
    gemmini::Dump dump;
    gemmini::Program& program = dump.program;
    program.config = TW_TRY(gemmini::load_config(hardware.empty() ? "gemmini" : hardware));
    uint64_t end = 0;
    for (std::vector<gemmini::Insn>& insns : TW_TRY(gemmini::parse_lines(text, place))) {
      end = std::max(end, dram_end(program.config, insns));
      program.runs.push_back({{}, std::move(insns), {}});
    }
    if (end > kMost)
      return fail(
          ErrorKind::Capacity,
          fmt::format("the commands reach byte {:#x} of DRAM, {:#x} are too many", end, kMost));
    program.image.assign(end - program.base, '\0');
    return std::make_unique<GemminiProgram>(name, std::move(dump));
  }

  bool is_dump(const std::string& folder) const override {
    return dump_format(folder) == "gemmini-program-dump";
  }
  Result<std::unique_ptr<DeviceProgram>> read_dump(const std::string& name,
                                                   const std::string& folder) const override {
    return std::make_unique<GemminiProgram>(name, TW_TRY(gemmini::read_dump(folder)));
  }
};

}  // namespace

const ProgramReader& gemmini_programs() {
  static const GemminiProgramReader reader;
  return reader;
}

}  // namespace tilewright::compile
