// Why a kernel is scheduled as it is: what was chosen, what the model says of it, and what came
// second.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/cost/prediction.h"

namespace tilewright::cost {

/// One point of a kernel's space, in words.
struct Choice {
  std::string algorithm;  ///< `direct`, `winograd F(4x4)`, `gemm`, `depthwise`, `row`, ...
  std::string tile;       ///< register tile and cache blocks: `14x2 vectors, 56 rows in L2, ...`
  Prediction time;
};

/// What the rules decided for one Func. `candidates` is 0 where a rule left no choice.
struct RuleDecision {
  Choice chosen;
  Choice runner_up;        ///< the fastest point not chosen; `algorithm` is empty if there is none
  int64_t candidates = 0;  ///< points the model compared
};

}  // namespace tilewright::cost
