// sim: accelerator programs of packages and dumps, checked and on their simulators.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/devices.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/report/launch_report.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {
namespace {

struct SimOptions {
  std::string path, target, device, hw, trace, timeline, dump;
  bool check_only = false, disassemble = false;
};

/// A program of a package, or a dump with the results it expects.
struct NamedProgram {
  std::string name;
  std::string backend;
  std::unique_ptr<compile::DeviceProgram> program;
};

/// Whose dump `folder` is; null: nobody's.
const compile::Backend* dumped_by(const std::filesystem::path& folder) {
  for (const compile::Backend* backend : compile::backends()) {
    const compile::ProgramReader* reader = backend->runtime().programs();
    if (reader != nullptr && reader->is_dump(folder.string())) return backend;
  }
  return nullptr;
}

/// `folder` if it is a dump, else the dumps in it, by name. errors: Usage.
Result<std::vector<std::filesystem::path>> dump_folders(const std::string& folder) {
  if (dumped_by(folder) != nullptr) return std::vector<std::filesystem::path>{folder};
  std::vector<std::filesystem::path> dumps;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_directory(error) && dumped_by(entry.path()) != nullptr)
      dumps.push_back(entry.path());
  std::sort(dumps.begin(), dumps.end());
  if (dumps.empty())
    return fail(ErrorKind::Usage, fmt::format("'{}' holds no program dump", folder),
                "neither the folder nor one inside it has a manifest.json",
                fmt::format("tilewright run MODEL --target vta --dump-program {}", folder));
  return dumps;
}

Result<std::vector<NamedProgram>> load_programs(const std::string& path) {
  std::error_code error;
  std::vector<NamedProgram> programs;
  if (std::filesystem::is_directory(path, error)) {
    for (const std::filesystem::path& dump : TW_TRY(dump_folders(path))) {
      const std::filesystem::path folder = std::filesystem::absolute(dump, error);
      const bool slash = folder.filename().empty();  // `dump/` names the folder too
      const std::string name = (slash ? folder.parent_path() : folder).filename().string();
      const compile::Backend& backend = *dumped_by(dump);
      programs.push_back({name, std::string(backend.name()),
                          TW_TRY(backend.runtime().programs()->read_dump(name, dump.string()))});
    }
    return programs;
  }
  const auto package = TW_TRY(runtime::Package::open(path, {.load_code = false}));
  for (const auto& [name, info] : package->program().launches) {
    const compile::Backend* backend = compile::find_backend(info.device);
    if (backend == nullptr || backend->runtime().programs() == nullptr) continue;
    programs.push_back(
        {name, info.device,
         TW_TRY(backend->runtime().programs()->parse(name, package->launch_code(name)))});
  }
  if (programs.empty())
    return fail(ErrorKind::Usage, fmt::format("'{}' has no program for an accelerator", path), {},
                "tilewright compile MODEL --target vta --quantize random");
  return programs;
}

bool is_text(const std::string& path) { return path.ends_with(".asm"); }

/// The line that begins the text of one of several programs: `# program vta_0`.
constexpr std::string_view kProgramLine = "# program ";

/// Texts of programs with their names. Each keeps its place in the file by empty lines before it,
/// so that messages have the file's line numbers.
std::vector<std::pair<std::string, std::string>> parts_of(const std::string& name,
                                                          const std::string& text) {
  std::vector<std::pair<std::string, std::string>> parts = {{name, ""}};
  size_t lines = 0;
  for (size_t at = 0, end = 0; at < text.size(); at = end, ++lines) {
    end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (line.starts_with(kProgramLine)) {
      std::string next = line.substr(kProgramLine.size());
      next.erase(next.find_last_not_of(" \t\r\n") + 1);
      if (parts.back().second.find_first_not_of(" \t\r\n") == std::string::npos) parts.pop_back();
      parts.emplace_back(next.empty() ? name : next, std::string(lines, '\n'));
    }
    parts.back().second += line;
  }
  return parts;
}

/// Programs as text, which says nothing of the hardware. errors: Usage, those of the reader.
Result<std::vector<NamedProgram>> load_text(const SimOptions& options) {
  if (options.target.empty())
    return fail(ErrorKind::Usage, fmt::format("'{}' does not say what it is for", options.path),
                "instructions as text name no accelerator", "--target dpu");
  compile::TargetOptions chosen;
  chosen.hw = options.hw;
  const hw::Target target = TW_TRY(compile::find_target(options.target, chosen));
  const compile::Backend& backend = compile::backend_of(target);
  if (backend.runtime().programs() == nullptr)
    return fail(ErrorKind::Usage, fmt::format("{} has no programs of its own", options.target),
                "sim is for accelerators");
  const std::string text = TW_TRY(read_file(options.path));
  const std::string stem = std::filesystem::path(options.path).stem().string();
  std::vector<NamedProgram> programs;
  for (const auto& [name, part] : parts_of(stem, text))
    programs.push_back(
        {name, std::string(backend.name()),
         TW_TRY(backend.runtime().programs()->parse_text(name, part, options.path, options.hw))});
  return programs;
}

/// All programs, with the clock and timing that the user asks for.
Result<std::vector<NamedProgram>> load_all(const SimOptions& options) {
  std::vector<NamedProgram> programs;
  if (is_text(options.path)) return load_text(options);
  if (!options.target.empty())
    return fail(ErrorKind::Usage, "--target is for instructions as text, F.asm",
                fmt::format("'{}' says itself what its programs are for", options.path),
                "leave --target out");
  programs = TW_TRY(load_programs(options.path));
  if (!options.hw.empty())
    for (const NamedProgram& named : programs) TW_TRY_STATUS(named.program->retime(options.hw));
  return programs;
}

