#include "tilewright/driver/generated_rtl.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/accel/fpga/rtl/board_files.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/accel/spatial/rtl/rtl.h"
#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/base/file.h"
#include "tilewright/compile/fpga/board_launch.h"
#include "tilewright/compile/fpga/design_launch.h"

namespace tilewright::driver {
namespace {

constexpr std::pair<vta::Bench, const char*> kBenches[] = {{vta::Bench::Queue, "queue"},
                                                           {vta::Bench::Tokens, "tokens"},
                                                           {vta::Bench::Gemm, "gemm"},
                                                           {vta::Bench::Alu, "alu"},
                                                           {vta::Bench::Dma, "dma"}};

Result<GeneratedRtl> generate(const vta::Config& config) {
  TW_TRY_STATUS(vta::check(config));
  TW_TRY_STATUS(vta::rtl_supports(config));
  GeneratedRtl made;
  made.label = vta::label(config);
  made.top = vta::kTop;
  made.verilog = vta::verilog(config);
  made.file = fmt::format("{}.toml", vta::kTop);
  made.text = vta::to_toml(config);
  for (const auto& [bench, name] : kBenches)
    made.benches.emplace_back(name, vta::testbench(config, bench, 1));
  if (vta::axi_supports(config))
    made.board.emplace_back(fmt::format("{}.v", vta::kAxiTop), vta::axi_top(config));
  return made;
}

Result<GeneratedRtl> generate(const spatial::Design& design) {
  TW_TRY_STATUS(spatial::rtl_supports(design));
  GeneratedRtl made;
  made.label = design.name;
  made.top = spatial::kTop;
  made.verilog = spatial::verilog(design);
  made.file = fmt::format("{}.toml", spatial::kTop);
  made.text = spatial::to_toml(design);
  return made;
}

}  // namespace

Result<GeneratedRtl> generated_rtl(const codesign::Hardware& hardware) {
  return std::visit([](const auto& design) { return generate(design); }, hardware);
}

namespace {

/// What a design of a program needs on a board: its top, scripts for the vendor's tools, a host.
Status add_board(const LoadedFpgaProgram& program, const fpga::Design& design, GeneratedRtl& made) {
  const hw::FpgaDevice& device = program.device;
  std::vector<fpga::HostArgument> arguments;
  for (const Param& p : program.program.func.params) {
    arguments.push_back(
        {p.buffer.name(), TW_TRY(compile::param_bytes(p)), p.mode == ParamMode::Out});
    if (p.values)
      made.board.emplace_back(p.buffer.name() + ".bin",
                              std::string(static_cast<const char*>(p.values->data()),
                                          static_cast<size_t>(p.values->bytes())));
  }
  const runtime::BoardNames names = compile::board_names(device);
  made.bitstream = runtime::bitstream_name(fpga::identity(design));
  std::vector<std::pair<std::string, std::string>> files = fpga::board_files(
      design, fpga::Numbers::Fixed, device.part, device.clock_mhz, made.bitstream);
  std::move(files.begin(), files.end(), std::back_inserter(made.board));
  if (names.memory.find('+') == std::string::npos)  // u-dma-buf, no range of addresses
    made.board.emplace_back("host.cpp",
                            fpga::board_host(design, arguments, names.registers, names.memory));
  return {};
}

}  // namespace

Result<GeneratedRtl> generated_rtl(const LoadedFpgaProgram& program) {
  const fpga::Design design = TW_TRY(compile::fpga_design(program.program.func, program.device));
  TW_TRY_STATUS(fpga::rtl_supports(design));
  GeneratedRtl made;
  made.label = fmt::format("{} for {}", program.program.func.name, program.device.name);
  made.top = fpga::kTop;
  made.verilog = fpga::verilog(design, fpga::Numbers::Fixed).text;
  made.file = "schedule.steps";
  made.text = program.steps;
  if (program.device.family != hw::FpgaFamily::Ice40)
    TW_TRY_STATUS(add_board(program, design, made));
  return made;
}

Result<GeneratedRtl> generated_rtl(const HardwareOrProgram& input) {
  if (input.is_program()) return generated_rtl(TW_TRY(load_fpga_program(input.program)));
  return generated_rtl(TW_TRY(input.hardware()));
}

Result<codesign::Hardware> HardwareOrProgram::hardware() const {
  const std::vector<std::string>& names = program.subject.paths;
  if (names.size() != 1)
    return fail(ErrorKind::Usage, "give exactly one accelerator",
                fmt::format("there are {}", names.size()),
                "a built-in name or a file; for a program: --target fpga");
  return codesign::load_hardware(names[0]);
}

void add_hardware_or_program(Verb verb, HardwareOrProgram& input) {
  SubjectOptions& subject = input.program.subject;
  verb.add_option("input", subject.paths,
                  "an accelerator: a built-in name, .toml or VTA's .json; with --target fpga a "
                  "program: file.tw; of `rtl` also a package: file.twm");
  verb.add_option("--target", subject.target, "fpga: the input is a program")
      .one_of({compile::kFpgaTarget});
  verb.add_option("--hw", input.program.hw, "FPGA: a name that `targets` lists, or FILE.toml");
  verb.add_option("--workload", subject.workload, "FPGA: an operator of a workload file (JSON)");
  verb.add_option("--id", subject.id, "FPGA: the case of the workload file");
  add_trace_option(verb, input.program);
  for (const char* of_program : {"--hw", "--workload", "--id", "--trace"})
    verb.needs(of_program, "--target");
  verb.needs("--id", "--workload");
}

Status write_rtl(const GeneratedRtl& made, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TW_TRY_STATUS(write_file(fmt::format("{}/{}.v", folder, made.top), made.verilog));
  if (!made.text.empty())
    TW_TRY_STATUS(write_file(fmt::format("{}/{}", folder, made.file), made.text));
  for (const auto& [name, text] : made.benches)
    TW_TRY_STATUS(write_file(fmt::format("{}/{}_bench.v", folder, name), text));
  for (const auto& [name, text] : made.board) {
    const std::string path = fmt::format("{}/{}", folder, name);
    TW_TRY_STATUS(write_file(path, text));
    if (text.starts_with("#!"))
      std::filesystem::permissions(path, std::filesystem::perms::owner_exec,
                                   std::filesystem::perm_options::add, error);
  }
  return {};
}

}  // namespace tilewright::driver
