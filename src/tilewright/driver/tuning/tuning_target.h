// What tuning does differently for one target than for another: a row of a table.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tilewright/driver/tuning/tasks.h"
#include "tilewright/measure/measurer.h"
#include "tilewright/search/searcher.h"

namespace tilewright::driver {

/// What the tuner needs to know of a task besides: its space, and the judge of the schedules in it.
struct OwnTuning {
  std::shared_ptr<const tune::ScheduleSpace> space;
  std::function<Result<std::unique_ptr<measure::Evaluator>>()> evaluator;
};

/// Points of a space in an order that somebody vouches for.
struct RankedPoints {
  std::vector<search::Point> points;  ///< best first
  std::string remark;                 ///< for people: what was looked at, and by what
};

/// The decisions about one launch that is planned as a whole.
class LaunchSpace {
 public:
  virtual ~LaunchSpace() = default;
  virtual const search::Space& space() const = 0;
  /// In cycles. May be called by several threads at once.
  virtual search::Evaluation judge(const search::Point& point) const = 0;
  /// What the compiler takes from a record.
  virtual std::string schedule(const search::Point& point) const = 0;
  /// As records keep it on one line, and back; absent for what is none of this space's.
  virtual std::string decisions(const search::Point& point) const { return schedule(point); }
  virtual std::optional<search::Point> find(const std::string& decisions) const = 0;
  virtual std::string describe(const search::Point& point) const = 0;  ///< for people
  /// The `most` best points of all by its model, which is proved. Where TuningTarget::ranks.
  virtual RankedPoints ranked(size_t) const { return {}; }
};

/// A launch to tune.
struct LaunchTask {
  std::string name, workload, target;  ///< of the launch; as in records
  std::shared_ptr<const LaunchSpace> space;
  std::vector<search::Point> start;  ///< what the compiler tried; first what it took
};

/// A null function: nothing special.
struct TuningTarget {
  std::string_view backend;  ///< as in hw::Target
  /// Of costs / 1e3 and / 1e6.
  const char *unit = "us", *large_unit = "ms";
  bool simulated = false;           ///< readings are exact, and nothing of this machine is measured
  const char* own_space = nullptr;  ///< its name in records; null: the spaces of the user's choice
  /// Whether the device that measures is there.
  Status (*ready)(const compile::CompileOptions&, const SubjectOptions&) = nullptr;
  measure::MeasureOptions (*measuring)(const compile::CompileOptions&) = nullptr;
  /// Launches that are planned as a whole (launch_tuning.h); null: kernels are tuned, by what
  /// follows.
  Result<std::vector<LaunchTask>> (*launches)(const compile::CompiledModel&,
                                              const compile::CompileOptions&) = nullptr;
  bool ranks = false;  ///< its spaces of launches are ranked whole: the method `exhaustive`
  /// A program with its operands in another type: the option --dtypes. errors: Unsupported.
  Result<Func> (*in_type)(const Func&, DType) = nullptr;
  /// Compiles the subjects by rule; their distinct kernels are the tasks.
  Result<TunePlan> (*plan)(std::vector<Subject>, const SubjectOptions&,
                           const compile::CompileOptions&, const PlanLimits&) = nullptr;
  /// Space and judge of a task; null: a space by name, measured by workers.
  Result<OwnTuning> (*tuning)(const measure::Task&, const compile::CompileOptions&) = nullptr;
  /// Two forms of a model in turn; null: sessions on this processor.
  Result<Duel> (*duel)(const compile::CompiledModel& before, const compile::CompiledModel& after,
                       const SubjectOptions&, double seconds) = nullptr;
  /// Cost of all launches of a model; null: models are run.
  Result<double> (*cost)(const compile::CompiledModel&, const compile::CompileOptions&) = nullptr;
};

/// errors: Unsupported (code for it is not searched for).
Status check_tunable(const hw::Target& target);
/// Whether a record is about a launch planned as a whole: it has no loop program.
bool plans_launch(const records::Record& record);
/// requires: check_tunable.
const TuningTarget& tuning_target(const hw::Target& target);

}  // namespace tilewright::driver
