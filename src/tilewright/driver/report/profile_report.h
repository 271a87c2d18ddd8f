// The report of `bench --profile`: what every kernel takes, beside what the machine allows it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/driver/report/limits.h"
#include "tilewright/runtime/executor.h"

namespace tilewright::driver {

/// What one reading of the clock takes; units: ns.
double clock_ns();

/// Times of every step of a program over many runs. units: ns.
class StepTimes {
 public:
  /// `clock`: what reading the clock takes; it is a part of every step's time and taken off.
  explicit StepTimes(size_t steps, double clock = clock_ns()) : times_(steps), clock_(clock) {}
  /// Of one run. requires: one time per step.
  void add(const std::vector<int64_t>& run);
  /// Of the session's last run.
  void add(const runtime::Session& session);
  /// One per step; 0 where there were no runs.
  std::vector<double> medians() const;

 private:
  std::vector<std::vector<int64_t>> times_;
  double clock_;
};

struct ProfiledStep {
  std::string step, kernel;
  double ns = 0;  ///< median
};

/// Steps, their sum (`kernels`), and what is between them (`between_us`): entering and leaving the
/// runtime, reading the clock, and what single runs lose to interruptions. `latency_ns`: the median
/// of whole runs, the very ones that the steps' times are of.
nlohmann::ordered_json profile_json(const std::vector<ProfiledStep>& steps,
                                    const std::vector<StepLimit>& limits, double latency_ns);
std::string profile_table(const std::vector<ProfiledStep>& steps,
                          const std::vector<StepLimit>& limits, double latency_ns);

}  // namespace tilewright::driver
