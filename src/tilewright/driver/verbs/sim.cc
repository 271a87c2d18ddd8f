// sim: accelerator programs of packages and dumps, checked and on their simulators.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/replay.h"
#include "tilewright/base/file.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/vta/hardware_fit.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/report/launch_report.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {
namespace {

struct SimOptions {
  std::string path, device = "vta:tsim", hw, trace, dump;
  bool check_only = false, disassemble = false;
};

/// A program of a package, or a dump with the results it expects.
struct NamedDump {
  std::string name;
  vta::Dump dump;

  const vta::Program& program() const { return dump.program; }
};

bool is_dump(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "manifest.json", error);
}

/// `folder` if it is a dump, else the dumps in it, by name. errors: Usage.
Result<std::vector<std::filesystem::path>> dump_folders(const std::string& folder) {
  if (is_dump(folder)) return std::vector<std::filesystem::path>{folder};
  std::vector<std::filesystem::path> dumps;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_directory(error) && is_dump(entry.path())) dumps.push_back(entry.path());
  std::sort(dumps.begin(), dumps.end());
  if (dumps.empty())
    return fail(ErrorKind::Usage, fmt::format("'{}' holds no program dump", folder),
                "neither the folder nor one inside it has a manifest.json",
                fmt::format("tilewright run MODEL --target vta --dump-program {}", folder));
  return dumps;
}

Result<std::vector<NamedDump>> load_programs(const std::string& path) {
  std::error_code error;
  std::vector<NamedDump> programs;
  if (std::filesystem::is_directory(path, error)) {
    for (const std::filesystem::path& dump : TW_TRY(dump_folders(path))) {
      const std::filesystem::path folder = std::filesystem::absolute(dump, error);
      const bool slash = folder.filename().empty();  // `dump/` names the folder too
      programs.push_back({(slash ? folder.parent_path() : folder).filename().string(),
                          TW_TRY(vta::read_dump(dump.string()))});
    }
    return programs;
  }
  const auto package = TW_TRY(runtime::Package::open(path, {.load_code = false}));
  for (const auto& [name, info] : package->program().launches)
    if (info.device == "vta") {
      programs.push_back({name, {}});
      programs.back().dump.program = TW_TRY(vta::parse_program(package->launch_code(name)));
    }
  if (programs.empty())
    return fail(ErrorKind::Usage, fmt::format("'{}' has no program for an accelerator", path), {},
                "tilewright compile MODEL --target vta --quantize random");
  return programs;
}

/// Gives the programs the timing of `hw`. errors: Package (another design).
Status use_hardware(const std::string& hw, std::vector<NamedDump>& programs) {
  const vta::Config config = TW_TRY(vta::load_config(hw));
  for (NamedDump& named : programs) {
    vta::Config& own = named.dump.program.config;
    TW_TRY_STATUS(compile::check_hardware(named.name, own, hw, config));
    own = config;
  }
  return {};
}

/// Lines of assembly: each layer's name, then its instructions with their numbers.
std::vector<std::string> assembly(const vta::Program& program) {
  std::vector<std::string> lines;
  for (const vta::Run& run : program.runs)
    for (size_t i = 0; i < run.insns.size(); ++i) {
      for (const vta::Span& span : run.spans)
        if (span.begin == i) lines.push_back("; " + span.name);
      lines.push_back(fmt::format("{:6}  {}", i, vta::disassemble(program.config, run.insns[i])));
    }
  return lines;
}

/// Findings as text; whether one of them is an error.
bool report_findings(const NamedDump& named, const std::vector<vta::Finding>& findings,
                     nlohmann::ordered_json& json) {
  bool bad = false;
  for (const vta::Finding& finding : findings) {
    bad |= finding.error;
    json.push_back({{"program", named.name},
                    {"rule", std::string(vta::name(finding.rule))},
                    {"error", finding.error},
                    {"run", finding.run},
                    {"insn", finding.insn},
                    {"text", finding.text}});
    say(fmt::format("{}: {} at {} run {} instruction {}: {}", finding.error ? "error" : "warning",
                    vta::name(finding.rule), named.name, finding.run, finding.insn, finding.text));
  }
  return bad;
}

