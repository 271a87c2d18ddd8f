// bench: medians of interleaved runs, beside ONNX Runtime if asked.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tilewright/base/statistics.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/compile/backends.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/device_use.h"
#include "tilewright/driver/fleet/remote_bench.h"
#include "tilewright/driver/inputs/ignored_options.h"
#include "tilewright/driver/report/bench_compare.h"
#include "tilewright/driver/report/gpu_profile.h"
#include "tilewright/driver/report/launch_report.h"
#include "tilewright/driver/report/profile_report.h"
#include "tilewright/driver/subject.h"
#include "tilewright/driver/tuning/machine_rates.h"
#include "tilewright/driver/verify/ort_peer.h"
#include "tilewright/graph/onnx/export.h"

namespace tilewright::driver {
namespace {

struct BenchOptions {
  SubjectOptions subject;
  WorkerChoice remote;
  std::string against;
  std::string compare;   ///< what the subject is to be faster than
  double threshold = 0;  ///< percent of its time that may be lost
  double seconds = 3;
  bool profile = false;
  std::string trace;  ///< file for ui.perfetto.dev
};

using Times = std::vector<int64_t>;

struct BenchRow {
  std::string subject;
  Times ours, peer;
  std::string peer_name;              ///< empty: not asked; "n/a": ONNX has no such operator
  std::vector<ProfiledStep> profile;  ///< medians
  double latency_ns = 0;              ///< median of the whole runs that were profiled
  std::vector<StepLimit> limits;      ///< of the profile's steps
  GpuProfile gpu;                     ///< inside launches on a GPU, if asked for
  double load_ms = 0;                 ///< opening or compiling, and preparing the memory
  double first_run_ms = 0;            ///< the run that finds everything cold
  double in_ms = 0, out_ms = 0;  ///< copying inputs in and outputs out; not part of a run's time
  /// Cycles of a simulated accelerator at its clock: `ours` are these, in ns.
  uint64_t cycles = 0;
  double clock_mhz = 0;
  std::string launches;  ///< what the accelerator did, as a table
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

/// Times of whole runs and of their steps.
struct Sampler {
  bool single_operator = false;
  StepTimes steps;
  Times whole;  ///< of the runs in `steps`
};

/// Runs for `seconds`; appends one time per run. The first kSampled runs go into `sampler` too.
Status run_for(runtime::Session& session, double seconds, Times& times,
               Sampler* sampler = nullptr) {
  constexpr int kSampled = 4000;
  const int64_t end = now_ns() + static_cast<int64_t>(seconds * 1e9);
  for (int runs = 0; runs < 3 || now_ns() < end; ++runs) {
    const int64_t start = now_ns();
    TW_TRY_STATUS(session.run());
    const int64_t whole = now_ns() - start;
    times.push_back(sampler != nullptr && sampler->single_operator ? own_time(session) : whole);
    if (sampler != nullptr && runs < kSampled) {
      sampler->steps.add(session);
      sampler->whole.push_back(whole);
    }
    TW_TRY_STATUS(check_interrupt());
  }
  return {};
}

/// What copies of all inputs and of all outputs take. units: ms.
Status time_copies(runtime::Session& session, const std::map<std::string, Array>& inputs,
                   BenchRow& row) {
  Times in, out;
  for (int round = 0; round < 5; ++round) {
    const int64_t start = now_ns();
    for (const auto& [name, value] : inputs) TW_TRY_STATUS(session.set_input(name, value));
    in.push_back(now_ns() - start);
  }
  for (int round = 0; round < 5; ++round) {
    const int64_t start = now_ns();
    for (const int id : session.program().outputs)
      TW_TRY(session.get_output(session.program().values[static_cast<size_t>(id)].name)).clone();
    out.push_back(now_ns() - start);
  }
  row.in_ms = quantile(in, 0.5) / 1e6;
  row.out_ms = quantile(out, 0.5) / 1e6;
  return {};
}

/// A simulated accelerator: its cycles at its clock, whatever the simulator takes. Absent for
/// devices that keep no time.
void use_cycles(const compile::LaunchLog& log, BenchRow& row) {
  for (const auto& entry : log.entries) {
    row.cycles += entry.record->cycles();
    row.clock_mhz = entry.record->clock_mhz();
  }
  if (row.cycles == 0) return;
  row.ours = {static_cast<int64_t>(static_cast<double>(row.cycles) * 1e3 / row.clock_mhz)};
  row.launches = launches_table(log);
}

/// For a simulator that counts no cycles.
std::string note_without_time(const compile::LaunchLog& log) {
  const std::string device = log.entries[0].record->device();
  const std::string timed = compile::timed_device(compile::backend_name(device));
  return fmt::format(
      "note: {} keeps no time: these are milliseconds of the simulator{}", device,
      timed.empty() ? "" : fmt::format("; --device {} counts the accelerator's cycles", timed));
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

bool measures_calls(const runtime::Program& program) {
  return std::any_of(program.launches.begin(), program.launches.end(), [](const auto& launch) {
    const compile::Backend* backend = compile::find_backend(launch.second.device);
    return backend != nullptr && backend->runtime().measures_calls();
  });
}

/// Times of a GPU's kernels, in runs of their own: keeping them makes runs longer.
Result<GpuProfile> profile_gpu(const Runnable& runnable, const Subject& subject,
                               const BenchOptions& options,
                               const std::map<std::string, Array>& inputs) {
  const Runnable recorded = TW_TRY(make_recorded(runnable, subject, options.subject));
  for (const auto& [name, value] : inputs) TW_TRY_STATUS(recorded.session->bind_input(name, value));
  Times times;
  TW_TRY_STATUS(run_for(*recorded.session, 0.1, times));
  for (const auto& entry : recorded.launches->entries) entry.record->reset();
  TW_TRY_STATUS(run_for(*recorded.session, options.seconds / 2, times));
  if (!runnable.model) return gpu_profile(*recorded.launches, {}, nullptr);
  const compile::CompileOptions compiled = TW_TRY(compile_options(options.subject));
  return gpu_profile(*recorded.launches, runnable.model->launches, compiled.target.gpu());
}

/// Both in turn, so that a slow moment of the machine hits both.
Status run_in_turn(runtime::Session& session, OrtPeer* peer, const BenchOptions& options,
                   Sampler& sampler, BenchRow& row) {
  constexpr int kRounds = 6;
  for (int round = 0; round < kRounds; ++round) {
    TW_TRY_STATUS(run_for(session, options.seconds / kRounds, row.ours, &sampler));
    if (peer == nullptr) continue;
    Times times = TW_TRY(peer->bench(options.seconds / kRounds, 3));
    if (!sampler.single_operator) row.peer.insert(row.peer.end(), times.begin(), times.end());
    std::this_thread::sleep_for(kPeerSettles);
  }
  if (peer != nullptr && sampler.single_operator) row.peer = TW_TRY(peer->own_times());
  return {};
}

/// The profile of a CPU's steps beside their limits.
void set_profile(const runtime::Session& session, const Sampler& sampler,
                 const BenchOptions& options, BenchRow& row) {
  const std::vector<double> medians = sampler.steps.medians();
  for (size_t i = 0; i < medians.size(); ++i)
    row.profile.push_back({session.profile()[i].name, session.profile()[i].callee, medians[i]});
  row.latency_ns = quantile(sampler.whole, 0.5);
  hw::CpuTarget machine = hw::host();
  machine.rates = known_rates(!options.subject.no_calibrate);
  row.limits = step_limits(session.program(), machine, threads_of(options.subject));
}

Result<BenchRow> bench_subject(const Subject& subject, const BenchOptions& options) {
  BenchRow row;
  row.subject = subject.name;
  SubjectOptions settings = options.subject;
  settings.record_times = compile::keeps_time(settings.device) || !options.trace.empty();
  const int64_t start = now_ns();
  Runnable runnable = TW_TRY(make_runnable(subject, settings));
  row.load_ms = subject.open_seconds * 1e3 + static_cast<double>(now_ns() - start) / 1e6;
  runtime::Session& session = *runnable.session;
  const std::map<std::string, Array> inputs =
      TW_TRY(make_inputs(runnable.inputs, TW_TRY(parse_input_specs(options.subject.inputs)),
                         options.subject.seed, options.subject.files));
  for (const auto& [name, value] : inputs) TW_TRY_STATUS(session.bind_input(name, value));
  const int64_t first = now_ns();
  TW_TRY_STATUS(session.run());
  row.first_run_ms = static_cast<double>(now_ns() - first) / 1e6;
  if (!options.trace.empty()) TW_TRY_STATUS(write_trace(options.trace, *runnable.launches));
  use_cycles(*runnable.launches, row);
  if (row.cycles > 0) return row;  // every run takes as many
  if (has_counts(*runnable.launches)) say(note_without_time(*runnable.launches));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  std::unique_ptr<OrtPeer> peer;
  if (!options.against.empty()) {
    peer = TW_TRY(load_peer(subject, options, inputs, folder));
    row.peer_name = peer ? "onnxruntime " + peer->version() : "n/a";
  }
  Times warm_up;
  TW_TRY_STATUS(run_for(session, 0.2, warm_up));
  if (peer) TW_TRY(peer->bench(0.2, 3));
  if (peer) std::this_thread::sleep_for(kPeerSettles);
  Sampler sampler{subject.single_operator, StepTimes(session.profile().size()), {}};
  TW_TRY_STATUS(run_in_turn(session, peer.get(), options, sampler, row));
  set_profile(session, sampler, options, row);
  if (options.profile && measures_calls(session.program()))
    row.gpu = TW_TRY(profile_gpu(runnable, subject, options, inputs));
  TW_TRY_STATUS(time_copies(session, inputs, row));
  return row;
}

nlohmann::ordered_json to_json(const BenchRow& row) {
  nlohmann::ordered_json json;
  auto times = [](const Times& t) {
    return nlohmann::ordered_json{{"median", quantile(t, 0.5) / 1e6},
                                  {"p10", quantile(t, 0.1) / 1e6},
                                  {"p90", quantile(t, 0.9) / 1e6},
                                  {"runs", t.size()}};
  };
  json["subject"] = row.subject;
  json["ms"] = times(row.ours);
  json["load"] = row.load_ms;
  json["first_run"] = row.first_run_ms;
  json["h2d"] = row.in_ms;
  json["compute"] = quantile(row.ours, 0.5) / 1e6;
  json["d2h"] = row.out_ms;
  if (row.cycles > 0) {
    json["cycles"] = row.cycles;
    json["clock_mhz"] = row.clock_mhz;
  }
  if (!row.peer.empty()) {
    json["peer"] = row.peer_name;
    json["peer_ms"] = times(row.peer);
    json["ratio"] = quantile(row.peer, 0.5) / quantile(row.ours, 0.5);
    json["ratio_spread"] = {quantile(row.peer, 0.25) / quantile(row.ours, 0.75),
                            quantile(row.peer, 0.75) / quantile(row.ours, 0.25)};
  } else if (!row.peer_name.empty()) {
    json["peer"] = row.peer_name;
  }
  if (row.cycles == 0) json["profile"] = profile_json(row.profile, row.limits, row.latency_ns);
  if (!row.gpu.steps.empty()) json["gpu_profile"] = gpu_profile_json(row.gpu);
  return json;
}

Result<int> bench(const BenchOptions& options, bool as_json) {
  if (!options.against.empty() && options.against != "ort")
    return fail(ErrorKind::Usage, fmt::format("bench cannot compare with '{}'", options.against),
                "it can run ONNX Runtime beside it", "--against ort");
  TW_TRY_STATUS(check_outputs({{options.trace}, {}}, input_files(options.subject), as_json));
  nlohmann::ordered_json json = document("bench");
  json["threads"] = threads_of(options.subject);
  json["what"] =
      "milliseconds; compute: one inference with inputs and outputs in place, by the wall clock, "
      "or "
      "by an accelerator's clock where there are cycles; load: compiling or opening; first_run: "
      "the "
      "first inference; h2d, d2h: copying inputs in and outputs out, not part of compute";
  std::vector<std::vector<std::string>> text = {{"subject", "median ms", "p10", "p90"}};
  if (!options.against.empty()) text[0].insert(text[0].end(), {"onnxruntime ms", "ratio"});
  std::vector<BenchRow> rows;
  const std::vector<Subject> subjects = TW_TRY(load_subjects(options.subject));
  note_ignored(subjects, options.subject);
  if (!options.trace.empty() && subjects.size() != 1)
    return fail(ErrorKind::Usage, "--trace is of one subject",
                fmt::format("there are {}", subjects.size()), "name one: a file, or --id ID");
  Progress progress("bench");
  for (size_t i = 0; i < subjects.size(); ++i) {
    progress.update(static_cast<int64_t>(i), static_cast<int64_t>(subjects.size()),
                    subjects[i].name);
    rows.push_back(TW_TRY(bench_subject(subjects[i], options)));
    const BenchRow& row = rows.back();
    json["rows"].push_back(to_json(row));
    std::vector<std::string> line = {row.subject};
    for (double share : {0.5, 0.1, 0.9})
      line.push_back(fmt::format("{:.4g}", quantile(row.ours, share) / 1e6));
    if (row.cycles > 0)
      say(
          fmt::format("note: {} takes {} cycles at {:g} MHz on the accelerator; work on this "
                      "machine's processor is not in them",
                      row.subject, row.cycles, row.clock_mhz));
    if (!row.peer.empty()) {
      line.push_back(fmt::format("{:.4g}", quantile(row.peer, 0.5) / 1e6));
      line.push_back(fmt::format("{:.2f}", quantile(row.peer, 0.5) / quantile(row.ours, 0.5)));
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
    for (const BenchRow& row : rows) {
      if (row.cycles > 0)
        fmt::print("\n{}", row.launches);
      else
        fmt::print("\n{}", profile_table(row.profile, row.limits, row.latency_ns));
      if (!row.gpu.steps.empty()) fmt::print("\n{}", gpu_profile_table(row.gpu));
    }
  return 0;
}

/// One of two that run in turn.
struct Side {
  Runnable runnable;
  std::map<std::string, Array> inputs;  ///< bound to the session
};
Result<Side> open_side(SubjectOptions settings, const std::string& path) {
  settings.paths = {path};
  settings.record_times = compile::keeps_time(settings.device);
  const std::vector<Subject> subjects = TW_TRY(load_subjects(settings));
  Side side{TW_TRY(make_runnable(subjects.at(0), settings)), {}};
  side.inputs = TW_TRY(make_inputs(side.runnable.inputs, TW_TRY(parse_input_specs(settings.inputs)),
                                   settings.seed, settings.files));
  for (const auto& [name, value] : side.inputs)
    TW_TRY_STATUS(side.runnable.session->bind_input(name, value));
  TW_TRY_STATUS(side.runnable.session->run());
  return side;
}

/// Cycles are exact: one round says all.
std::optional<Comparison> compare_cycles(const Side& now, const Side& before) {
  BenchRow rows[2];
  use_cycles(*now.runnable.launches, rows[0]);
  use_cycles(*before.runnable.launches, rows[1]);
  if (rows[0].cycles == 0 || rows[1].cycles == 0) return std::nullopt;
  const double ratio = static_cast<double>(rows[0].ours[0]) / static_cast<double>(rows[1].ours[0]);
  return Comparison{ratio, ratio, ratio};
}

/// Both in turn, the order changing from round to round.
Result<Comparison> compare_sides(const Side& now, const Side& before, double seconds) {
  constexpr int kRounds = 20;
  if (const auto exact = compare_cycles(now, before)) return *exact;
  Times warm_up;
  for (const Side* side : {&now, &before})
    TW_TRY_STATUS(run_for(*side->runnable.session, 0.1, warm_up));
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    Times times[2];
    for (const int turn : {0, 1}) {
      const int which = (round + turn) % 2;
      const Side& side = which == 0 ? now : before;
      TW_TRY_STATUS(run_for(*side.runnable.session, seconds / kRounds, times[which]));
    }
    ratios.push_back(quantile(times[0], 0.5) / quantile(times[1], 0.5));
  }
  return compare_rounds(std::move(ratios));
}

/// The subject beside `--compare`. Exit code 5 if it is slower by more than the threshold.
Result<int> bench_compare(const BenchOptions& options, bool as_json) {
  if (options.subject.paths.size() != 1)
    return fail(
        ErrorKind::Usage,
        "--compare takes exactly two: the model or package, and the one it is compared with", {},
        "tilewright bench NEW.twm --compare OLD.twm");
  if (!options.against.empty() || options.profile || !options.trace.empty())
    return fail(ErrorKind::Usage,
                "--compare does not go together with --against, --profile or --trace", {},
                "leave one of them out");
  const Side now = TW_TRY(open_side(options.subject, options.subject.paths[0]));
  const Side before = TW_TRY(open_side(options.subject, options.compare));
  const Comparison result = TW_TRY(compare_sides(now, before, options.seconds));
  nlohmann::ordered_json json = document("bench");
  json["threads"] = threads_of(options.subject);
  json["compare"] = to_json(result);
  json["compare"]["new"] = options.subject.paths[0];
  json["compare"]["old"] = options.compare;
  as_json ? print_json(json)
          : fmt::print("{} beside {}: {}\n", options.subject.paths[0], options.compare,
                       sentence(result));
  return result.low > 1 + options.threshold / 100 ? exit_code(ErrorKind::Mismatch) : 0;
}

/// On devices of the fleet. errors: Usage (what needs this machine), those of the fleet.
Result<int> bench_there(const BenchOptions& options, const VerbContext& context) {
  const bool peer = !options.against.empty() || !options.compare.empty();
  if (peer || options.profile || !options.trace.empty() || !options.subject.device.empty())
    return fail(ErrorKind::Usage,
                fmt::format("{} needs this machine", peer                     ? "--against"
                                                     : options.profile        ? "--profile"
                                                     : !options.trace.empty() ? "--trace"
                                                                              : "--device"),
                "--worker measures on another one", "leave one of them out");
  return bench_remotely(options.subject, options.remote, options.seconds, context.command,
                        context.json);
}

}  // namespace

void add_bench(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("bench",
                           "Times inferences; --against ort runs ONNX Runtime alternately with it");
  auto options = std::make_shared<BenchOptions>();
  add_run_options(verb, options->subject, true);
  add_input_options(verb, options->subject);
  add_worker_options(verb, options->remote);
  verb.add_option("--against", options->against, "ort");
  verb.add_option("--compare", options->compare,
                  "run in turn with this model or package; exit code 5 if that is faster");
  verb.add_option("--threshold", options->threshold,
                  "percent by which --compare forgives being slower (default 0)")
      .in_range(0.0, 1000.0);
  verb.needs("--threshold", "--compare");
  verb.excludes("--compare", "--workload");  // it takes one subject
  verb.add_option("--duration", options->seconds, "seconds of measuring per side")
      .in_range(0.01, 3600.0);
  verb.add_flag("--profile", options->profile,
                "time of every kernel beside what the machine allows");
  verb.add_option("--trace", options->trace,
                  "what an accelerator did, for ui.perfetto.dev: JSON, or protobuf for F.pftrace");
  verb.callback([&context, options] {
    context.action = [&context, options] {
      if (!options->remote.workers.empty()) return bench_there(*options, context);
      const SubjectOptions& subject = options->subject;
      return use_device(subject.device.empty() ? subject.target : subject.device)
          .and_then([&](const DeviceUse&) {
            return options->compare.empty() ? bench(*options, context.json)
                                            : bench_compare(*options, context.json);
          });
    };
  });
}

}  // namespace tilewright::driver
