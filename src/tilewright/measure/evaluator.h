// Judging candidates: by measurement, by a model, by a simulator's cycles, or
// from records.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/schedule/step.h"
#include "tilewright/search/space.h"

namespace tilewright::measure {

/// A point of a space and the schedule it means.
struct Candidate {
  search::Point point;
  schedule::Trace trace;
  // For judges on other machines: they know neither the space nor what it expects.
  std::string text = {};  ///< the point as in records; empty: the rules' schedule
  double prior = 0;       ///< expected cost; 0: unknown
};

enum class OutcomeKind {
  Ok,
  Invalid,
  CompileError,
  WrongResult,
  Timeout,
  Crash,
  OutOfMemory,
  Lost
};
/// `ok`, `invalid`, `compile_error`, `wrong_result`, `timeout`, `crash`, `oom`,
/// `lost`, as in records.
std::string_view to_string(OutcomeKind kind);

/// The kind that `text` names; absent for other texts.
std::optional<OutcomeKind> outcome_kind(std::string_view text);

/// What became of a candidate.
struct Reading {
  OutcomeKind kind = OutcomeKind::Lost;
  std::string reason;  ///< of anything but Ok
  double cost = 0;     ///< of Ok: the median. units: ns, or cycles
  double least = 0,
         spread = 0;  ///< fastest; middle half of the readings / median
  int64_t readings = 0;
  double fastest = 0;  ///< reading by the clock, beside whatever else ran. units: ns
};

/// Makes candidates one by one; absent after the last.
using CandidateSource = std::function<std::optional<Candidate>()>;

/// Judges the candidates of one task.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// One reading per candidate, in order. Never fails as a whole: what goes
  /// wrong is an outcome.
  virtual std::vector<Reading> evaluate(const std::vector<Candidate>& candidates) = 0;
  /// The same of what `next` makes, perhaps while others are judged; fewer
  /// readings than it could make candidates only if interrupted.
  virtual std::vector<Reading> evaluate_each(const CandidateSource& next);
};

}  // namespace tilewright::measure
