// rtl: hardware as Verilog.
#include "tilewright/accel/vta/rtl/rtl.h"

#include <fmt/format.h>

#include "tilewright/accel/common/rtl/lint.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/generated_rtl.h"

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

Result<int> rtl(const RtlOptions& options, bool as_json) {
  const bool to_stdout = options.output == "-";
  TW_TRY_STATUS(check_outputs({{}, {to_stdout ? "" : options.output}}, {}, as_json));
  const GeneratedRtl made = TW_TRY(generated_rtl(options.input));
  nlohmann::ordered_json json = document("rtl");
  json["config"] = made.label;
  if (options.lint) {
    TW_TRY_STATUS(accel::lint_clean(made.top, made.verilog));
    json["lint"] = "clean";
    say("lint: clean");
  }
  if (options.benches) TW_TRY_STATUS(run_benches(made, json));
  if (!options.output.empty() && !to_stdout) {
    TW_TRY_STATUS(write_rtl(made, options.output));
    std::string names = made.top + ".v" + (made.text.empty() ? "" : ", " + made.file);
    for (const auto& [name, text] : made.board) names += ", " + name;
    if (!made.benches.empty()) names += fmt::format(" and {} benches", made.benches.size());
    say(fmt::format("{}: {}", options.output, names));
  }
  const bool silent = !to_stdout && (options.lint || options.benches || !options.output.empty());
  if (as_json)
    print_json(json);
  else if (!silent)
    fmt::print("{}", made.verilog);
  return 0;
}

}  // namespace

void add_rtl(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("rtl",
                           "Writes an accelerator, or a program for an FPGA, as Verilog, lints it, "
                           "runs its unit benches");
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
