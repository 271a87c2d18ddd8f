// rtl: hardware as Verilog.
#include "tilewright/accel/vta/rtl/rtl.h"

#include <fmt/format.h>

#include "tilewright/accel/common/rtl/lint.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/package_rtl.h"

namespace tilewright::driver {
namespace {

struct RtlOptions {
  HardwareOrProgram input;
  std::string output;
  bool lint = false, benches = false;
};

Status run_benches(const GeneratedRtl& made, nlohmann::ordered_json& json) {
  if (made.benches.empty())
    return fail(ErrorKind::Unsupported,
                fmt::format("there are no unit benches of '{}'", made.label),
                "its Verilog is compared with the cycle simulator as a whole",
                "run a program on the device `spatial:rtl` or `fpga:rtl`");
  for (const auto& [name, text] : made.benches) {
    Status status = vta::run_testbench(text);
    if (!status) return tl::unexpected<Error>(std::move(status.error()).at(name));
    json["benches"].push_back(name);
    say(fmt::format("bench {}: passed", name));
  }
  return {};
}

/// Checks one design and writes its files; empty `folder`: none. Returns what the document says.
Result<nlohmann::ordered_json> check_and_write(const GeneratedRtl& made, const RtlOptions& options,
                                               const std::string& folder) {
  nlohmann::ordered_json json;
  json["config"] = made.label;
  if (!made.bitstream.empty()) json["bitstream"] = made.bitstream;
  if (!made.folder.empty()) {
    json["folder"] = made.folder;
    say(made.label);
  }
  if (options.lint) {
    TW_TRY_STATUS(accel::lint_clean(made.top, made.verilog));
    json["lint"] = "clean";
    say("lint: clean");
  }
  if (options.benches) TW_TRY_STATUS(run_benches(made, json));
  if (folder.empty()) return json;
  TW_TRY_STATUS(write_rtl(made, folder));
  std::string names = made.top + ".v" + (made.text.empty() ? "" : ", " + made.file);
  for (const auto& [name, text] : made.board) names += ", " + name;
  if (!made.benches.empty()) names += fmt::format(" and {} benches", made.benches.size());
  say(fmt::format("{}: {}", folder, names));
  return json;
}

Result<int> rtl(const RtlOptions& options, bool as_json) {
  const bool to_stdout = options.output == "-";
  const std::string folder = to_stdout ? "" : options.output;
  TW_TRY_STATUS(check_outputs({{}, {folder}}, {}, as_json));
  nlohmann::ordered_json json = document("rtl");
  std::string text;
  if (options.input.program.is_package()) {
    if (options.input.is_program())
      return fail(ErrorKind::Usage, "a package says what it is for",
                  "--target, --hw and --trace are for programs", "leave them out");
    for (const GeneratedRtl& made : TW_TRY(package_rtl(options.input.program.subject.paths[0]))) {
      const std::string own = folder.empty() ? "" : folder + "/" + made.folder;
      json["designs"].push_back(TW_TRY(check_and_write(made, options, own)));
      text += made.verilog;
    }
  } else {
    const GeneratedRtl made = TW_TRY(generated_rtl(options.input));
    json.update(TW_TRY(check_and_write(made, options, folder)));
    text = made.verilog;
  }
  const bool silent = !to_stdout && (options.lint || options.benches || !options.output.empty());
  if (as_json)
    print_json(json);
  else if (!silent)
    fmt::print("{}", text);
  return 0;
}

}  // namespace

void add_rtl(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("rtl",
                           "Writes an accelerator, or a program for an FPGA, as Verilog, lints it, "
                           "runs its unit benches; of a package for an FPGA each design");
  auto options = std::make_shared<RtlOptions>();
  add_hardware_or_program(verb, options->input);
  verb.add_option("-o,--output", options->output, "folder (default: Verilog to stdout)");
  verb.add_flag("--lint", options->lint, "check with Verilator");
  verb.add_flag("--bench", options->benches, "run the unit benches with Icarus");
  verb.callback([&context, options] {
    context.action = [&context, options] { return rtl(*options, context.json); };
  });
}

}  // namespace tilewright::driver
