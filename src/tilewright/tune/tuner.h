// Many tasks under one budget: each gets its share by what it is expected to gain. Batches of
// candidates are judged one after the other, or several at the same time (measure/batches.h).
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/measure/batches.h"
#include "tilewright/measure/evaluator.h"
#include "tilewright/records/record.h"
#include "tilewright/search/searcher.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// A task with what its search needs.
struct TunerTask {
  measure::Task task;
  std::string step;        ///< of a model that runs it, for people
  std::string space_name;  ///< as in records
  std::shared_ptr<const ScheduleSpace> space;
  std::unique_ptr<search::Searcher> searcher;
  /// Called when the searcher has nothing left to propose: puts another space, its name and its
  /// searcher in place, and answers whether there is one. Empty: `space` is the only one.
  std::function<Result<bool>(TunerTask&)> widen;
  /// Asked once, when the task's turn comes; not where batches are judged side by side. errors: of
  /// the evaluator; they end the task, not the run.
  std::function<Result<std::unique_ptr<measure::Evaluator>>()> evaluator;
  schedule::Trace rule;  ///< the schedule without tuning
  double expected = 0;   ///< its cost as far as known: decides whose turn comes first
  bool spare = false;    ///< runs only if tuning makes it worth it: not in sums of costs
  std::vector<search::Point> start;    ///< to try before the first searcher is asked
  std::vector<records::Record> known;  ///< of earlier runs; told, not measured again
};

struct TunerOptions {
  std::string searcher_name;  ///< as in records
  std::string compiler;       ///< of records
  uint64_t seed = 1;          ///< of records
  double seconds = search::kInvalid;
  int64_t trials = std::numeric_limits<int64_t>::max();
  double stall_gain = 0;  ///< stop when many trials gained less than this share; 0: never
  int batch = 8;
  int first = 16;  ///< trials of each task before gains are compared
  /// Time is what the readings should have taken, not what passes: for readings that are replayed.
  bool nominal_time = false;
  std::function<bool()> interrupted;
  /// Judges several batches at the same time; null: each task's evaluator judges, one batch after
  /// the other. What it judged it also keeps.
  measure::BatchEvaluator* batches = nullptr;
  /// Called with every batch; an error ends the run. Empty: nothing is kept.
  std::function<Status(const std::vector<records::Record>&)> keep;
  std::function<void()> progress;  ///< called after every batch
};

/// One candidate, as reports show it.
struct TrialLog {
  double seconds = 0;  ///< since the start of the run
  std::string point;   ///< as in records
  double prior = 0;
  measure::Reading reading;
};

/// A schedule that may become the task's.
struct Finalist {
  schedule::Trace trace;
  std::string point;  ///< as in records
  measure::Reading reading;
};

/// Where a task stands.
struct TaskState {
  measure::Reading rule;            ///< of the schedule without tuning
  std::vector<Finalist> finalists;  ///< distinct schedules, cheapest first; a few
  std::vector<TrialLog> trials;     ///< of this run
  std::map<measure::OutcomeKind, int64_t> outcomes;
  std::map<std::string, int64_t> reasons;  ///< of anything but Ok
  int64_t resumed = 0;                     ///< records told of earlier runs
  bool visited = false, exhausted = false;
  std::vector<std::string> spaces;  ///< that were searched to their end
  std::string problem;              ///< why the task could not be tuned; empty if it could

  /// Cost of the best schedule so far; 0 while unknown.
  double best() const;
};

/// Tunes tasks.
class Tuner {
 public:
  Tuner(std::vector<TunerTask> tasks, TunerOptions options);

  /// Searches until the budget is spent. errors: of `keep` and `batches`.
  Result<search::Stop> run();

  const std::vector<TunerTask>& tasks() const { return tasks_; }
  const std::vector<TaskState>& states() const { return states_; }
  /// Index of the task whose turn it was last.
  size_t current() const { return current_; }
  int64_t trials() const { return trials_; }
  /// Candidates that are being judged.
  int64_t in_flight() const { return out_; }
  double seconds() const;
  /// Sum over tasks in use of uses x cost. units: as costs.
  double untuned() const;
  double tuned() const;

 private:
  /// Points of a task on their way to readings; all vectors but `asked` are as long as `points`.
  struct Batch {
    Batch() = default;
    explicit Batch(std::vector<search::Point> all);
    void shorten(size_t size);

    std::vector<search::Point> points;
    std::vector<schedule::Trace> traces;
    std::vector<std::string> texts;  ///< of the traces
    std::vector<measure::Reading> readings;
    std::vector<size_t> asked;  ///< places in `points` of those that are judged
  };
  /// A batch that is being judged beside others; without points: the rules' schedule.
  struct Flight {
    size_t task = 0;
    Batch batch;
  };

  Result<search::Stop> run_one_by_one();
  Result<search::Stop> run_side_by_side();
  bool stop();
  size_t next() const;
  void open(size_t index);
  Status measure_rule(size_t index);
  Status step(size_t index);
  Status widen(size_t index);
  bool out_of_time() const;
  std::vector<search::Point> proposals(size_t index, int count);
  std::optional<measure::Candidate> candidate(size_t index, Batch& batch, size_t place) const;
  void settle(size_t index, Batch& batch, const std::vector<measure::Reading>& found);
  Status account(size_t index, const Batch& batch);
  Result<bool> launch();
  bool launch_rule(size_t index);
  Result<bool> launch_points(size_t index, int count);
  Status land(const measure::JudgedBatch& judged);
  void leave();
  int batch_size(size_t index) const;
  void resume(size_t index);
  void tell_known(size_t index);
  std::string point_text(size_t index, const search::Point& point) const;
  void enter(TaskState& state, Finalist finalist) const;
  records::Record record(size_t index, const search::Point& point, const std::string& schedule,
                         const measure::Reading& reading) const;
  double merit(size_t index) const;
  static double nominal_seconds(const measure::Reading& reading);

  /// What decides a task's next turn.
  struct Pace {
    std::string key;  ///< of the task
    std::unique_ptr<measure::Evaluator> evaluator;
    std::map<std::string, measure::Reading> measured;  ///< by schedule
    double recent_gain = 0;                            ///< share of the cost, per batch
    int idle = 0;                                      ///< batches without a gain
    double batch_seconds = 0;                          ///< nominal
    size_t started = 0;                                ///< of TunerTask::start
    // Side by side only:
    int out = 0, out_points = 0;   ///< batches and points that are being judged
    bool waits = false;            ///< has nothing to begin until one of these is done
    double candidate_seconds = 0;  ///< that a device needs; 0: unknown
  };

  std::vector<TunerTask> tasks_;
  TunerOptions options_;
  std::vector<TaskState> states_;
  std::vector<Pace> paces_;
  size_t current_ = 0;
  std::map<int64_t, Flight> flights_;  ///< by number of the batch
  int64_t trials_ = 0, since_gain_ = 0, out_ = 0;
  double nominal_seconds_ = 0, reference_ = search::kInvalid, start_ = 0;
  search::Stop stop_ = search::Stop::Trials;
};

/// The present moment as records have it: UTC, ISO 8601.
std::string utc_now();

}  // namespace tilewright::tune
