// A contest of searches for designs, as a table or as JSON.
#pragma once

#include <vector>

#include "tilewright/driver/codesign/contest_run.h"

namespace tilewright::driver {

/// requires: `objectives` are those of the contest.
void print_contest(const ContestResult& result, const ContestSettings& settings,
                   const std::vector<codesign::Objective>& objectives, bool as_json);

}  // namespace tilewright::driver
