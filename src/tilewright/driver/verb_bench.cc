// bench: medians of interleaved runs, beside ONNX Runtime if asked.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/gpu_profile.h"
#include "tilewright/driver/machine_rates.h"
#include "tilewright/driver/ort_peer.h"
#include "tilewright/driver/profile_report.h"
#include "tilewright/driver/subject.h"
#include "tilewright/driver/usage.h"
#include "tilewright/graph/export.h"

namespace tilewright::driver {
namespace {

struct BenchOptions {
  SubjectOptions subject;
  std::string against;
  double seconds = 3;
  bool profile = false;
};

using Times = std::vector<int64_t>;

/// The value below which `share` of the sorted times lie.
double percentile(Times times, double share) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  const auto index = static_cast<size_t>(share * static_cast<double>(times.size() - 1) + 0.5);
  return static_cast<double>(times[index]);
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Row {
  std::string subject;
  Times ours, peer;
  std::string peer_name;  ///< empty: not asked; "n/a": ONNX has no such operator
  std::vector<runtime::StepProfile> profile;
  std::vector<StepLimit> limits;  ///< of the profile's steps
  std::vector<GpuStepTime> gpu;   ///< inside launches on a GPU, if asked for
  double open_ms = 0;             ///< of a package
};

/// Whether a kernel only changes the layout: nothing else is fused into it.
bool is_layout_copy(const std::string& kernel) {
  for (const std::string_view name : {"to_blocked_", "from_blocked_"})
    if (kernel.starts_with(name) &&
        kernel.find_first_not_of("0123456789", name.size()) == std::string::npos)
      return true;
  return false;
}

/// Time of the last run that belongs to the operator itself: layout copies around it apart.
int64_t own_time(const runtime::Session& session) {
  int64_t total = 0;
  for (const runtime::StepProfile& step : session.profile()) {
    const bool copy = is_layout_copy(step.callee);
    if (!copy || session.profile().size() == 1) total += step.last_ns;
  }
  return total;
}

/// Runs for `seconds`; appends one time per run.
Status run_for(runtime::Session& session, double seconds, bool single_operator, Times& times) {
  const int64_t end = now_ns() + static_cast<int64_t>(seconds * 1e9);
  for (int runs = 0; runs < 3 || now_ns() < end; ++runs) {
    const int64_t start = now_ns();
    TW_TRY_STATUS(session.run());
    const int64_t whole = now_ns() - start;
    times.push_back(single_operator ? own_time(session) : whole);
    TW_TRY_STATUS(check_interrupt());
  }
  return {};
}

/// The peer loaded with the subject; absent if ONNX has no such operator.
Result<std::unique_ptr<OrtPeer>> load_peer(const Subject& subject, const BenchOptions& options,
                                           const std::map<std::string, Array>& inputs,
                                           const TemporaryFolder& folder) {
  if (!subject.graph) return std::unique_ptr<OrtPeer>();
  if (subject.single_operator && !subject.graph->nodes[0].domain.empty())
    return std::unique_ptr<OrtPeer>();
  std::string path = subject.path;
  if (path.empty() || !options.subject.shapes.empty() || !options.subject.dims.empty() ||
      !options.subject.constants.empty()) {
    path = folder.file("model.onnx");
    TW_TRY_STATUS(graph::save_onnx(path, *subject.graph));
  }
  std::unique_ptr<OrtPeer> peer = TW_TRY(OrtPeer::start());
  OrtPeer::LoadOptions load;
  load.threads = threads_of(options.subject);
  load.profile = subject.single_operator;
  TW_TRY_STATUS(peer->load(path, load));
  TW_TRY_STATUS(peer->set_inputs(inputs));
  return peer;
}

/// The peer's threads look for work that long after a run, on the cores that ours need.
constexpr std::chrono::milliseconds kPeerSettles(150);

bool uses_gpu(const runtime::Program& program) {
  return std::any_of(program.launches.begin(), program.launches.end(), [](const auto& launch) {
    return launch.second.device == "opencl" || launch.second.device == "cuda";
  });
}

/// Times of a GPU's kernels, in runs of their own: keeping them makes runs longer.
Result<std::vector<GpuStepTime>> profile_gpu(const Runnable& runnable, const Subject& subject,
                                             const BenchOptions& options,
                                             const std::map<std::string, Array>& inputs) {
  const Runnable recorded = TW_TRY(make_recorded(runnable, subject, options.subject));
  for (const auto& [name, value] : inputs) TW_TRY_STATUS(recorded.session->bind_input(name, value));
  Times times;
  TW_TRY_STATUS(run_for(*recorded.session, 0.1, false, times));
  for (LaunchLog::GpuEntry& entry : recorded.launches->gpus) {
    entry.runs = 0;
    std::fill(entry.total_ns.begin(), entry.total_ns.end(), 0);
  }
  TW_TRY_STATUS(run_for(*recorded.session, options.seconds / 2, false, times));
  std::optional<hw::GpuTarget> target;
  if (runnable.model) target = TW_TRY(compile_options(options.subject)).gpu;
  return gpu_step_times(
      *recorded.launches,
      runnable.model ? runnable.model->gpu_launches : std::map<std::string, GpuLaunchCode>(),
      target);
}

Result<Row> bench_subject(const Subject& subject, const BenchOptions& options) {
  Row row;
  row.subject = subject.name;
  row.open_ms = subject.open_seconds * 1e3;
  Runnable runnable = TW_TRY(make_runnable(subject, options.subject));
  runtime::Session& session = *runnable.session;
  const std::map<std::string, Array> inputs =
      TW_TRY(make_inputs(runnable.inputs, TW_TRY(parse_input_specs(options.subject.inputs)),
                         options.subject.seed, options.subject.files));
  for (const auto& [name, value] : inputs) TW_TRY_STATUS(session.bind_input(name, value));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  std::unique_ptr<OrtPeer> peer;
  if (!options.against.empty()) {
    peer = TW_TRY(load_peer(subject, options, inputs, folder));
    row.peer_name = peer ? "onnxruntime " + peer->version() : "n/a";
  }
  Times warm_up;
  TW_TRY_STATUS(run_for(session, 0.2, false, warm_up));
  if (peer) TW_TRY(peer->bench(0.2, 3));
  if (peer) std::this_thread::sleep_for(kPeerSettles);
  session.reset_profile();
  // Both in turn, so that a slow moment of the machine hits both.
  constexpr int kRounds = 6;
  for (int round = 0; round < kRounds; ++round) {
    TW_TRY_STATUS(run_for(session, options.seconds / kRounds, subject.single_operator, row.ours));
    if (!peer) continue;
    Times times = TW_TRY(peer->bench(options.seconds / kRounds, 3));
    if (!subject.single_operator) row.peer.insert(row.peer.end(), times.begin(), times.end());
    std::this_thread::sleep_for(kPeerSettles);
  }
  if (peer && subject.single_operator) row.peer = TW_TRY(peer->own_times());
  row.profile = session.profile();
  if (options.profile && uses_gpu(session.program()))
    row.gpu = TW_TRY(profile_gpu(runnable, subject, options, inputs));
  hw::CpuTarget machine = hw::host();
  machine.rates = known_rates(!options.subject.no_calibrate);
  const std::map<std::string, KernelWork> works =
      runnable.model ? kernel_works(*runnable.model) : std::map<std::string, KernelWork>();
  row.limits = step_limits(session.program(), works, machine, threads_of(options.subject));
  return row;
}

nlohmann::ordered_json to_json(const Row& row) {
  nlohmann::ordered_json json;
  auto times = [](const Times& t) {
    return nlohmann::ordered_json{{"median", percentile(t, 0.5) / 1e6},
                                  {"p10", percentile(t, 0.1) / 1e6},
                                  {"p90", percentile(t, 0.9) / 1e6},
                                  {"runs", t.size()}};
  };
  json["subject"] = row.subject;
  json["ms"] = times(row.ours);
  if (row.open_ms > 0) json["open_ms"] = row.open_ms;
  if (!row.peer.empty()) {
    json["peer"] = row.peer_name;
    json["peer_ms"] = times(row.peer);
    json["ratio"] = percentile(row.peer, 0.5) / percentile(row.ours, 0.5);
    json["ratio_spread"] = {percentile(row.peer, 0.25) / percentile(row.ours, 0.75),
                            percentile(row.peer, 0.75) / percentile(row.ours, 0.25)};
  } else if (!row.peer_name.empty()) {
    json["peer"] = row.peer_name;
  }
  if (row.limits.size() == row.profile.size())
    json["profile"] = profile_json(row.profile, row.limits);
  if (!row.gpu.empty()) json["gpu_profile"] = gpu_profile_json(row.gpu);
  return json;
}

Result<int> bench(const BenchOptions& options, bool as_json) {
  if (!options.against.empty() && options.against != "ort")
    return fail(ErrorKind::Usage, fmt::format("cannot bench against '{}'", options.against),
                "the only peer is ort");
  nlohmann::ordered_json json = document("bench");
  json["threads"] = threads_of(options.subject);
  json["what"] = "wall time of one inference, inputs and outputs bound; milliseconds";
  std::vector<std::vector<std::string>> text = {{"subject", "median ms", "p10", "p90"}};
  if (!options.against.empty()) text[0].insert(text[0].end(), {"onnxruntime ms", "ratio"});
  std::vector<Row> rows;
  const std::vector<Subject> subjects = TW_TRY(load_subjects(options.subject));
  Progress progress("bench");
  for (size_t i = 0; i < subjects.size(); ++i) {
    progress.update(static_cast<int64_t>(i), static_cast<int64_t>(subjects.size()),
                    subjects[i].name);
    rows.push_back(TW_TRY(bench_subject(subjects[i], options)));
    const Row& row = rows.back();
    json["rows"].push_back(to_json(row));
    std::vector<std::string> line = {row.subject};
    for (double share : {0.5, 0.1, 0.9})
      line.push_back(fmt::format("{:.4g}", percentile(row.ours, share) / 1e6));
    if (!row.peer.empty()) {
      line.push_back(fmt::format("{:.4g}", percentile(row.peer, 0.5) / 1e6));
      line.push_back(fmt::format("{:.2f}", percentile(row.peer, 0.5) / percentile(row.ours, 0.5)));
    } else if (!options.against.empty()) {
      line.insert(line.end(), {"n/a", "n/a"});
    }
    text.push_back(std::move(line));
  }
  if (as_json) {
    print_json(json);
    return 0;
  }
  fmt::print("{}", table(text));
  if (options.profile)
    for (const Row& row : rows) {
      fmt::print("\n{}", profile_table(row.profile, row.limits));
      if (!row.gpu.empty()) fmt::print("\n{}", gpu_profile_table(row.gpu));
    }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "bench", "Medians of runs; --against ort runs ONNX Runtime in turn with it");
  auto options = std::make_shared<BenchOptions>();
  add_subject_options(*verb, options->subject, true);
  add_input_options(*verb, options->subject);
  verb->add_option("--against", options->against, "ort");
  verb->add_option("--duration", options->seconds, "seconds of measuring per side")
      ->check(in_range("--duration", 0.01, 3600.0));
  verb->add_flag("--profile", options->profile,
                 "time of every kernel beside what the machine allows");
  verb->callback([&context, options] {
    context.action = [&context, options] { return bench(*options, context.json); };
  });
}

}  // namespace tilewright::driver
