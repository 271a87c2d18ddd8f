// One run of `tilewright tune`, from subjects to records and a verdict for every kernel.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/driver/fleet/device_use.h"
#include "tilewright/driver/fleet/remote.h"
#include "tilewright/driver/tuning/final_race.h"
#include "tilewright/driver/tuning/tuning_target.h"
#include "tilewright/fleet/measure/remote_measurer.h"
#include "tilewright/records/grouped_adds.h"
#include "tilewright/tune/transfer.h"

namespace tilewright::driver {

struct TuneSettings {
  SubjectOptions subject;
  double seconds = search::kInvalid;         ///< for everything, compiling and races included
  double search_seconds = search::kInvalid;  ///< for searching alone
  int64_t trials = std::numeric_limits<int64_t>::max();
  double stall_gain = 0;  ///< as in tune::TunerOptions
  std::string method = "ours";
  std::vector<DType> dtypes;  ///< of the operands of programs; empty: as they are
  std::string space;  ///< empty: constructive, and tiling where that is at its end; VTA has its own
  std::string measure = "device";  ///< or `model`, or `replay:FILE`
  WorkerChoice remote;             ///< measure on devices of a fleet, all of one class
  /// What is taken over from kernels of the same structure that were tuned before: `model`: where
  /// the nearest was fastest and, for methods with a learned model, what they cost; `points`: the
  /// former; `none`.
  std::string transfer = "model";
  bool dry = false;     ///< only up to `open`, and without a store
  std::string output;   ///< package to write; empty: none
  std::string command;  ///< for the package
};

/// What a model gained. units: ns, or cycles of a simulator.
struct ModelGain {
  std::string name;
  double before = 0,
         after = 0;    ///< medians of runs in turn; by the kernels' costs without a device
  bool raced = false;  ///< measured as a whole
  double in_race = 0;  ///< the tuned model's time in that race, whoever won
};

/// What kernels of other networks gave to this run.
struct TakenOver {
  int64_t started = 0;  ///< kernels whose search starts where one alike was fastest
  int64_t taught = 0;   ///< kernels whose model learned from others
  int64_t samples = 0;  ///< schedules that these learned from
};

class TuneRun {
 public:
  explicit TuneRun(TuneSettings settings) : settings_(std::move(settings)) {}

  /// Compiles by rule and finds the tasks. errors: Usage, Device, what compiling reports.
  Status prepare();
  /// Opens spaces, searchers and records. errors: Usage, Io, Package, Tool.
  Status open();
  /// Searches until the budget is spent or the user interrupts. errors: of the store.
  Status search();
  /// Races, verdicts, the package. errors: of the store, of compiling, Io.
  Status decide();

  const TuneSettings& settings() const { return settings_; }
  const TunePlan& plan() const { return plan_; }
  const tune::Tuner& tuner() const { return *tuner_; }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  const std::vector<ModelGain>& gains() const { return gains_; }
  const compile::CompileOptions& compile() const { return compile_; }
  /// The devices of a fleet that measure; null: this machine does.
  const fleet::RemoteMeasurer* fleet() const { return fleet_; }
  /// The store of that fleet.
  const std::string& fleet_url() const { return remote_->client->url(); }
  search::Stop stop() const { return stop_; }
  /// The spaces that kernels are searched in, one after the other, by their names in records.
  std::vector<std::string> spaces() const;
  const TakenOver& taken_over() const { return taken_; }
  bool interrupted() const { return stop_ == search::Stop::Interrupted; }
  double elapsed() const;
  double prepared_seconds() const { return prepared_seconds_; }  ///< before the search began
  /// Of all proposals in order: equal for equal runs.
  std::string proposals_hash() const;
  /// Of costs / 1e3 and / 1e6.
  const char* unit() const { return target().unit; }
  const char* large_unit() const { return target().large_unit; }

