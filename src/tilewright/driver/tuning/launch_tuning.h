// Tuning for accelerators whose compiler plans a whole launch at once: the launch is the task, and
// its cycles on the simulator are the measure.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/driver/tuning/tune_run.h"
#include "tilewright/records/grouped_adds.h"
#include "tilewright/search/searcher.h"

namespace tilewright::driver {

/// The method that tries the model's best points of all, where a target's spaces are ranked.
inline constexpr const char* kExhaustive = "exhaustive";
/// The searchers that need nothing but a space: `ours`, `random`, `annealing`, `p`, `q`,
/// `evolution`.
std::vector<std::string> launch_methods();
/// errors: Usage (not one of these).
Result<std::unique_ptr<search::Searcher>> launch_searcher(const std::string& method,
                                                          const search::Space& space,
                                                          uint64_t seed);

/// What a search came to.
struct TunedLaunch {
  LaunchTask task;
  std::vector<search::Trial> trials;  ///< in order
  size_t resumed = 0;                 ///< of the first ones: from records of earlier runs
  double untuned = 0;                 ///< of what the compiler took. units: cycles
  search::Point best;
  double cost = 0;        ///< of `best`
  double searched_s = 0;  ///< units: s
  search::Stop stop = search::Stop::Time;
  bool better() const { return cost < untuned; }
};

/// One run of `tilewright tune` on launches.
class LaunchTuning {
 public:
  explicit LaunchTuning(TuneSettings settings) : settings_(std::move(settings)) {}

  /// Compiles by rule and finds the launches. errors: Usage, what compiling reports, NotApplicable.
  Status prepare();
  /// Searches until the budget is spent or the user interrupts. errors: of the store.
  Status search();
  /// Records of what won, and the package with it. errors: of the store, of compiling, Io.
  Status decide();

  const TuneSettings& settings() const { return settings_; }
  const std::vector<TunedLaunch>& launches() const { return launches_; }
  const std::vector<ModelGain>& gains() const { return gains_; }
  search::Stop stop() const { return stop_; }
  size_t trials() const;
  double elapsed() const;
  double prepared_seconds() const { return prepared_seconds_; }
  const TuningTarget& target() const { return tuning_target(compile_.target); }

 private:
  Status check_method() const;
  Result<std::vector<Subject>> in_types(std::vector<Subject> subjects) const;
  Result<std::unique_ptr<search::Searcher>> searcher_for(const TunedLaunch& launch) const;
  double rest(double judging) const;
  Status search_one(TunedLaunch& launch, double share);
  std::vector<search::Point> starts(TunedLaunch& launch) const;
  Status keep(const TunedLaunch& launch, const std::vector<search::Point>& points,
              const std::vector<search::Evaluation>& outcomes);
  std::optional<records::Record> winner(const std::string& workload) const;

  TuneSettings settings_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  compile::CompileOptions compile_;
  std::vector<TunedModel> models_;
  std::vector<TunedLaunch> launches_;
  std::vector<ModelGain> gains_;
  double prepared_seconds_ = 0;
  std::shared_ptr<records::Store> store_;
  std::unique_ptr<records::GroupedAdds> kept_;
  search::Stop stop_ = search::Stop::Time;
};

}  // namespace tilewright::driver
