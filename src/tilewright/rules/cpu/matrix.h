// Products whose sums instructions take as small tiles: two rows times two columns, over groups of
// terms that lie side by side in both operands.
#pragma once

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Schedules `out[.., m, n] += a[.., m, depth * k + i] * w[n / b, k, n % b, i]` in instructions of
/// `target` for tiles: rows are packed in pairs where the columns of a strip read them, sums stay
/// in registers as the instruction holds them, and are put side by side again before what finishes
/// them. Declines, with nothing changed, where there is no such product, or no such instruction.
Answer<Done> schedule_matrices(Draft& draft, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::rules
