// rtl, synth: hardware as Verilog, and how large it is.
#include "tilewright/accel/vta/rtl/rtl.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

struct RtlOptions {
  std::string config, output;
  bool lint = false, benches = false;
};

constexpr std::pair<vta::Bench, const char*> kBenches[] = {{vta::Bench::Queue, "queue"},
                                                           {vta::Bench::Tokens, "tokens"},
                                                           {vta::Bench::Gemm, "gemm"},
                                                           {vta::Bench::Alu, "alu"},
                                                           {vta::Bench::Dma, "dma"}};

Status write_rtl(const vta::Config& config, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TW_TRY_STATUS(write_file(folder + "/vta.v", vta::verilog(config)));
  TW_TRY_STATUS(write_file(folder + "/vta.toml", vta::to_toml(config)));
  for (const auto& [bench, name] : kBenches)
    TW_TRY_STATUS(
        write_file(fmt::format("{}/{}_bench.v", folder, name), vta::testbench(config, bench, 1)));
  say(fmt::format("{}: vta.v, vta.toml and {} benches", folder, std::size(kBenches)));
  return {};
}

Result<int> rtl(const RtlOptions& options, bool as_json) {
  const bool to_stdout = options.output == "-";
  TW_TRY_STATUS(check_outputs({{}, {to_stdout ? "" : options.output}}, {}, as_json));
  const vta::Config config = TW_TRY(vta::load_config(options.config));
  TW_TRY_STATUS(vta::check(config));
  TW_TRY_STATUS(vta::rtl_supports(config));
  nlohmann::ordered_json json = document("rtl");
  json["config"] = vta::label(config);
  if (options.lint) {
    TW_TRY_STATUS(vta::lint(config));
    json["lint"] = "clean";
    say("lint: clean");
  }
  if (options.benches)
    for (const auto& [bench, name] : kBenches) {
      Status status = vta::run_testbench(vta::testbench(config, bench, 1));
      if (!status) return tl::unexpected<Error>(std::move(status.error()).at(name));
      json["benches"].push_back(name);
      say(fmt::format("bench {}: passed", name));
    }
  if (!options.output.empty() && !to_stdout) TW_TRY_STATUS(write_rtl(config, options.output));
  const bool silent = !to_stdout && (options.lint || options.benches || !options.output.empty());
  if (as_json)
    print_json(json);
  else if (!silent)
    fmt::print("{}", vta::verilog(config));
  return 0;
}

struct SynthOptions {
  std::string config;
  double limit = 600;
};

Result<int> synth(const SynthOptions& options, bool as_json) {
  const vta::Config config = TW_TRY(vta::load_config(options.config));
  TW_TRY_STATUS(vta::check(config));
  TW_TRY_STATUS(vta::rtl_supports(config));
  say(fmt::format("synthesising {} with Yosys for xc7", vta::label(config)));
  const vta::Area area = TW_TRY(vta::synthesise(config, options.limit));
  nlohmann::ordered_json json = document("synth");
  json["config"] = vta::label(config);
  json["source"] = "yosys synth_xilinx xc7, module by module";
  json["lut"] = area.lut;
  json["ff"] = area.ff;
  json["dsp"] = area.dsp;
  json["bram18"] = area.bram18;
  json["carry"] = area.carry;
  json["seconds"] = area.seconds;
  if (as_json) {
    print_json(json);
  } else {
    fmt::print("{}", table({{"config", "LUT", "FF", "DSP", "BRAM18", "CARRY4"},
                            {vta::label(config), std::to_string(area.lut), std::to_string(area.ff),
                             std::to_string(area.dsp), std::to_string(area.bram18),
                             std::to_string(area.carry)}}));
  }
  return 0;
}

}  // namespace

void add_rtl(Verb app, VerbContext& context) {
  Verb verb =
      app.add_verb("rtl", "Writes an accelerator as Verilog, lints it, runs its unit benches");
  auto options = std::make_shared<RtlOptions>();
  verb.add_option("hw", options->config, "a built-in name, .toml or VTA's .json").required();
  verb.add_option("-o,--output", options->output, "folder (default: Verilog to stdout)");
  verb.add_flag("--lint", options->lint, "check with Verilator");
  verb.add_flag("--bench", options->benches, "run the unit benches with Icarus");
  verb.callback([&context, options] {
    context.action = [&context, options] { return rtl(*options, context.json); };
  });
}

void add_synth(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("synth", "Area of an accelerator by Yosys");
  auto options = std::make_shared<SynthOptions>();
  verb.add_option("hw", options->config, "a built-in name, .toml or VTA's .json").required();
  verb.add_option("--limit", options->limit, "seconds");
  verb.callback([&context, options] {
    context.action = [&context, options] { return synth(*options, context.json); };
  });
}

}  // namespace tilewright::driver
