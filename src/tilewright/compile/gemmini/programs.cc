// Gemmini programs by themselves, from packages, dumps or text: for the verb `sim`.
#include <algorithm>

#include "tilewright/accel/gemmini/check.h"
#include "tilewright/accel/gemmini/work.h"
#include "tilewright/compile/accelerator_programs.h"
#include "tilewright/compile/gemmini/device.h"

namespace tilewright::compile {
namespace {

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

struct GemminiPrograms {
  using Device = gemmini::Device;
  using Program = gemmini::Program;
  using Dump = gemmini::Dump;
  using Report = gemmini::LaunchReport;
  using Finding = gemmini::Finding;
  static constexpr std::string_view kDumpFormat = "gemmini-program-dump";

  static Result<Program> parse(std::string_view code) { return gemmini::parse_program(code); }
  /// DRAM is zeros, as far as the commands reach.
  static Result<Program> parse_text(std::string_view text, const std::string& hardware,
                                    const std::string& place) {
    constexpr uint64_t kMost = uint64_t{1} << 30;
    gemmini::Program program;
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
    return program;
  }
  static Result<Dump> read_dump(const std::string& folder) { return gemmini::read_dump(folder); }
  static std::string assembly(const Program& program) { return gemmini::assembly(program); }
  static std::vector<Finding> check(const Program& program) {
    return gemmini::check_program(program);
  }
  /// There is no timing.
  static Status retime(const std::string& name, Program& program, const std::string& hardware) {
    return check_gemmini_hardware(name, program.config, hardware);
  }
  static Result<std::unique_ptr<Device>> open(const std::string& id, const Program& program) {
    return open_gemmini(id, program.config, program.end());
  }
  static Result<Report> execute(Device& device, const Program& program,
                                const accel::LaunchOptions& options) {
    return gemmini::execute(device, program, options);
  }
  static std::shared_ptr<LaunchRecord> record(std::string id, std::shared_ptr<const Program>,
                                              Report report) {
    return std::make_shared<GemminiRecord>(std::move(id), std::move(report));
  }
  static Status write_dump(const std::string& folder, const Program& program,
                           std::string final_image, const std::vector<accel::InsnTime>&) {
    return gemmini::write_dump(folder, program, final_image);
  }
};

}  // namespace

const ProgramReader& gemmini_programs() {
  static const AcceleratorProgramReader<GemminiPrograms> reader;
  return reader;
}

}  // namespace tilewright::compile
