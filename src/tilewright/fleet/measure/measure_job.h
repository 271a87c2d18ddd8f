// A job of kind `measure`: candidates of one kernel, to be measured on a device of the fleet; and
// one of kind `race`: schedules that run in turn.
//
// The submitter sends the program, what it is compiled for, an anchor and printed schedules. The
// worker measures them in order beside that anchor and posts numbers, an item per candidate. The
// store makes the records: all texts of a record are the submitter's, so a worker can give wrong
// numbers but not a record of something else.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/records/record.h"

namespace tilewright::fleet {

/// The kernel of a job.
struct MeasuredKernel {
  std::string func;    ///< records::workload_text
  std::string target;  ///< measure::print_target
  int threads = 1;
};
/// Of jobs that need the same kernel loaded, as a job's `key`.
std::string kernel_key(const MeasuredKernel& kernel);

/// One candidate, and what the store puts into its record.
struct MeasureItem {
  std::string schedule;  ///< printed trace
  std::string point;     ///< as in records; empty: the rules' schedule
  double prior = 0;      ///< cost by the model of the machine: what a device `model` goes by
};

struct MeasureRequest {
  MeasuredKernel kernel;
  std::string anchor;      ///< printed trace; empty: the first good candidate becomes it
  double anchor_cost = 0;  ///< on the first device that measured it: costs of all devices are its
                           ///< multiples. units: ns
  double best_cost = 0;    ///< far above it is not worth knowing exactly; 0: unknown
  double limit_s = 5;      ///< per candidate
  /// What the records of all items share: workload, name, kind, machine, compiler, unit, searcher,
  /// seed. The target is the device's.
  records::Record record;
  std::vector<MeasureItem> items;
};

/// `output` of its one item: {"ratios": [1, 0.93, -1]}, the median time of each schedule over that
/// of the first; -1 for one that failed.
struct RaceRequest {
  MeasuredKernel kernel;
  std::vector<std::string> schedules;  ///< printed traces
  int rounds = 0;
  double limit_s = 5;  ///< per schedule
  /// What a device `model` goes by, per schedule as of MeasureItem; empty: it knows those only that
  /// it has measured.
  std::vector<double> priors = {};
  std::vector<std::string> points = {};
};

// Payloads: {"func", "target", "threads", "limit_s", and for `measure` "anchor", "anchor_cost",
// "best_cost", "record": {...}, "candidates": [{"schedule", "point", "prior"}]; for `race`
// "schedules", "rounds", and if they are known "priors", "points"}.
nlohmann::json to_json(const MeasureRequest& request);
nlohmann::json to_json(const RaceRequest& request);
/// errors: Package, with what is missing, of another type or beyond its limits.
Result<MeasureRequest> measure_request_of(const nlohmann::json& payload);
Result<RaceRequest> race_request_of(const nlohmann::json& payload);

}  // namespace tilewright::fleet
