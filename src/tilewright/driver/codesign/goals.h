// Objectives and limits of a search, as people type them.
#pragma once

#include <string>
#include <vector>

#include "tilewright/codesign/problem.h"
#include "tilewright/codesign/sqlite/study.h"

namespace tilewright::driver {

inline constexpr codesign::Objective kObjectives[] = {
    codesign::Objective::Latency, codesign::Objective::Power,  codesign::Objective::PeakPower,
    codesign::Objective::Area,    codesign::Objective::Energy, codesign::Objective::Edp};

/// What commas separate.
std::vector<std::string> words_of(const std::string& text);

/// `limits`: `power=2W`; one takes the place of the space's on the same objective. errors: Usage.
Result<codesign::Goals> parse_goals(const std::string& objectives,
                                    const std::vector<std::string>& limits,
                                    const codesign::DesignSpace& space);
/// Those of a study. errors: Usage.
Result<codesign::Goals> goals_of(const codesign::StudyKey& key);

}  // namespace tilewright::driver
