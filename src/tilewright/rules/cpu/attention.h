// The rule for attention: scores, softmax and the product with the values for a strip of queries at
// a time, so that the scores stay in cache and are never stored.
#pragma once

#include <string>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// The blocks of attention; initial values are not among them.
struct AttentionBlocks {
  std::string scores, result;        ///< the products
  std::vector<std::string> between;  ///< blocks of rows, in program order
  std::vector<std::string> sums;     ///< those of them that reduce
};

/// Scores, something done to their rows, and the product of that with values, all over the same
/// queries; declines for anything else.
Answer<AttentionBlocks> find_attention(const Func& func, const std::vector<BlockFacts>& blocks);

/// The element-wise block (scale, mask) that alone reads the scores; empty if there is none.
std::string finisher_of(const std::vector<BlockFacts>& blocks, const std::string& scores);

/// Rows of `block`, queries, are the last axis but one of the result.
int64_t row_extent(const BlockFacts& block);

/// Schedules a draft of two products with reductions of rows between them (injective blocks
/// inlined). Declines, with nothing changed, for other programs, or where no strip of rows fits the
/// cache.
Answer<Done> schedule_attention(Draft& draft, const hw::CpuTarget& target, int threads);

/// Whether `func` (injective blocks inlined) is of that form and a strip fits.
bool is_attention(const Func& func, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::rules
