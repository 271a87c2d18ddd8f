// How many candidates per second are compiled, checked and measured, and where the time goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>

#include "cases.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/lower/lower.h"
#include "tilewright/measure/measurer.h"
#include "tilewright/measure/worker.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/tune/tiling_space.h"

namespace tilewright::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Options {
  std::vector<std::string> cases = {"gemm:128,128,128", "conv:64,64,14,3,1", "conv:128,128,14,1,1"};
  std::string space = "constructive";
  int trials = 200;
  int workers = 2;
  CaseOptions kernel;
};

/// The rule's schedule, then points drawn evenly.
std::vector<measure::Candidate> draw(const measure::Task& task, const Options& options) {
  const auto space =
      options.space == "tiling" ? tune::tiling_space(task) : tune::constructive_space(task);
  std::vector<measure::Candidate> candidates = {
      {{}, rules::default_trace(task.func, task.cpu(), task.threads)}};
  Rng rng(1);
  for (int i = 0; i < options.trials; ++i) {
    const search::Point point = space->space().random(rng);
    if (Result<schedule::Trace> trace = space->trace(point))
      candidates.push_back({point, *std::move(trace)});
  }
  return candidates;
}

/// Milliseconds per candidate of each stage, in this process.
std::string stages(const measure::Task& task, const std::vector<measure::Candidate>& candidates) {
  constexpr size_t kSample = 40;
  double replay = 0, lowering = 0, code = 0;
  int count = 0;
  for (size_t i = 0; i < std::min(kSample, candidates.size()); ++i) {
    auto begin = Clock::now();
    const auto scheduled = schedule::replay(task.func, candidates[i].trace);
    if (!scheduled) continue;
    replay += seconds_since(begin);
    begin = Clock::now();
    const auto lowered = lower::run_pipeline(*scheduled, "cpu");
    if (!lowered) continue;
    lowering += seconds_since(begin);
    begin = Clock::now();
    const auto kernel = compile::compile_kernel(*lowered, task.cpu());
    code += seconds_since(begin);
    ++count;
  }
  const double unit = 1e3 / std::max(count, 1);
  return fmt::format("steps {:.2f} ms, lowering {:.2f} ms, LLVM {:.2f} ms", unit * replay,
                     unit * lowering, unit * code);
}

Status run_case(measure::Measurer& measurer, const std::string& name, const Options& options) {
  const measure::Task task = TW_TRY(make_case(name, options.kernel));
  const std::vector<measure::Candidate> candidates = draw(task, options);
  auto begin = Clock::now();
  const auto evaluator = TW_TRY(measurer.evaluator(task));
  const double load = seconds_since(begin);
  begin = Clock::now();
  const std::vector<measure::Reading> readings = evaluator->evaluate(candidates);
  const double seconds = seconds_since(begin);
  std::map<std::string, int> outcomes;
  double best = search::kInvalid, rule = readings[0].cost;
  for (const measure::Reading& reading : readings) {
    ++outcomes[std::string(to_string(reading.kind))];
    if (reading.kind == measure::OutcomeKind::Ok) best = std::min(best, reading.cost);
  }
  std::string counts;
  for (const auto& [kind, count] : outcomes) counts += fmt::format(" {} {}", count, kind);
  fmt::print("{:24} {:6.1f} candidates/s (load {:.0f} ms;{}), best {:.1f} us = {:.2f} x rule; {}\n",
             name, static_cast<double>(candidates.size()) / seconds, 1e3 * load, counts,
             1e-3 * best, rule / best, stages(task, candidates));
  std::fflush(stdout);
  return {};
}

Status run(const Options& options) {
  measure::MeasureOptions chosen;
  chosen.workers = options.workers;
  const auto measurer = TW_TRY(measure::start_measurer(chosen));
  for (const std::string& name : options.cases) TW_TRY_STATUS(run_case(*measurer, name, options));
  return {};
}

}  // namespace
}  // namespace tilewright::bench

int main(int argc, char** argv) {
  using namespace tilewright;
  if (argc > 1 && std::string(argv[1]) == "measure-child")
    return measure::serve_worker(compile::compile_kernel);
  bench::Options options;
  CLI::App app("Candidates compiled and measured per second");
  app.add_option("cases", options.cases, "as bench_search takes them");
  app.add_option("--workload", options.kernel.workload, "File of cases that are not built in");
  app.add_option("--space", options.space, "constructive or tiling");
  app.add_option("--trials", options.trials);
  app.add_option("--workers", options.workers);
  app.add_option("--threads", options.kernel.threads);
  CLI11_PARSE(app, argc, argv);
  const Status status = bench::run(options);
  if (!status) fmt::print(stderr, "{}", to_string(status.error()));
  return status ? 0 : 1;
}
