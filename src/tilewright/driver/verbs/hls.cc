// hls: a program, or the kernels of a package, as C++ for high-level synthesis.
#include "tilewright/codegen/hls/hls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iterator>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/compile/fpga/cpp_kernels.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/fpga_program.h"
#include "tilewright/driver/package_designs.h"

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

/// What the document says of one kernel, whose files it writes.
Result<nlohmann::ordered_json> write_kernel(const codegen::HlsKernel& kernel, const Func& func,
                                            const HlsVerb& verb, const std::string& folder,
                                            const hw::FpgaDevice& device) {
  const lower::ProcessProgram program = TW_TRY(lower::processes_of(func));
  TW_TRY_STATUS(write_files(kernel, folder));
  nlohmann::ordered_json json;
  json["kernel"] = kernel.symbol;
  json["device"] = device.name;
  json["dialect"] = verb.dialect;
  size_t processes = 0, channels = 0;
  for (const lower::DataflowRegion& region : program.regions) {
    processes += region.processes.size(), channels += region.channels.size();
    for (const lower::Process& process : region.processes)
      json["processes"].push_back(process.name);
  }
  for (const auto& [name, text] : kernel.files) json["files"].push_back(name);
  say(fmt::format("{}: {} for {}, {} processes, {} channels", folder, kernel.symbol, device.name,
                  processes, channels));
  return json;
}

Result<nlohmann::ordered_json> hls_program(const HlsVerb& verb) {
  codegen::HlsOptions options;
  options.dialect = *codegen::parse_hls_dialect(verb.dialect);
  FpgaProgramOptions program = verb.program;
  if (program.hw.empty()) program.hw = FpgaProgramOptions().hw;
  LoadedFpgaProgram loaded = TW_TRY(load_fpga_program(program));
  options.notes = loaded.steps;
  const Func func = TW_TRY(codegen::prepare_hls(loaded.program.func));
  codegen::HlsKernel kernel =
      TW_TRY(codegen::emit_hls(func, TW_TRY(lower::processes_of(func)), loaded.device, options));
  if (!options.notes.empty()) kernel.files["schedule.steps"] = options.notes;
  for (const Param& p : func.params)  // values that the program knows are inputs of the kernel
    if (p.values && kernel.files.contains("host.cpp"))
      kernel.files[p.buffer.name() + ".bin"] = std::string(
          static_cast<const char*>(p.values->data()), static_cast<size_t>(p.values->bytes()));
  return write_kernel(kernel, func, verb, verb.output, loaded.device);
}

/// A line for each layer that the kernel computes: its name, and its row of the table.
std::string table_text(const PackageStructure& structure, const compile::CppKernels& cpp,
                       size_t kernel) {
  std::string text = "layer";
  for (const Scalar& column : cpp.kernels[kernel].func.scalars) text += "," + column.var.name();
  text += "\n";
  for (const auto& [layer, design] : structure.layers) {
    const compile::CppUse& use = cpp.uses[design];
    if (use.kernel != kernel) continue;
    text += use.row.empty() ? layer : fmt::format("{},{}", layer, fmt::join(use.row, ","));
    text += "\n";
  }
  return text;
}

/// The kernels of a package, each in a folder of its own: what `fpga:xrt` runs it with.
Result<nlohmann::ordered_json> hls_package(const HlsVerb& verb) {
  if (!verb.program.hw.empty() || !verb.program.trace.empty())
    return fail(ErrorKind::Usage, "a package says what it is for",
                "--hw and --trace are for programs", "leave them out");
  const PackageDesigns designs = TW_TRY(package_designs(verb.program.subject.paths[0]));
  std::vector<compile::CppKernel> kernels;  // all of them before the first is written
  for (const auto& [number, structure] : designs.structures) {
    compile::CppKernels cpp = TW_TRY(compile::cpp_kernels(
        pointers(structure), designs.device, *codegen::parse_hls_dialect(verb.dialect)));
    for (size_t k = 0; k < cpp.kernels.size(); ++k)
      cpp.kernels[k].kernel.files["table.csv"] = table_text(structure, cpp, k);
    std::move(cpp.kernels.begin(), cpp.kernels.end(), std::back_inserter(kernels));
  }
  nlohmann::ordered_json json;
  for (const compile::CppKernel& one : kernels)
    json["kernels"].push_back(TW_TRY(write_kernel(
        one.kernel, one.func, verb, verb.output + "/" + one.kernel.symbol, designs.device)));
  return json;
}

Result<int> hls(const HlsVerb& verb, bool as_json) {
  TW_TRY_STATUS(check_outputs({{}, {verb.output}}, input_files(verb.program.subject), as_json));
  nlohmann::ordered_json json = document("hls");
  json.update(TW_TRY(verb.program.is_package() ? hls_package(verb) : hls_program(verb)));
  if (as_json) print_json(json);
  return 0;
}

}  // namespace

void add_hls(Verb app, VerbContext& context) {
  Verb verb =
      app.add_verb("hls",
                   "Writes a program as C++ for high-level synthesis of FPGAs; of a package "
                   "for an FPGA each kernel");
  auto options = std::make_shared<HlsVerb>();
  options->program.hw.clear();
  add_model_options(verb, options->program.subject, true, "file.tw, or file.twm");
  verb.add_option("--hw", options->program.hw,
                  "an FPGA: a name that `targets` lists, or FILE.toml (default: vu9p; a "
                  "package knows its own)");
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
