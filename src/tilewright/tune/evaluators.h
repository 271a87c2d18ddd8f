// Evaluators that run nothing: by the model of the machine, and from records.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tilewright/tune/evaluator.h"
#include "tilewright/tune/records.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// The kind that `text` names; absent for other texts.
std::optional<OutcomeKind> outcome_kind(std::string_view text);

/// What a record says of its candidate.
Reading reading_of(const Record& record);

/// Costs by the prior of `space`. A candidate without a point (the rules' schedule) costs `rule`.
std::unique_ptr<Evaluator> model_evaluator(std::shared_ptr<const ScheduleSpace> space, double rule);

/// Readings as `records` of one task have them, by schedule; the first of several. Candidates that
/// were never measured are Lost.
std::unique_ptr<Evaluator> replay_evaluator(const std::vector<Record>& records);

}  // namespace tilewright::tune