/// Findings as text; whether one of them is an error.
bool report_findings(const std::string& program,
                     const std::vector<compile::ProgramFinding>& findings,
                     nlohmann::ordered_json& json) {
  bool bad = false;
  for (const compile::ProgramFinding& finding : findings) {
    bad |= finding.error;
    json.push_back({{"program", program},
                    {"rule", finding.rule},
                    {"error", finding.error},
                    {"run", finding.run},
                    {"insn", finding.insn},
                    {"text", finding.text}});
    say(fmt::format("{}: {} at {} run {} instruction {}: {}", finding.error ? "error" : "warning",
                    finding.rule, program, finding.run, finding.insn, finding.text));
  }
  return bad;
}

/// Where the results differ from those that the dump carries.
void report_mismatch(const std::string& program, const compile::ProgramMismatch& mismatch,
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
Result<compile::LaunchLog::Entry> simulate(const NamedProgram& named, const SimOptions& options,
                                           nlohmann::ordered_json& mismatches, bool& agrees) {
  compile::LaunchSettings settings;
  settings.device = options.device.empty() ? compile::timed_device(named.backend) : options.device;
  settings.record_times = true;
  compile::SimulatedProgram done = TW_TRY(named.program->simulate(settings));
  if (done.mismatch) report_mismatch(named.name, *done.mismatch, mismatches), agrees = false;
  if (done.compared > 0 && !done.mismatch)
    say(fmt::format("{}: results as expected, {} bytes", named.name, done.compared));
  if (!options.dump.empty())
    TW_TRY_STATUS(named.program->write_dump(options.dump + "/" + named.name));
  return compile::LaunchLog::Entry{named.name, std::move(done.record)};
}

/// `vta:fsim, vta:tsim or vta:rtl`: the devices of all back-ends whose programs can be read.
std::string device_names() {
  std::vector<std::string> ids;
  for (const compile::Backend* backend : compile::backends())
    if (backend->runtime().programs() != nullptr)
      for (const compile::DeviceRow& row : backend->runtime().devices()) ids.push_back(row.id);
  std::string names;
  for (size_t i = 0; i < ids.size(); ++i)
    names += (i == 0 ? "" : i + 1 < ids.size() ? ", " : " or ") + ids[i];
  return names;
}

Result<int> sim(const SimOptions& options, bool as_json) {
  TW_TRY_STATUS(check_outputs({{options.trace, options.timeline}, {options.dump}},
                              {options.path, options.hw}, as_json));
  nlohmann::ordered_json json = document("sim");
  json["findings"] = json["mismatches"] = nlohmann::ordered_json::array();
  bool good = true;
  compile::LaunchLog log;
  const std::vector<NamedProgram> programs = TW_TRY(load_all(options));
  for (const NamedProgram& named : programs) {
    if (options.disassemble && programs.size() > 1 && !as_json)
      fmt::print("{}{}\n", kProgramLine, named.name);
    if (options.disassemble)
      for (const std::string& line : named.program->assembly())
        as_json ? json["assembly"][named.name].push_back(line) : fmt::print("{}\n", line);
    const std::vector<compile::ProgramFinding> findings = named.program->check();
    const bool refused = report_findings(named.name, findings, json["findings"]);
    good &= !refused;
    if (options.check_only && findings.empty() && !as_json)
      fmt::print("{}: no problems in {} instructions\n", named.name, named.program->instructions());
    if (options.check_only || options.disassemble || refused) continue;
    Result<compile::LaunchLog::Entry> entry = simulate(named, options, json["mismatches"], good);
    if (!entry) return tl::unexpected<Error>(std::move(entry.error()).at(named.name));
    log.entries.push_back(*std::move(entry));
  }
  if (!options.trace.empty()) TW_TRY_STATUS(write_trace(options.trace, log));
  if (!options.timeline.empty()) TW_TRY_STATUS(write_timeline(options.timeline, log));
  json["launches"] = launches_json(log);
  if (as_json) {
    print_json(json);
  } else if (!log.entries.empty()) {
    fmt::print("{}", launches_table(log));
  }
  return good ? 0 : exit_code(ErrorKind::Mismatch);
}

}  // namespace

void add_sim(Verb app, VerbContext& context) {
  Verb verb = app.add_verb(
      "sim",
      "Checks and simulates the accelerator programs of a package or a program dump; exit code 5 "
      "if the checker refuses one, or its results are not those that the dump expects");
  auto options = std::make_shared<SimOptions>();
  verb.add_option("input", options->path,
                  "package.twm, a program dump, a folder of dumps, or F.asm: what --asm prints")
      .required();
  verb.add_option("--target", options->target, "the accelerator that F.asm is for");
  verb.add_option("--device", options->device, device_names());
  verb.add_option("--hw", options->hw,
                  "same hardware with another clock or timing, or what F.asm is for: a name, .toml "
                  "or .json");
  verb.add_option("--timeline", options->timeline,
                  "a picture of what the DPU did: F.html or F.svg");
  verb.add_option("--trace", options->trace,
                  "file for ui.perfetto.dev: JSON, or protobuf for F.pftrace");
  verb.add_option("--dump-program", options->dump, "folder for program dumps with their results");
  verb.add_flag("--check", options->check_only, "check only: races, deadlock, ranges, portability");
  verb.add_flag("--asm", options->disassemble, "print the instructions instead");
  for (const char* instead : {"--check", "--asm"})
    for (const char* of_run : {"--device", "--timeline", "--trace", "--dump-program"})
      verb.excludes(instead, of_run);
  verb.callback([&context, options] {
    context.action = [&context, options] { return sim(*options, context.json); };
  });
}

}  // namespace tilewright::driver
