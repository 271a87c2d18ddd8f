// The rule for reductions with no axis of the result along lanes: sums and maxima of rows.
#pragma once

#include <string>

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// The block that writes an output and, directly or through others, is all that `name` serves; null
/// if there is none.
const BlockFacts* last_reader(const Func& func, const std::vector<BlockFacts>& blocks,
                              const std::string& name);

/// The innermost loop around `reader` that still selects a row of `buffer`; empty if the loops
/// outside it do not all select one, so that rows would be computed twice.
std::string row_loop(const BlockFacts& reader, const Buffer& buffer);

/// Computes everything between the reduction `name` and the output it ends in row by row (softmax,
/// layer norm): a row is read from cache after its first pass. Declines, with nothing changed,
/// where the blocks do not share rows.
Answer<Done> fuse_rows(Draft& draft, const std::string& name, const hw::CpuTarget& target);

/// One result of `name` at a time, with its initial value and its readers beside it. Declines, with
/// nothing changed, where it does not apply.
Answer<Done> reduce_rows(Draft& draft, const std::string& name);

}  // namespace tilewright::rules
