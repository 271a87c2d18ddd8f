#include "tilewright/driver/fleet/run_folder.h"

#include <fmt/format.h>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/npy.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/driver/subject.h"

namespace tilewright::driver {
namespace {

/// Times of this many runs fit into a reply.
constexpr size_t kMostTimes = 10'000;

struct Settings {
  int warmup = 0, runs = 1;
  double seconds = 0;
};

/// The subject of a folder, with its device.
Result<SubjectOptions> options_of(const std::string& folder, Settings& settings) {
  SubjectOptions options;
  const nlohmann::json job = parse_json(TW_TRY(read_file(folder + "/job.json")), std::nothrow);
  try {
    options.device = job.at("device").get<std::string>();
    options.threads = job.at("threads");
    settings.warmup = job.at("warmup");
    settings.runs = job.at("runs");
    settings.seconds = job.at("seconds");
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::Parse, "job.json is not as expected", error.what());
  }
  options.paths = {folder + "/model.twm"};
  return options;
}

Status set_inputs(const std::string& folder, const Runnable& runnable) {
  for (size_t i = 0; i < runnable.inputs.size(); ++i) {
    const std::string path = fmt::format("{}/inputs/{}.npy", folder, i);
    const Array value = TW_TRY(parse_npy(TW_TRY(read_file(path)), path));
    TW_TRY_STATUS(runnable.session->set_input(runnable.inputs[i].name, value));
  }
  return {};
}

/// Cycles of a simulator at its clock, else the wall clock's time of one run.
Result<double> timed_run(const Runnable& runnable) {
  const int64_t start = now_ns();
  TW_TRY_STATUS(run(runnable));
  const double wall = static_cast<double>(now_ns() - start);
  double ns = 0;
  for (const auto& entry : runnable.launches->entries)
    if (entry.record->cycles() > 0 && entry.record->clock_mhz() > 0)
      ns += static_cast<double>(entry.record->cycles()) * 1e3 / entry.record->clock_mhz();
  return ns > 0 ? ns : wall;
}

Result<nlohmann::json> write_outputs_of(const std::string& folder, const Runnable& runnable) {
  nlohmann::json listed = nlohmann::json::array();
  const runtime::Program& program = runnable.session->program();
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const std::string& output = program.values[static_cast<size_t>(program.outputs[i])].name;
    const Array value = TW_TRY(runnable.session->get_output(output));
    TW_TRY_STATUS(
        write_file(fmt::format("{}/outputs/{}.npy", folder, i), TW_TRY(npy_bytes(value))));
    listed.push_back(
        {{"name", output}, {"dtype", std::string(name(value.dtype()))}, {"shape", value.shape()}});
  }
  return listed;
}

Result<nlohmann::json> run_job(const std::string& folder) {
  Settings settings;
  const SubjectOptions options = TW_TRY(options_of(folder, settings));
  const auto begin = SteadyClock::now();
  const std::vector<Subject> subjects = TW_TRY(load_subjects(options));
  const Runnable runnable = TW_TRY(make_runnable(subjects.at(0), options));
  TW_TRY_STATUS(set_inputs(folder, runnable));
  nlohmann::json reply = {{"ok", true}, {"open_ms", 1e3 * seconds_since(begin)}};
  for (int i = 0; i < settings.warmup; ++i) TW_TRY_STATUS(run(runnable));
  std::vector<double> times;
  const auto start = SteadyClock::now();
  while (static_cast<int>(times.size()) < settings.runs ||
         (times.size() < kMostTimes && seconds_since(start) < settings.seconds))
    times.push_back(TW_TRY(timed_run(runnable)));
  reply["run_ns"] = times;
  reply["outputs"] = TW_TRY(write_outputs_of(folder, runnable));
  return reply;
}

}  // namespace

Status run_folder(const std::string& folder) {
  const Result<nlohmann::json> reply = run_job(folder);
  const nlohmann::json json =
      reply ? *reply
            : nlohmann::json{
                  {"ok", false},
                  {"kind", "error"},
                  {"error", reply.error().what +
                                (reply.error().why.empty() ? "" : ": " + reply.error().why)}};
  return write_file(folder + "/result.json", json_text(json));
}

}  // namespace tilewright::driver
