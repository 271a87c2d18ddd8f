// One row of what tuning has measured or decided.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "tilewright/base/fields.h"

namespace tilewright::records {

// Kinds of records.
inline constexpr const char* kScheduleKind = "schedule";  ///< a candidate of a search, measured
inline constexpr const char* kRuleKind = "rule";          ///< the schedule without tuning, measured
inline constexpr const char* kRaceKind = "race";  ///< the schedule to take: won a comparison
/// The algorithm to take, for a convolution as workload; without a schedule.
inline constexpr const char* kAlgorithmKind = "algorithm";

/// One candidate and what became of it, or a decision between candidates.
struct Record {
  std::string workload;  ///< `sha256:` of the printed Func at stage Tensor, its name set to `f`
  std::string name;      ///< for people: `conv_blocked_relu`
  std::string kind;      ///< `schedule`, `rule`, `race`, `algorithm`
  std::string target;    ///< `cpu:znver4@1a2b3c4d:2`: kind, processor, machine, workers
  /// That measured: a CPU's fingerprint (features, caches, cores) or a GPU's name; empty for a
  /// simulator, a mere level of an architecture, and old records.
  std::string machine;
  std::string compiler;  ///< version of Tilewright and of the back-end
  std::string point;     ///< decisions in the space, for people
  std::string schedule;  ///< printed trace
  /// ok, invalid, compile_error, wrong_result, timeout, crash, oom or lost.
  std::string outcome;
  std::string reason;            ///< of anything but ok
  double cost = 0;               ///< of ok: the median. units: `unit`
  std::string unit;              ///< `ns`, or `cycles` of a simulator
  double least = 0, spread = 0;  ///< fastest reading; middle half of the readings / median
  int64_t readings = 0;
  std::string searcher;  ///< who proposed it; `rule` and `race` in records of these kinds
  int64_t seed = 0;
  std::string when;  ///< UTC, ISO 8601

  static constexpr auto fields() {
    return std::tuple{field("workload", &Record::workload), field("name", &Record::name),
                      field("kind", &Record::kind),         field("target", &Record::target),
                      field("machine", &Record::machine),   field("compiler", &Record::compiler),
                      field("point", &Record::point),       field("schedule", &Record::schedule),
                      field("outcome", &Record::outcome),   field("reason", &Record::reason),
                      field("cost", &Record::cost),         field("unit", &Record::unit),
                      field("least", &Record::least),       field("spread", &Record::spread),
                      field("readings", &Record::readings), field("searcher", &Record::searcher),
                      field("seed", &Record::seed),         field("when", &Record::when)};
  }
  friend bool operator==(const Record&, const Record&) = default;
};

// The first records had no kind, machine and unit of their own. What these are follows from other
// fields: only who reads old stores and old lines needs these functions.
std::string old_kind(std::string_view searcher, std::string_view point);
std::string old_machine(std::string_view target);
std::string old_unit(std::string_view target);
/// Fills in the three.
void complete_old(Record& record);

}  // namespace tilewright::records
