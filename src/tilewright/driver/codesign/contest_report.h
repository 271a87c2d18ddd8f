// A contest of searches for designs, as a table or as JSON.
#pragma once

#include "tilewright/driver/codesign/contest_run.h"

namespace tilewright::driver {

void print_contest(const ContestResult& result, const ContestSettings& settings, bool as_json);

}  // namespace tilewright::driver
