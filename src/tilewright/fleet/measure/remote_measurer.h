// Measuring on the devices of a fleet: what a search asks of a Measurer, done by jobs.
//
// Example: a search on three devices. `begin` makes a job of each batch of candidates, `wait` sends
// it, looks at all jobs that are out with one question, and tells of the first that is done:
//
//   begin rule  -> job 1       on any device: its cost is the anchor of all later jobs of the task
//   begin batch -> job 2, 3    their devices measure beside that anchor: costs are its multiples
//
// A store that does not answer is asked again, for as long as the search goes on: jobs keep their
// ids, so nothing is measured twice or lost. Some candidates are measured a second time on
// purpose, in jobs of which nobody is told: the store compares what two devices say of one
// schedule.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tilewright/fleet/device_spec.h"
#include "tilewright/fleet/jobs.h"
#include "tilewright/fleet/measure/measure_job.h"
#include "tilewright/measure/batches.h"
#include "tilewright/measure/measurer.h"

namespace tilewright::fleet {

/// Calls a function of the store with texts: Client::call, or a test's own.
using StoreCall = std::function<Result<nlohmann::json>(const std::string& function,
                                                       const std::vector<std::string>& texts)>;

struct RemoteMeasuring {
  std::string command;             ///< as typed: shown by `fleet status`
  std::string compiler, searcher;  ///< of records; only workers with this compiler measure
  uint64_t seed = 1;               ///< of records
  double limit_s = 5;              ///< per candidate
  double wait_s = 0;               ///< for the first device; 0: for ever
  double confirm_s = 20;           ///< for a second device that takes a race
  std::vector<std::string> needs;  ///< tags of the devices
  std::vector<std::string> names;  ///< only these devices, in turn; empty: any of the class
  /// The least cost that a device can show; 0: unknown. units: ns. May be empty.
  std::function<double(const measure::Task&)> least;
  std::function<bool()> stop;                        ///< the user interrupts
  std::function<void(const std::string& line)> say;  ///< one line for people
};

/// For one thread at a time.
class RemoteMeasurer final : public measure::Measurer, public measure::BatchEvaluator {
 public:
  /// `on`: devices of one class.
  RemoteMeasurer(StoreCall call, Selected on, RemoteMeasuring options);
  ~RemoteMeasurer() override;
  RemoteMeasurer(const RemoteMeasurer&) = delete;
  RemoteMeasurer& operator=(const RemoteMeasurer&) = delete;

  /// The scale of a task, as an earlier run found it.
  void set_anchor(const measure::Task& task, const std::string& schedule, double cost);

  int devices() const override;
  int64_t begin(const measure::Task& task,
                const std::vector<measure::Candidate>& candidates) override;
  /// errors: Limit (no device took a job within `wait_s`), Device (job after job fails), of the
  /// store.
  Result<std::optional<measure::JudgedBatch>> wait(double seconds) override;
  void cancel() override;

  /// Waits for each batch. Costs are as of `begin`.
  Result<std::unique_ptr<measure::Evaluator>> evaluator(const measure::Task& task) override;
  /// One job on one device, and where the class has another, one there: of each schedule the worse
  /// ratio counts. errors: Limit, Interrupted, Tool, of the store.
  Result<std::vector<double>> race(const measure::Task& task,
                                   const std::vector<schedule::Trace>& traces, int rounds) override;
  /// On all devices at the same time.
  std::vector<measure::Raced> races(const std::vector<measure::Race>& races, int rounds,
                                    const std::function<bool()>& more) override;

  /// Whether the user has interrupted.
  bool stopped() const { return options_.stop && options_.stop(); }
  const Selected& on() const { return on_; }
  /// Devices that work on jobs of this run, as last seen.
  int busy() const { return static_cast<int>(busy_.size()); }
  /// Names of those that ever did.
  const std::set<std::string>& used() const { return used_; }

 private:
  using Clock = std::chrono::steady_clock;
  class Races;

  /// What costs of a task are multiples of.
  struct Scale {
    std::string anchor;  ///< printed; empty: not found yet
    double cost = 0, best = 0;
    bool sought = false;                      ///< a job is out that will find it
    std::map<std::string, MeasureItem> sent;  ///< all of them, by schedule, for races
  };
  /// A batch and the job that is out for what is left of it.
  struct Batch {
    int64_t id = 0;  ///< 0: a repeat, nobody is told
    std::string job;
    MeasureRequest request;  ///< anchor and costs are filled in when it is sent
    double least = 0;        ///< as RemoteMeasuring::least
    size_t first = 0;        ///< item of the request with which the job begins
    bool sent = false;
    std::vector<measure::Reading> readings;
    int attempts = 1;
    double leased_at = -1;  ///< as now()
  };

  double now() const;
  void say(const std::string& line) const;
  /// Calls the store; absent while it does not answer.
  Result<std::optional<nlohmann::json>> ask(const std::string& function,
                                            const std::vector<std::string>& texts);
  Result<bool> open_run();
  void close_run();
  Status send();
  Status look();
  bool hear(Batch& batch, const JobState& state);
  void add_reading(Batch& batch, const ItemResult& item);
  Status check_waiting();
  void repeat(const measure::Task& task, const std::vector<measure::Candidate>& candidates);
  Batch make_batch(const measure::Task& task,
                   const std::vector<measure::Candidate>& candidates) const;
  static MeasuredKernel kernel_of(const measure::Task& task);
  static bool is_off(const Device& device);
  Job make_job(const char* kind, const MeasuredKernel& kernel, size_t items, double each_s);
  Job job_of(Batch& batch);
  RaceRequest race_request(const measure::Race& race, int rounds) const;
  Status count_devices();

  StoreCall call_;
  Selected on_;
  RemoteMeasuring options_;
  Clock::time_point start_ = Clock::now();
  std::string run_;  ///< empty: none yet
  bool run_known_ = false;
  std::map<std::string, Scale> scales_;  ///< by key of the task
  std::vector<Batch> out_;               ///< as they were begun
  std::deque<measure::JudgedBatch> done_;
  std::set<std::string> busy_, used_;
  std::set<std::string> silent_;  ///< devices that did not take the last race they were asked for
  int failed_ = 0;                ///< jobs in a row that ended as failed, without any reading
  bool measured_ = false;         ///< there was a reading
  std::string why_;               ///< the last of the failed jobs did
  int64_t last_id_ = 0, turn_ = 0;
  int64_t counted_ = 0;                                  ///< candidates, for repeats
  double away_since_ = -1, retry_at_ = 0;                ///< of a store that does not answer
  double told_at_ = 0, ticked_at_ = 0, counted_at_ = 0;  ///< when it was last done
  double asked_at_ = -1;  ///< when the first job was sent; -1: none was
};

}  // namespace tilewright::fleet
