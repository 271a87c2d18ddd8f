// Measuring candidates in worker processes: whatever a candidate does is a counted outcome.
//
//   const auto measurer = TW_TRY(start_measurer({}));
//   const auto evaluator = TW_TRY(measurer->evaluator(task));
//   const std::vector<Reading> readings = evaluator->evaluate({{{}, rule}, {point, trace}});
//
// A candidate is compiled while another one is measured; one at a time is. Its first call is
// compared with the unscheduled program's results on the same operands. Then its readings alternate
// with those of an anchor: the first good candidate of the evaluator, which is measured alone and
// sets the scale, or a later one that is less than half as slow. Its cost is the anchor's times the
// median ratio, so what slows the machine down slows down both. A candidate that is clearly slower
// than the cheapest so far is given up after two readings, or one if they are long; one that is
// behind it in all of three, after these.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/measure/evaluator.h"
#include "tilewright/measure/running_worker.h"
#include "tilewright/measure/task.h"

namespace tilewright::measure {

struct MeasureOptions {
  /// The program that serves as a worker, with its arguments: it calls `serve_worker`. Empty: this
  /// program, with the argument `worker`.
  std::vector<std::string> worker;
  int workers = 2;           ///< processes; one measures at a time, the others compile meanwhile
  double limit_seconds = 5;  ///< per candidate, compiling and running; waiting does not count
  int64_t memory_bytes = 2LL << 30;     ///< per candidate, beyond what the tasks' operands need
  double seconds_per_reading = 200e-6;  ///< the least time a reading lasts: short kernels repeat
  int readings = 7;            ///< of one not clearly worse than the cheapest; 3 of long ones
  StartWorker start;           ///< empty: start_unconfined
  std::function<bool()> stop;  ///< asked every 50 ms; true interrupts, as Ctrl-C does. May be empty
};

/// As MeasureOptions::workers, for this machine's processor: with one CPU another process could
/// only wait, and would compile every anchor once more.
int processor_workers();

/// What candidates are measured beside, if it is known before they are.
struct Anchor {
  std::string trace;  ///< printed; empty: the first good candidate becomes it
  double cost = 0;    ///< perhaps on another machine: all costs are its multiples. units: ns
  double best = 0;    ///< far above it is not worth knowing exactly; 0: unknown
};

/// Told of each candidate once it is judged, in the order of time.
using OnReading = std::function<void(size_t candidate, const Reading& reading)>;

/// An evaluator of whoever measures for others.
class AnchoredEvaluator : public Evaluator {
 public:
  /// As `evaluate`, beside `anchor`, which stays whatever the candidates cost. What an interruption
  /// leaves out is told to nobody.
  virtual std::vector<Reading> evaluate_beside(const Anchor& anchor,
                                               const std::vector<Candidate>& candidates,
                                               const OnReading& told) = 0;
};

/// Schedules of one task that run against each other.
struct Race {
  const Task* task = nullptr;
  std::vector<schedule::Trace> traces;
};
/// Median time of each schedule over that of the first; absent: the race was not begun.
using Raced = std::optional<Result<std::vector<double>>>;

/// A pool of worker processes, each restarted when it dies. For one thread at a time. Once
/// `interrupt_requested` is set (base/process.h), or `stop` of its options is true, calls come back
/// within a fraction of a second.
class Measurer {
 public:
  virtual ~Measurer() = default;
  /// An evaluator of `task`; several may live, and be used in turn. Operands are small random
  /// integers, the same for every candidate.
  ///   errors: Unsupported (a task with sizes known only at run time), Device (its target is not
  ///   this machine's), Tool (no worker starts; the unscheduled program does not run), Interrupted.
  virtual Result<std::unique_ptr<Evaluator>> evaluator(const Task& task) = 0;
  /// Runs schedules of one task against each other, in turn: median time of each over that of the
  /// first; search::kInvalid for one that fails. errors: as `evaluator`; Tool where a schedule ends
  /// the worker, or the first one fails.
  virtual Result<std::vector<double>> race(const Task& task,
                                           const std::vector<schedule::Trace>& traces,
                                           int rounds) = 0;
  /// Each of `races`, as `race`, until `more`, if given, says that none is to be begun any more.
  /// Who has several devices runs several at a time.
  virtual std::vector<Raced> races(const std::vector<Race>& races, int rounds,
                                   const std::function<bool()>& more);
};
/// The measurer of this machine.
class LocalMeasurer : public Measurer {
 public:
  /// As `evaluator`.
  virtual Result<std::unique_ptr<AnchoredEvaluator>> anchored(const Task& task) = 0;
  Result<std::unique_ptr<Evaluator>> evaluator(const Task& task) final;
};
/// errors: Tool, Io (no worker starts), Interrupted.
Result<std::unique_ptr<LocalMeasurer>> start_measurer(const MeasureOptions& options);

}  // namespace tilewright::measure
