// How much of the best that is known for an operator is reached without measuring, and how soon.
//   bench_oracle --workload F.json [--every 3 [--from 0] | --case ID;ID] [--box 60] [--threads 1]
//     [--out DIR] [--for SECONDS] [--peers A.json,B.json] [--table]
// For every n-th float32 case, in file order, or those with these ids: one run of `tilewright tune`
// with an empty store searches for --box seconds. What was best at the start, after one second,
// after a third of the box and at its end then run in turn. The oracle is the best of these, or a
// peer where results of bench/peers at the same number of threads are given. Cases done are kept in
// DIR/oracle.jsonl, and the next run goes on behind them; --for ends after so many seconds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/tuning/tune_run.h"
#include "tilewright/measure/worker.h"
#include "tilewright/records/workload.h"

namespace tilewright::bench {
namespace {

struct Options {
  std::string workload, out = "bench_oracle_out", peers;
  std::string cases;
  int every = 3, from = 0, threads = 1;
  double box = 60, seconds = search::kInvalid;
  bool table = false;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Points in time at which an operator is looked at: none, 1 s, a third of the box, the box.
constexpr size_t kLooks = 4;
using Looks = std::array<double, kLooks>;
Looks look_times(double box) { return {0, std::min(1.0, box), box / 3, search::kInvalid}; }

/// The schedule that was best at `time`; the rules' where none was better.
schedule::Trace best_at(const tune::TunerTask& task, const tune::TaskState& state, double time) {
  double least = state.rule.cost;
  schedule::Trace best = task.rule;
  for (const tune::TrialLog& trial : state.trials) {
    if (trial.seconds > time || trial.reading.kind != measure::OutcomeKind::Ok) continue;
    if (trial.reading.cost >= least) continue;
    const auto point = task.space->space().find(trial.point);
    if (!point) continue;
    if (Result<schedule::Trace> trace = task.space->trace(*point))
      best = *std::move(trace), least = trial.reading.cost;
  }
  return best;
}

/// Costs of the schedules of `task` that were best at the times of `looks`, in a race. What loses
/// against an earlier one is not taken, as in `tilewright tune`. units: ns.
Result<Looks> raced(const tune::TunerTask& task, const tune::TaskState& state, const Looks& looks,
                    measure::Measurer& measurer) {
  constexpr int kRounds = 21;
  if (state.rule.kind != measure::OutcomeKind::Ok)
    return fail(ErrorKind::Tool, task.task.name + " cannot be measured", state.rule.reason);
  std::vector<schedule::Trace> traces;
  std::map<std::string, size_t> known;
  std::array<size_t, kLooks> which{};
  for (size_t i = 0; i < kLooks; ++i) {
    schedule::Trace trace = i == 0 ? task.rule : best_at(task, state, looks[i]);
    const auto [place, fresh] = known.emplace(schedule::print(trace), traces.size());
    if (fresh) traces.push_back(std::move(trace));
    which[i] = place->second;
  }
  const std::vector<double> ratios = traces.size() == 1
                                         ? std::vector<double>{1}
                                         : TW_TRY(measurer.race(task.task, traces, kRounds));
  Looks costs{};
  for (size_t i = 0; i < kLooks; ++i) {
    costs[i] = state.rule.cost * ratios[which[i]];
    if (i > 0) costs[i] = std::min(costs[i], costs[i - 1]);
  }
  return costs;
}

/// Sum over the kernels of a model of those that were tuned.
Looks sum_of(const compile::CompiledModel& model, const std::map<std::string, Looks>& costs) {
  Looks sum{};
  for (const compile::KernelReport& kernel : model.kernels) {
    const auto found = costs.find(records::workload_key(records::workload_text(kernel.func)));
    if (found == costs.end()) continue;
    for (size_t i = 0; i < kLooks; ++i)
      sum[i] += static_cast<double>(kernel.steps.size()) * found->second[i];
  }
  return sum;
}

/// One operator. errors: of the run.
Result<nlohmann::json> study(const std::string& id, const Options& options,
                             measure::Measurer& measurer) {
  driver::TuneSettings settings;
  settings.subject.workload = options.workload;
  settings.subject.id = id;
  settings.subject.threads = options.threads;
  settings.subject.records = options.out + "/run.sqlite";
  settings.search_seconds = options.box;
  for (const char* suffix : {"", "-wal", "-shm"})
    std::filesystem::remove(settings.subject.records + suffix);
  driver::TuneRun run(settings);
  TW_TRY_STATUS(run.prepare());
  TW_TRY_STATUS(run.open());
  TW_TRY_STATUS(run.search());
  if (run.interrupted()) return fail(ErrorKind::Interrupted, "interrupted");
  std::map<std::string, Looks> costs;
  const Looks times = look_times(options.box);
  bool all_forms = true;
  for (size_t i = 0; i < run.tuner().tasks().size(); ++i) {
    const tune::TunerTask& task = run.tuner().tasks()[i];
    const Result<Looks> found = raced(task, run.tuner().states()[i], times, measurer);
    if (!found && !task.spare) return tl::unexpected<Error>(found.error());
    if (found)
      costs[task.task.key()] = *found;
    else
      all_forms = false;  // no time for the other algorithm
  }
  const driver::TunedModel& model = run.plan().models.at(0);
  Looks sums = sum_of(model.compiled, costs);
  bool other = false;
  for (const driver::OtherForms& forms : model.others) {
    if (!all_forms) break;
    const Looks others = sum_of(forms.compiled, costs);
    other |= others.back() < sums.back();
    for (size_t i = 1; i < kLooks; ++i) sums[i] = std::min(sums[i], others[i]);
  }
  return nlohmann::json{{"case", id},
                        {"threads", options.threads},
                        {"box", options.box},
                        {"trials", run.tuner().trials()},
                        {"other_algorithm", other},
                        {"ns", sums}};
}

/// The least share of Tilewright's time, compiled by rule, that a peer takes; by case.
Result<std::map<std::string, double>> peer_shares(const std::string& files) {
  std::map<std::string, double> shares;
  std::istringstream list(files);
  for (std::string file; std::getline(list, file, ',');) {
    const auto json = nlohmann::json::parse(TW_TRY(read_file(file)), nullptr, false);
    if (!json.is_object() || !json.contains("cases"))
      return fail(ErrorKind::Parse, file + " is no result of bench/peers");
    for (const auto& item : json["cases"])
      for (const auto& [peer, ratio] : item["ratios"].items()) {
        double& share = shares.emplace(item.value("id", ""), search::kInvalid).first->second;
        share = std::min(share, ratio.value("median", search::kInvalid));
      }
  }
  return shares;
}

/// Cases that are done with this box and these threads.
std::vector<nlohmann::json> kept(const Options& options) {
  std::vector<nlohmann::json> found;
  std::ifstream in(options.out + "/oracle.jsonl");
  for (std::string line; std::getline(in, line);) {
    nlohmann::json item = nlohmann::json::parse(line, nullptr, false);
    if (item.is_object() && item.value("threads", 0) == options.threads &&
        item.value("box", 0.0) == options.box)
      found.push_back(std::move(item));
  }
  return found;
}

/// Shares of the oracle's speed; per case, then geometric mean and worst.
Status print_table(const Options& options, size_t cases) {
  const std::map<std::string, double> peers = TW_TRY(peer_shares(options.peers));
  const Looks times = look_times(options.box);
  fmt::print("{:44} {:>8} {:>8} {:>8} {:>8} {:>8}  {}\n", "share of the oracle's speed", "none",
             fmt::format("{:.3g} s", times[1]), fmt::format("{:.3g} s", times[2]),
             fmt::format("{:.3g} s", options.box), "trials", "oracle");
  Looks logs{}, worst;
  worst.fill(search::kInvalid);
  size_t count = 0;
  for (const nlohmann::json& item : kept(options)) {
    if (!item.contains("ns")) continue;
    const Looks ns = item["ns"];
    const auto peer = peers.find(item.value("case", ""));
    const double by_peer = peer == peers.end() ? search::kInvalid : ns[0] * peer->second;
    const double oracle = std::min(ns.back(), by_peer);
    std::string row = fmt::format("{:44}", item.value("case", ""));
    for (size_t i = 0; i < kLooks; ++i) {
      const double share = oracle / ns[i];
      logs[i] += std::log(share), worst[i] = std::min(worst[i], share);
      row += fmt::format(" {:6.1f} %", 100 * share);
    }
    const char* who = by_peer < ns.back()                    ? "a peer"
                      : item.value("other_algorithm", false) ? "search, other algorithm"
                                                             : "search";
    fmt::print("{} {:>8}  {}\n", row, item.value("trials", 0), who);
    ++count;
  }
  for (const bool mean : {true, false}) {
    fmt::print("{:44}",
               mean ? fmt::format("geometric mean of {} of {} cases", count, cases) : "worst");
    for (size_t i = 0; i < kLooks; ++i)
      fmt::print(" {:6.1f} %",
                 100 * (mean ? std::exp(logs[i] / std::max<double>(count, 1)) : worst[i]));
    fmt::print("\n");
  }
  return {};
}

Result<std::vector<std::string>> case_names(const Options& options) {
  const auto file = nlohmann::json::parse(TW_TRY(read_file(options.workload)), nullptr, false);
  if (!file.is_object() || !file.contains("cases"))
    return fail(ErrorKind::Parse, options.workload + " is no workload file");
  std::vector<std::string> names;
  if (!options.cases.empty()) {
    std::istringstream list(options.cases);
    for (std::string name; std::getline(list, name, ';');) names.push_back(name);
    return names;
  }
  int floats = -options.from;
  for (const auto& item : file["cases"]) {
    if (item.value("dtype", "") != "float32") continue;
    if (floats >= 0 && floats % options.every == 0) names.push_back(item.value("id", ""));
    ++floats;
  }
  return names;
}

Status run(const Options& options) {
  const double start = now();
  const std::vector<std::string> names = TW_TRY(case_names(options));
  std::filesystem::create_directories(options.out);
  std::set<std::string> done;
  for (const nlohmann::json& item : kept(options)) done.insert(item.value("case", ""));
  const auto measurer = TW_TRY(measure::start_measurer({}));
  for (const std::string& name : names) {
    if (options.table || driver::interrupted() || now() - start > options.seconds) break;
    if (done.contains(name)) continue;
    Result<nlohmann::json> item = study(name, options, *measurer);
    if (driver::interrupted()) break;
    if (!item) {
      fmt::print(stderr, "{}: {}", name, to_string(item.error()));
      item = nlohmann::json{{"case", name},
                            {"threads", options.threads},
                            {"box", options.box},
                            {"problem", item.error().what}};
    }
    std::ofstream(options.out + "/oracle.jsonl", std::ios::app) << item->dump() << "\n";
    fmt::print(stderr, "{}\n", item->dump());
  }
  return print_table(options, names.size());
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "measure-child")
    return measure::serve_worker(compile::compile_kernel);
  Options options;
  CLI::App app("What is reached without measuring, and how soon the rest");
  app.add_option("--workload", options.workload, "File of cases")->required();
  app.add_option("--every", options.every, "Every n-th float32 case")->check(CLI::PositiveNumber);
  app.add_option("--from", options.from, "The first of them")->check(CLI::NonNegativeNumber);
  app.add_option("--case", options.cases, "Ids, separated by ;");
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--box", options.box, "Seconds of search per case")->check(CLI::PositiveNumber);
  app.add_option("--for", options.seconds, "Begin no case after so many seconds");
  app.add_option("--out", options.out, "Folder of results");
  app.add_option("--peers", options.peers, "Results of bench/peers at as many threads");
  app.add_flag("--table", options.table, "Kept results alone");
  CLI11_PARSE(app, argc, argv);
  const Status ok = run(options);
  if (!ok) fmt::print(stderr, "{}", to_string(ok.error()));
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace tilewright::bench

int main(int argc, char** argv) { return tilewright::bench::main(argc, argv); }
