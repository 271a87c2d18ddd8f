// What a measuring process and its workers tell each other: one line of JSON per message.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/base/fields.h"
#include "tilewright/base/result.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/measure/evaluator.h"

namespace tilewright::measure {

/// Files that a worker has. Without the last two it works alone: it computes references itself.
inline constexpr int kJobsFile = 3;     ///< a socket: jobs come, replies go
inline constexpr int kTurnFile = 4;     ///< locked shared to compile, exclusively to measure
inline constexpr int kResultsFile = 5;  ///< reference results, each computed by one worker

/// First of all: how to measure.
struct SetupJob {
  int64_t worker = 0;   ///< its number: it keeps to a CPU of its own
  int64_t workers = 1;  ///< how many there are
  double seconds_per_reading = 0;
  int64_t readings = 0;
  double limit_seconds = 0;
  int64_t memory_bytes = 0;
  static constexpr std::string_view name = "setup";
  static constexpr auto fields() {
    return std::tuple{field("worker", &SetupJob::worker),
                      field("workers", &SetupJob::workers),
                      field("seconds_per_reading", &SetupJob::seconds_per_reading),
                      field("readings", &SetupJob::readings),
                      field("limit_seconds", &SetupJob::limit_seconds),
                      field("memory_bytes", &SetupJob::memory_bytes)};
  }
};
/// A kernel that later jobs are about.
struct TaskJob {
  int64_t task = 0;
  std::string func;    ///< printed
  std::string target;  ///< printed (target_text.h)
  int64_t threads = 1;
  int64_t place = 0;   ///< of its reference results in kResultsFile
  std::string device;  ///< what runs it: a GPU, `runner:CMD`; empty: this processor
  static constexpr std::string_view name = "task";
  static constexpr auto fields() {
    return std::tuple{field("task", &TaskJob::task),     field("func", &TaskJob::func),
                      field("target", &TaskJob::target), field("threads", &TaskJob::threads),
                      field("place", &TaskJob::place),   field("device", &TaskJob::device)};
  }
};
/// Measure one candidate beside the anchor (-1: there is none yet).
struct MeasureJob {
  int64_t task = 0, candidate = 0;
  std::string trace;
  int64_t anchor = -1;
  std::string anchor_trace;
  double anchor_cost = 0;  ///< units: ns
  double best_cost = 0;    ///< far above it is not worth knowing exactly
  /// The anchor's cost is of another machine: it may take longer here without being disturbed.
  bool elsewhere = false;
  static constexpr std::string_view name = "measure";
  static constexpr auto fields() {
    return std::tuple{field("task", &MeasureJob::task),
                      field("candidate", &MeasureJob::candidate),
                      field("trace", &MeasureJob::trace),
                      field("anchor", &MeasureJob::anchor),
                      field("anchor_trace", &MeasureJob::anchor_trace),
                      field("anchor_cost", &MeasureJob::anchor_cost),
                      field("best_cost", &MeasureJob::best_cost),
                      field("elsewhere", &MeasureJob::elsewhere)};
  }
};
/// Run several schedules in turn.
struct RaceJob {
  int64_t task = 0;
  std::vector<std::string> traces;
  int64_t rounds = 0;
  static constexpr std::string_view name = "race";
  static constexpr auto fields() {
    return std::tuple{field("task", &RaceJob::task), field("traces", &RaceJob::traces),
                      field("rounds", &RaceJob::rounds)};
  }
};
/// Free what a task holds.
struct ForgetJob {
  int64_t task = 0;
  static constexpr std::string_view name = "forget";
  static constexpr auto fields() { return std::tuple{field("task", &ForgetJob::task)}; }
};

using Job = std::variant<SetupJob, TaskJob, MeasureJob, RaceJob, ForgetJob>;

/// `wait` and `run` say whether the time of a job counts: waiting for other workers does not. The
/// others end a job: `ready` for a setup, a task or a forgotten one, `done` with a result.
struct Reply {
  std::string state;
  std::string outcome;  ///< of `done`: an OutcomeKind
  std::string reason;
  double cost = 0, least = 0, spread = 0;
  int64_t readings = 0;
  double fastest = 0;          ///< of a candidate, as timed. units: ns
  std::vector<double> ratios;  ///< of a race; -1 for a schedule that failed
  static constexpr auto fields() {
    return std::tuple{field("state", &Reply::state),       field("outcome", &Reply::outcome),
                      field("reason", &Reply::reason),     field("cost", &Reply::cost),
                      field("least", &Reply::least),       field("spread", &Reply::spread),
                      field("readings", &Reply::readings), field("fastest", &Reply::fastest),
                      field("ratios", &Reply::ratios)};
  }
};

Reply reply_of(const Reading& reading);
Reading reading_of(const Reply& reply);

/// One line, with its end.
std::string to_line(const Job& job);
std::string to_line(const Reply& reply);
/// errors: Parse.
Result<Job> parse_job(std::string_view line);
Result<Reply> parse_reply(std::string_view line);

/// Elements from the first to the last of a parameter, gaps between strides included.
/// errors: Unsupported for sizes known only at run time; Limit for more than can be counted.
Result<int64_t> span_of(const Param& param);

}  // namespace tilewright::measure