 private:
  const TuningTarget& target() const { return tuning_target(compile_.target); }
  bool on_device() const { return settings_.measure == "device"; }
  /// Whether kernels run here: a device of its own is simulated.
  bool runs_here() const { return on_device() && !target().simulated && !remote_; }
  bool looks_here() const;
  // Measuring on devices of a fleet (tune_fleet.cc).
  Status find_devices();
  void take_class();
  Status open_fleet();
  Result<RemotePackage> packed(const Subject& subject, const compile::CompiledModel& compiled,
                               const std::string& file) const;
  Result<Duel> duel_there(const Subject& subject, const compile::CompiledModel& before,
                          const compile::CompiledModel& after) const;
  Status plan(std::vector<Subject> subjects, const SubjectOptions& by_rule);
  Status compare_launches(TunedModel& model);
  Result<tune::TunerTask> tuner_task(const KernelTask& task);
  using Known = std::shared_ptr<const std::vector<tune::KnownProgram>>;
  Result<bool> place_space(tune::TunerTask& made, std::vector<std::string>& left,
                           const Known& known) const;
  Result<Known> known_of(const KernelTask& task);
  Status take_over(const KernelTask& task, tune::TunerTask& made);
  records::RecordFilter records_of(const KernelTask& task) const;
  bool time_for(double seconds) const;
  double duel_seconds() const;
  double race_seconds() const;
  Status keep_workloads();
  Verdict* verdict_of(const compile::KernelReport& kernel);
  /// Forms of convolutions that are open, with their share of the usual time.
  using OpenForms = std::map<std::string, std::pair<double, records::Record>>;
  double form_turns(const TunedModel& model) const;
  Status choose_forms(TunedModel& model);
  Result<OpenForms> run_forms(TunedModel& model, runtime::Session& usual);
  OpenForms add_up_forms(TunedModel& model);
  double measured_time(const ConvForms& conv, const compile::CompiledModel& model);
  Result<double> mixed_share(TunedModel& model, const std::vector<records::Record>& taken,
                             runtime::Session* usual);
  compile::CompileOptions with_verdicts(const std::vector<records::Record>& forms) const;
  Result<std::unique_ptr<runtime::Session>> open_tuned(TunedModel& model,
                                                       const std::vector<records::Record>& forms);
  Result<Duel> race(runtime::Session& before, runtime::Session& after) const;
  Result<Duel> race_tuned(TunedModel& model);
  Status compare(TunedModel& model);
  bool give_up_slower(const TunedModel& model, const Duel& times);
  std::vector<records::Record> decided_forms() const;
  Status write_package();
  double rest() const;

  TuneSettings settings_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  compile::CompileOptions compile_;
  TunePlan plan_;
  double prepared_seconds_ = 0;
  std::shared_ptr<records::Store> store_, replayed_;  ///< null: none
  std::unique_ptr<records::GroupedAdds> kept_;        ///< what the search adds to store_
  std::string newest_;                                ///< time of the newest replayed record
  std::map<std::string, int64_t> elsewhere_;  ///< kernels whose search starts there, by machine
  tune::ProgramsAlike alike_;                 ///< of store_, where something is taken over
  TakenOver taken_;
  std::optional<RemoteDevice> remote_;  ///< absent: this machine measures
  std::optional<TemporaryFolder> folder_;
  std::vector<std::string> names_, tags_;  ///< of the devices that --worker names, if it does
  DeviceUse use_;                          ///< of this machine's device, where it measures
  std::unique_ptr<measure::Measurer> measurer_;
  fleet::RemoteMeasurer* fleet_ = nullptr;  ///< is measurer_, where devices of a fleet measure
  std::unique_ptr<tune::Tuner> tuner_;
  search::Stop stop_ = search::Stop::Trials;
  std::vector<Verdict> verdicts_;
  std::vector<ModelGain> gains_;
};

/// One line about where the search stands, for people.
std::string progress_line(const TuneRun& run);

}  // namespace tilewright::driver
