// hls: a program as C++ for high-level synthesis.
#include "tilewright/codegen/hls/hls.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/subject.h"
#include "tilewright/driver/tuning/fpga_program.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/schedule/step.h"
#include "tilewright/tensor/op.h"

namespace tilewright::driver {
namespace {

namespace fs = std::filesystem;

struct HlsVerb {
  SubjectOptions subject;
  std::string hw = "vu9p", output, trace, dialect = "vitis";
};

/// The tensor expression, loops, or single operator that the user named.
Result<Func> hls_program_of(const HlsVerb& verb) {
  const std::vector<Subject> subjects = TW_TRY(load_subjects(verb.subject));
  if (subjects.size() != 1)
    return fail(ErrorKind::Usage, "hls takes one program at a time",
                fmt::format("there are {}", subjects.size()), "name one: --id ID");
  const Subject& subject = subjects[0];
  if (subject.func) return *subject.func;
  if (!subject.graph || subject.graph->nodes.size() != 1)
    return fail(ErrorKind::Usage, fmt::format("'{}' is no single operator", subject.name),
                "hls takes a program, not a network", "tilewright hls FILE.tw -o DIR");
  const graph::Node& node = subject.graph->nodes[0];
  tensor::OpCall call = graph::op_call(*subject.graph, node);
  Func func = TW_TRY(
      tensor::op_func(call, verb.subject.math == "exact" ? MathMode::Exact : MathMode::Fast));
  func.name = subject.name;
  return func;
}

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
  TW_TRY_STATUS(check_outputs({{}, {verb.output}}, input_files(verb.subject), as_json));
  codegen::HlsOptions options;
  options.dialect = *codegen::parse_hls_dialect(verb.dialect);
  const hw::FpgaDevice device = TW_TRY(hw::load_fpga_device(verb.hw));
  Func func = TW_TRY(hls_program_of(verb));
  if (!verb.trace.empty()) {
    const std::string text = TW_TRY(read_file(verb.trace));
    Result<schedule::Trace> trace = schedule::parse_trace(text);
    if (!trace) return tl::unexpected<Error>(std::move(trace.error()).at(verb.trace));
    func = TW_TRY(schedule::replay(func, *trace));
    options.notes = text;
  } else {
    const FpgaProgram best = scheduled_for_fpga(func, device);
    func = best.func;
    options.notes = best.steps;
  }
  func = TW_TRY(codegen::prepare_hls(func));
  const lower::ProcessProgram program = TW_TRY(lower::processes_of(func));
  codegen::HlsKernel kernel = TW_TRY(codegen::emit_hls(func, program, device, options));
  if (!options.notes.empty()) kernel.files["schedule.steps"] = options.notes;
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
  Verb verb = app.add_verb("hls", "A program as C++ for high-level synthesis of FPGAs");
  auto options = std::make_shared<HlsVerb>();
  add_model_options(verb, options->subject, true);
  verb.add_option("--hw", options->hw, "an FPGA: a name that `targets` lists, or FILE.toml");
  verb.add_option("--dialect", options->dialect,
                  "vitis: the vendor's pragmas and headers; plain: C++17 without them")
      .one_of({"vitis", "plain"});
  verb.add_option("--trace", options->trace,
                  "schedule steps, one per line (default: those of the model's best design)");
  verb.add_option("-o,--output", options->output, "folder; made if it is missing").required();
  verb.callback([&context, options] {
    context.action = [&context, options] { return hls(*options, context.json); };
  });
}

}  // namespace tilewright::driver