/// Where the results differ from those that the dump carries.
void report_mismatch(const std::string& program, const vta::Mismatch& mismatch,
                     nlohmann::ordered_json& json) {
  json.push_back({{"program", program},
                  {"output", mismatch.where},
                  {"run", mismatch.run},
                  {"element", mismatch.first},
                  {"actual", mismatch.actual},
                  {"expected", mismatch.expected},
                  {"differing", mismatch.count},
                  {"compared", mismatch.compared}});
  say(
      fmt::format("error: {} does not compute what its dump expects\n"
                  "  why: element {} of {} is {}, not {} ({} of {} bytes differ, after run {})",
                  program, mismatch.first, mismatch.where, mismatch.actual, mismatch.expected,
                  mismatch.count, mismatch.compared, mismatch.run));
}

/// Runs a program; its results are compared with those it carries. `agrees`: they are equal.
Result<compile::LaunchLog::Entry> simulate(const NamedDump& named, const SimOptions& options,
                                           nlohmann::ordered_json& mismatches, bool& agrees) {
  const vta::Program& program = named.program();
  std::unique_ptr<vta::Device> device =
      TW_TRY(compile::open_vta(options.device, program.config, program.end()));
  vta::LaunchOptions launch;
  launch.record_times = options.device != "vta:fsim";
  vta::Replay replay = TW_TRY(vta::replay(*device, named.dump, launch));
  if (replay.mismatch) report_mismatch(named.name, *replay.mismatch, mismatches), agrees = false;
  if (replay.compared > 0 && !replay.mismatch)
    say(fmt::format("{}: results as expected, {} bytes", named.name, replay.compared));
  compile::LaunchLog::Entry entry{named.name, std::make_shared<const vta::Program>(program),
                                  std::move(replay.report)};
  if (options.dump.empty()) return entry;
  std::string final_image(program.image.size(), '\0');
  TW_TRY_STATUS(device->read(program.base, final_image.data(), final_image.size()));
  TW_TRY_STATUS(vta::write_dump(options.dump + "/" + named.name, program, final_image));
  return entry;
}

Result<int> sim(const SimOptions& options, bool as_json) {
  TW_TRY_STATUS(
      check_outputs({{options.trace}, {options.dump}}, {options.path, options.hw}, as_json));
  nlohmann::ordered_json json = document("sim");
  json["findings"] = json["mismatches"] = nlohmann::ordered_json::array();
  bool good = true;
  compile::LaunchLog log;
  std::vector<NamedDump> programs = TW_TRY(load_programs(options.path));
  if (!options.hw.empty()) TW_TRY_STATUS(use_hardware(options.hw, programs));
  for (const NamedDump& named : programs) {
    if (options.disassemble)
      for (const std::string& line : assembly(named.program()))
        as_json ? json["assembly"][named.name].push_back(line) : fmt::print("{}\n", line);
    const std::vector<vta::Finding> findings = vta::check_program(named.program());
    good &= !report_findings(named, findings, json["findings"]);
    size_t instructions = 0;
    for (const vta::Run& run : named.program().runs) instructions += run.insns.size();
    if (options.check_only && findings.empty() && !as_json)
      fmt::print("{}: no problems in {} instructions\n", named.name, instructions);
    if (options.check_only || options.disassemble) continue;
    Result<compile::LaunchLog::Entry> entry = simulate(named, options, json["mismatches"], good);
    if (!entry) return tl::unexpected<Error>(std::move(entry.error()).at(named.name));
    log.entries.push_back(*std::move(entry));
  }
  if (!options.trace.empty()) TW_TRY_STATUS(write_trace(options.trace, log));
  json["launches"] = launches_json(log);
  if (as_json) {
    print_json(json);
  } else if (!log.entries.empty()) {
    fmt::print("{}", launches_table(log));
  }
  return good ? 0 : exit_code(ErrorKind::Mismatch);
}

}  // namespace

void add_sim(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "sim",
      "Checks and simulates the accelerator programs of a package or a program dump; exit code 5 "
      "if the results are not those that the dump expects");
  auto options = std::make_shared<SimOptions>();
  verb->add_option("input", options->path, "package.twm, a program dump, or a folder of dumps")
      ->required();
  verb->add_option("--device", options->device, "vta:fsim, vta:tsim or vta:rtl");
  verb->add_option("--hw", options->hw,
                   "same hardware with another clock or timing: a name, .toml or .json");
  verb->add_option("--trace", options->trace, "file for ui.perfetto.dev");
  verb->add_option("--dump-program", options->dump, "folder for program dumps with their results");
  verb->add_flag("--check", options->check_only,
                 "check only: races, deadlock, ranges, portability");
  verb->add_flag("--asm", options->disassemble, "print the instructions instead");
  verb->callback([&context, options] {
    context.action = [&context, options] { return sim(*options, context.json); };
  });
}

}  // namespace tilewright::driver
