// FlexTensor's comparison of found schedules with a tiling written by hand: each loop in four
// levels, the innermost unrolled up to 200.
#pragma once

#include <string>

#include "judge.h"

namespace tilewright::bench {

/// Best of a small grid of the hand-written tiling, as someone tunes it by hand, against what ours
/// and the Q-method find with `trials` trials: a few lines. errors: Usage (no nest to tile).
Result<std::string> against_hand_tiling(const measure::Task& task, Judge& judge, int trials);

}  // namespace tilewright::bench
