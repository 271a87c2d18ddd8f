// run: one inference, its inputs from files and its outputs to files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/device_need.h"
#include "tilewright/driver/fleet/remote.h"
#include "tilewright/driver/inputs/ignored_options.h"
#include "tilewright/driver/inputs/outputs.h"
#include "tilewright/driver/report/launch_report.h"
#include "tilewright/driver/subject.h"

namespace tilewright::driver {
namespace {

struct RunVerb {
  SubjectOptions subject;
  OutputOptions output;
  WorkerChoice remote;
  int64_t top = 0;       ///< classes to print; 0: none
  std::string labels;    ///< file with their names
  std::string trace;     ///< file for ui.perfetto.dev
  std::string timeline;  ///< file for a picture
};

/// The inputs given; says which ones had to be made up.
Result<std::map<std::string, Array>> inputs_for(const std::vector<InputType>& types,
                                                const SubjectOptions& options) {
  std::map<std::string, Array> inputs = TW_TRY(
      given_inputs(types, TW_TRY(parse_input_specs(options.inputs)), options.seed, options.files));
  const std::vector<std::string> made = make_up(types, inputs, options.seed);
  if (!made.empty())
    say(
        fmt::format("note: random numbers are the value of input{} {} (--seed {}); "
                    "--input {}=@FILE.npy gives another",
                    made.size() > 1 ? "s" : "", fmt::join(made, ", "), options.seed, made[0]));
  return inputs;
}

struct Statistics {
  double low = 0, high = 0, mean = 0;
};
Statistics statistics(const Array& value) {
  Statistics result;
  double sum = 0;
  for (int64_t i = 0; i < value.size(); ++i) {
    const double x = value.get(i);
    result.low = i == 0 ? x : std::min(result.low, x);
    result.high = i == 0 ? x : std::max(result.high, x);
    sum += x;
  }
  if (value.size() > 0) result.mean = sum / static_cast<double>(value.size());
  return result;
}

/// The best classes of every output that has scores, as a table and in `json`.
/// errors: Invalid (no output has; labels for another number of classes).
Result<std::string> report_top(const RunVerb& verb, const NamedArrays& outputs,
                               nlohmann::ordered_json& json) {
  std::vector<std::string> labels;
  if (!verb.labels.empty()) labels = TW_TRY(read_labels(verb.labels));
  std::vector<std::vector<std::string>> rows = {{"output", "row", "class", "value", "label"}};
  Status refused;
  for (const auto& [output, value] : outputs) {
    const Result<std::vector<Score>> scores = top_scores(output, value, verb.top);
    if (!scores) {
      refused = tl::unexpected<Error>(scores.error());
      continue;
    }
    const int64_t classes =
        value.size() / std::max<int64_t>(1, scores->empty() ? 1 : scores->back().row + 1);
    if (!labels.empty() && static_cast<int64_t>(labels.size()) != classes)
      return fail(ErrorKind::Invalid, fmt::format("'{}' has {} labels, output {} {} classes",
                                                  verb.labels, labels.size(), output, classes));
    for (const Score& score : *scores) {
      const std::string label = labels.empty() ? "" : labels[static_cast<size_t>(score.index)];
      rows.push_back({output, std::to_string(score.row), std::to_string(score.index),
                      fmt::format("{:.6g}", score.value), label});
      json["top"].push_back({{"output", output},
                             {"row", score.row},
                             {"class", score.index},
                             {"value", score.value},
                             {"label", label}});
    }
  }
  if (rows.size() == 1 && !refused) return tl::unexpected<Error>(refused.error());
  return table(rows);
}

/// What a run gave, wherever it was.
struct Executed {
  OutputPlan plan;
  NamedArrays outputs;
  std::shared_ptr<compile::LaunchLog> launches = std::make_shared<compile::LaunchLog>();
  std::optional<fleet::RemoteResult> remote;
};

Result<Executed> run_here(const RunVerb& verb) {
  const std::vector<Subject> subjects = TW_TRY(load_subjects(verb.subject));
  note_ignored(subjects, verb.subject);
  SubjectOptions settings = verb.subject;
  settings.record_times =
      compile::keeps_time(settings.device) || !verb.trace.empty() || !verb.timeline.empty();
  const Runnable runnable = TW_TRY(make_runnable(subjects[0], settings));
  const runtime::Program& program = runnable.session->program();
  std::vector<std::string> names;
  for (int id : program.outputs) names.push_back(program.values[static_cast<size_t>(id)].name);
  Executed done;
  done.plan = TW_TRY(plan_outputs(verb.output, names));
  for (const auto& [name, value] : TW_TRY(inputs_for(runnable.inputs, verb.subject)))
    TW_TRY_STATUS(runnable.session->set_input(name, value));
  TW_TRY_STATUS(tilewright::driver::run(runnable));
  for (const std::string& name : names)
    done.outputs.emplace_back(name, TW_TRY(runnable.session->get_output(name)).clone());
  done.launches = runnable.launches;
  return done;
}

Result<Executed> run_there(const RunVerb& verb, const std::string& command) {
  for (const auto& [option, text] :
       {std::pair{"--trace", verb.trace}, std::pair{"--timeline", verb.timeline},
        std::pair{"--dump-program", verb.subject.dump_program},
        std::pair{"--device", verb.subject.device}})
    if (!text.empty())
      return fail(ErrorKind::Usage, fmt::format("{} is for this machine's devices", option),
                  "--worker runs on another one", "leave one of them out");
  if (verb.remote.workers.size() > 1)
    return fail(ErrorKind::Usage, "one run is on one device",
                fmt::format("--worker is there {} times", verb.remote.workers.size()),
                "verify and bench take several");
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  RemoteDevice device = TW_TRY(find_remote(verb.remote, verb.remote.workers[0],
                                           verb.subject.records, package_need(verb.subject)));
  const SubjectOptions options = TW_TRY(for_device(verb.subject, device, folder));
  const std::vector<Subject> subjects = TW_TRY(load_subjects(options));
  const RemotePackage package = TW_TRY(remote_package(subjects[0], options, device, folder));
  Executed done;
  done.plan = TW_TRY(plan_outputs(verb.output, package.outputs));
  const std::map<std::string, Array> inputs = TW_TRY(inputs_for(package.inputs, verb.subject));
  done.remote = TW_TRY(run_remote(device, package, inputs, options, {}, command));
  done.outputs = remote_outputs(*done.remote);
  return done;
}

Result<int> run(const RunVerb& verb, const VerbContext& context) {
  const bool as_json = context.json;
  if (!verb.labels.empty() && verb.top == 0)
    return fail(ErrorKind::Usage, "--labels names classes, but none are printed", {}, "--top 5");
  if (verb.subject.verify_weights && !verb.subject.paths[0].ends_with(".twm"))
    return fail(ErrorKind::Usage, "--verify-weights is for packages",
                fmt::format("'{}' is none", verb.subject.paths[0]), "leave it out");
  std::vector<std::string> files = output_paths(verb.output);
  const bool to_stdout = verb.trace == "-" || std::count(files.begin(), files.end(), "-") > 0;
  files.push_back(verb.trace);
  files.push_back(verb.timeline);
  TW_TRY_STATUS(check_outputs({files, {verb.subject.dump_program, verb.output.folder}},
                              input_files(verb.subject), as_json));
  const Executed done =
      TW_TRY(verb.remote.workers.empty() ? run_here(verb) : run_there(verb, context.command));
  const auto& [plan, outputs, log, remote] = done;
  TW_TRY_STATUS(write_outputs(plan, outputs));

  nlohmann::ordered_json json = document("run");
  std::vector<std::vector<std::string>> rows = {
      {"output", "dtype", "shape", "min", "max", "mean", "file"}};
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [output, value] = outputs[i];
    const Statistics s = statistics(value);
    const std::string file = plan.files[i].empty() ? plan.archive : plan.files[i];
    rows.push_back({output, std::string(name(value.dtype())), to_string(value.shape()),
                    fmt::format("{:.6g}", s.low), fmt::format("{:.6g}", s.high),
                    fmt::format("{:.6g}", s.mean), file});
    json["outputs"].push_back({{"name", output},
                               {"dtype", std::string(name(value.dtype()))},
                               {"shape", value.shape()},
                               {"min", s.low},
                               {"max", s.high},
                               {"mean", s.mean},
                               {"file", file}});
  }
  const std::string top = verb.top > 0 ? TW_TRY(report_top(verb, outputs, json)) : "";
  const compile::LaunchLog& launches = *log;
  if (!verb.trace.empty()) TW_TRY_STATUS(write_trace(verb.trace, launches));
  if (!verb.timeline.empty()) TW_TRY_STATUS(write_timeline(verb.timeline, launches));
  if (has_counts(launches)) json["launches"] = launches_json(launches);
  if (remote) json.update(remote_json(*remote));
  if (as_json) {
    print_json(json);
    return 0;
  }
  std::string text = table(rows);
  if (!top.empty()) text += "\n" + top;
  if (const std::string more = launches_table(launches); !more.empty()) text += "\n" + more;
  if (remote)
    text += fmt::format(
        "on {}: waited {:.0f} ms, sent {:.1f} MB in {:.0f} ms, opened in {:.0f} ms\n",
        remote->device, remote->wait_ms, static_cast<double>(remote->uploaded_bytes) / 1e6,
        remote->upload_ms, remote->open_ms);
  if (to_stdout)
    say(text);
  else
    fmt::print("{}", text);
  return 0;
}

}  // namespace

void add_run(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("run", "Computes the outputs for one set of inputs");
  auto options = std::make_shared<RunVerb>();
  add_run_options(verb, options->subject, false);
  add_input_options(verb, options->subject);
  verb.add_option("-o,--output", options->output.files,
                  "FILE.npy, NAME=FILE.npy for one of several outputs, FILE.npz for all")
      .one_value();
  verb.add_option("--output-dir", options->output.folder, "write every output to DIR/NAME.npy");
  verb.add_option("--top", options->top, "print the N classes that score highest")
      .in_range(1, 1 << 30);
  verb.add_option("--labels", options->labels, "names of the classes: a text file, one per line");
  verb.add_flag("--verify-weights", options->subject.verify_weights,
                "check the hashes of a package's weights, graph and records first");
  add_worker_options(verb, options->remote);
  verb.add_option("--timeline", options->timeline,
                  "a picture of what the DPU did: F.html or F.svg");
  verb.add_option("--trace", options->trace,
                  "what an accelerator did, for ui.perfetto.dev: JSON, or protobuf for F.pftrace");
  verb.callback([&context, options] {
    context.action = [&context, options] { return run(*options, context); };
  });
}

}  // namespace tilewright::driver
