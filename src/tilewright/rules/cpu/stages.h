// The rule for sums whose operands lie apart along the last axis of the result, so that no vector
// holds them: strided windows, products that read both factors along the terms of the sum.
#pragma once

#include <string>

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Copies what the sum `name` reads so that neighbours in the result are neighbours in memory,
/// where each copied element serves many terms; then a register tile has lanes. False, with nothing
/// changed, where it has them already or copies do not give them.
bool stage_lanes(Draft& draft, const std::string& name, const hw::CpuTarget& target);

}  // namespace tilewright::rules
