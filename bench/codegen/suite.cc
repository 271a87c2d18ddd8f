#include "suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <sstream>
#include <thread>
#include <vector>

#include "fma_peak.h"
#include "tilewright/driver/subject.h"
#include "tilewright/ir/text.h"
#include "tilewright/measure/probes.h"
#include "tilewright/schedule/step.h"

namespace tilewright::bench {
namespace {

/// units: flop per second of `threads` cores that run bursts at the same time.
double peak_of(int threads) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back([&rates, t] { rates[static_cast<size_t>(t)] = fma_peak(0.002); });
  rates[0] = fma_peak(0.002);
  for (std::thread& other : others) other.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

struct Reading {
  double own_ns = 0, all_ns = 0;  ///< least of all runs: the operator's kernels; with copies
  double peak = 0;
  double dram = 0;  ///< reading from memory at that moment, in bytes per ns; 0: all fits in cache
  double multiply_adds = 0;
  double bytes = 0;  ///< of the operands of the operator's node, each read or written once
};

/// Multiply-adds of a contraction: outputs times the elements of one output channel's weights.
double work_of(const graph::Graph& graph) {
  const graph::Node& node = graph.nodes[0];
  const Shape& out = graph.values[static_cast<size_t>(node.outputs[0])].type.shape;
  const Shape& x = graph.values[static_cast<size_t>(node.inputs[0])].type.shape;
  const Shape& w = graph.values[static_cast<size_t>(node.inputs[1])].type.shape;
  const auto outputs = static_cast<double>(element_count(out));
  if (node.op.find("Conv") == std::string::npos) return outputs * static_cast<double>(x.back());
  const bool transposed = node.op.find("Transpose") != std::string::npos;
  if (transposed)
    return static_cast<double>(element_count(x)) * static_cast<double>(element_count(w) / w[0]);
  return outputs * static_cast<double>(element_count(w) / w[0]);
}

/// Each operand of the operator once.
double bytes_of(const graph::Graph& graph) {
  const graph::Node& node = graph.nodes[0];
  double bytes = 0;
  for (const auto& ids : {node.inputs, node.outputs})
    for (const int id : ids) {
      const tensor::TensorType& type = graph.values[static_cast<size_t>(id)].type;
      bytes += static_cast<double>(storage_bytes(type.dtype, element_count(type.shape)));
    }
  return bytes;
}

bool is_copy(const std::string& callee) {
  return callee.starts_with("to_blocked") || callee.starts_with("from_blocked");
}

Result<Reading> measure(const driver::Subject& subject, const driver::SubjectOptions& options,
                        double seconds) {
  driver::Runnable runnable = TW_TRY(driver::make_runnable(subject, options));
  runtime::Session& session = *runnable.session;
  const auto inputs = TW_TRY(driver::make_inputs(runnable.inputs, {}, options.seed));
  for (const auto& [name, value] : inputs) TW_TRY_STATUS(session.bind_input(name, value));
  for (int i = 0; i < 3; ++i) TW_TRY_STATUS(session.run());
  Reading reading;
  reading.own_ns = reading.all_ns = INFINITY;
  reading.bytes = bytes_of(*subject.graph);
  runtime::ThreadPoolOptions pool_options;
  pool_options.threads = options.threads;
  pool_options.spin_microseconds = 0;  // leaves the cores to the operator between bursts
  runtime::ThreadPool pool(pool_options);
  const bool streams = reading.bytes > static_cast<double>(hw::host().l3_bytes);
  const double begin = thread_seconds();
  for (int round = 0; round < 200 && (round < 4 || thread_seconds() - begin < seconds); ++round) {
    reading.peak = std::max(reading.peak, peak_of(options.threads));
    if (streams)
      reading.dram =
          std::max(reading.dram,
                   measure::read_memory(pool, options.threads, 2 * hw::host().l3_bytes, 0.05).rate);
    for (int i = 0; i < 3; ++i) {
      TW_TRY_STATUS(session.run());
      double own = 0, all = 0;
      for (const runtime::StepProfile& step : session.profile()) {
        all += static_cast<double>(step.last_ns);
        if (!is_copy(step.callee)) own += static_cast<double>(step.last_ns);
      }
      reading.own_ns = std::min(reading.own_ns, own);
      reading.all_ns = std::min(reading.all_ns, all);
    }
  }
  reading.multiply_adds = work_of(*subject.graph);
  return reading;
}

/// Traces and scheduled kernels, copies between layouts left out.
Status dump(const driver::Subject& subject, const driver::SubjectOptions& options) {
  const driver::Runnable runnable = TW_TRY(driver::make_runnable(subject, options));
  for (const compile::KernelReport& kernel : runnable.model->kernels)
    if (!is_copy(kernel.symbol))
      fmt::print("{}\n{}\n{}\n", subject.name, schedule::print(kernel.trace),
                 print(kernel.scheduled));
  return {};
}

Status run_suite(const std::string& suite, const SuiteOptions& options) {
  driver::SubjectOptions subjects;
  subjects.workload = options.workload;
  subjects.suite = suite;
  subjects.math = options.math == "exact" ? "exact" : "fast";
  subjects.direct = options.math == "direct";
  subjects.threads = options.threads;
  double logs = 0, worst = INFINITY;
  int count = 0;
  for (const driver::Subject& subject : TW_TRY(driver::load_subjects(subjects))) {
    if (subject.name.find(options.id) == std::string::npos) continue;
    if (options.dump) {
      TW_TRY_STATUS(dump(subject, subjects));
      continue;
    }
    const Reading r = TW_TRY(measure(subject, subjects, options.seconds));
    const double share = 100 * 2e9 * r.multiply_adds / r.own_ns / r.peak;
    const double rate = r.bytes / r.own_ns;
    fmt::print("{:42} {:10.1f} us  {:6.1f} % of peak  {:6.1f} GB/s{}  with copies {:10.1f} us\n",
               subject.name, r.own_ns * 1e-3, share, rate,
               r.dram > 0 ? fmt::format(" = {:.0f} % of reading memory", 100 * rate / r.dram) : "",
               r.all_ns * 1e-3);
    std::fflush(stdout);
    logs += std::log(share), worst = std::min(worst, share), ++count;
  }
  if (count > 0)
    fmt::print("{:42} {} thread{}: geomean {:.1f} %, worst {:.1f} % of peak, {} cases\n", suite,
               options.threads, options.threads > 1 ? "s" : "", std::exp(logs / count), worst,
               count);
  return {};
}

}  // namespace

Status run_suites(const SuiteOptions& options) {
  if (options.workload.empty())
    return fail(ErrorKind::Usage, "no file of suites is given", {}, "add --workload FILE");
  std::istringstream list(options.suites);
  for (std::string suite; std::getline(list, suite, ',');) TW_TRY_STATUS(run_suite(suite, options));
  return {};
}

}  // namespace tilewright::bench
