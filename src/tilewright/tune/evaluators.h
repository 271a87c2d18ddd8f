// Evaluators that run nothing: by the model of the machine, and from records.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tilewright/measure/evaluator.h"
#include "tilewright/records/record.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// What a record says of its candidate.
measure::Reading reading_of(const records::Record& record);

/// Costs by the prior of `space`. A candidate without a point (the rules' schedule) costs `rule`.
std::unique_ptr<measure::Evaluator> model_evaluator(std::shared_ptr<const ScheduleSpace> space,
                                                    double rule);

/// Readings as `records` of one task have them, by schedule; the first of several. Candidates that
/// were never measured are Lost.
std::unique_ptr<measure::Evaluator> replay_evaluator(const std::vector<records::Record>& records);

}  // namespace tilewright::tune
