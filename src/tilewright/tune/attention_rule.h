// The rule for attention: scores, softmax and the product with the values for a strip of queries at
// a time, so that the scores stay in cache and are never stored.
#pragma once

#include "tilewright/hw/target.h"
#include "tilewright/tune/draft.h"

namespace tilewright::tune {

/// Schedules a draft of two products with reductions of rows between them (injective blocks
/// inlined). False, with nothing changed, for other programs, or where no strip of rows fits the
/// cache.
bool schedule_attention(Draft& draft, const hw::CpuTarget& target, int threads);

/// Whether `func` (injective blocks inlined) is of that form and a strip fits.
bool is_attention(const Func& func, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::tune
