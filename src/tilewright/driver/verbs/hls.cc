// hls: a program as C++ for high-level synthesis.
#include "tilewright/codegen/hls/hls.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/fpga_program.h"

namespace tilewright::driver {
namespace {

namespace fs = std::filesystem;

struct HlsVerb {
  FpgaProgramOptions program;
  std::string output, dialect = "vitis";
};

/// Where all files are made before one of them appears in the folder that the user named.
Status write_files(const codegen::HlsKernel& kernel, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorKind::Io, fmt::format("cannot make the folder '{}'", folder), error.message());
  const TemporaryFolder made = TW_TRY(TemporaryFolder::create(folder));
  for (const auto& [name, text] : kernel.files) TW_TRY_STATUS(write_file(made.file(name), text));
  if (kernel.files.contains("build.sh"))
    fs::permissions(made.file("build.sh"), fs::perms::owner_exec, fs::perm_options::add, error);
  for (const auto& [name, text] : kernel.files) {
    fs::rename(made.file(name), fs::path(folder) / name, error);
    if (error)
      return fail(ErrorKind::Io, fmt::format("cannot write '{}/{}'", folder, name),
                  error.message());
  }
  return {};
}

Result<int> hls(const HlsVerb& verb, bool as_json) {
  TW_TRY_STATUS(check_outputs({{}, {verb.output}}, input_files(verb.program.subject), as_json));
  codegen::HlsOptions options;
  options.dialect = *codegen::parse_hls_dialect(verb.dialect);
  LoadedFpgaProgram loaded = TW_TRY(load_fpga_program(verb.program));
  const hw::FpgaDevice& device = loaded.device;
  options.notes = loaded.steps;
  const Func func = TW_TRY(codegen::prepare_hls(loaded.program.func));
  const lower::ProcessProgram program = TW_TRY(lower::processes_of(func));
  codegen::HlsKernel kernel = TW_TRY(codegen::emit_hls(func, program, device, options));
  if (!options.notes.empty()) kernel.files["schedule.steps"] = options.notes;
  for (const Param& p : func.params)  // values that the program knows are inputs of the kernel
    if (p.values && kernel.files.contains("host.cpp"))
      kernel.files[p.buffer.name() + ".bin"] = std::string(
          static_cast<const char*>(p.values->data()), static_cast<size_t>(p.values->bytes()));
  TW_TRY_STATUS(write_files(kernel, verb.output));

  nlohmann::ordered_json json = document("hls");
  json["kernel"] = kernel.symbol;
  json["device"] = device.name;
  json["dialect"] = codegen::name(options.dialect);
  size_t processes = 0, channels = 0;
  for (const lower::DataflowRegion& region : program.regions) {
    processes += region.processes.size(), channels += region.channels.size();
    for (const lower::Process& process : region.processes)
      json["processes"].push_back(process.name);
  }
  for (const auto& [name, text] : kernel.files) json["files"].push_back(name);
  if (as_json)
    print_json(json);
  else
    say(fmt::format("{}: {} for {}, {} processes, {} channels", verb.output, kernel.symbol,
                    device.name, processes, channels));
  return 0;
}

}  // namespace

void add_hls(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("hls", "Writes a program as C++ for high-level synthesis of FPGAs");
  auto options = std::make_shared<HlsVerb>();
  add_model_options(verb, options->program.subject, true, "file.tw");
  verb.add_option("--hw", options->program.hw,
                  "an FPGA: a name that `targets` lists, or FILE.toml");
  verb.add_option("--dialect", options->dialect,
                  "vitis: the vendor's pragmas and headers; plain: C++17 without them")
      .one_of({"vitis", "plain"});
  add_trace_option(verb, options->program);
  verb.add_option("-o,--output", options->output, "folder; made if it is missing").required();
  verb.callback([&context, options] {
    context.action = [&context, options] { return hls(*options, context.json); };
  });
}

}  // namespace tilewright::driver
