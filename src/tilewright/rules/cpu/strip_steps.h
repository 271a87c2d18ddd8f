// What rules that work strip by strip share: how rows of a result follow those of its operand, and
// the steps that place loops around a strip.
#pragma once

#include <functional>
#include <string>

#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// Axes of a blocked value: [batch, channel block, rows, ..., channel in block].
inline constexpr size_t kBatchAxis = 0, kBlockAxis = 1, kRowAxis = 2;

/// Whether both factors vary with the lanes: one channel of the result needs one of the operand.
bool channel_wise(const BlockFacts& sum);

/// The factor that is an image: it moves with the rows of the result, weights do not.
Load image_of(const BlockFacts& sum);

/// How the rows that a contraction reads follow those it writes.
struct RowWindow {
  int64_t step = 1, taps = 1;
  /// Rows of the operand that `rows` rows of the result need.
  int64_t reach(int64_t rows) const { return (rows - 1) * step + taps; }
};
RowWindow row_window(const BlockFacts& sum);

/// Runs `rule`, a group of steps; if one does not apply, the draft is as before and the rule has
/// declined. Facts about the draft that were collected before stay alive until then.
Answer<Done> all_or_nothing(Draft& draft, const std::function<bool()>& rule);

/// Splits the loop of axis `at` of what block `name` writes into parts of `factor`; the loop over
/// the parts, empty if that fails.
std::string split_axis(Draft& draft, const std::string& name, size_t at, int64_t factor);

/// What is scheduled next leaves the loops around `block` down to `loop` where they are.
void keep_down_to(Draft& draft, const std::string& block, const std::string& loop);

/// Workers share the loops around `block` down to `inner`, as one.
void share_out(Draft& draft, const std::string& block, const std::string& inner);

}  // namespace tilewright::rules
