// Moving a consumer into its producer's loop; cache_write ends with it.
#pragma once

#include "tilewright/schedule/step.h"

namespace tilewright::schedule {

/// ReverseComputeAt, with its requirement numbers.
Result<Func> move_consumer(const Func& func, const Name& block, const Name& loop);

}  // namespace tilewright::schedule
