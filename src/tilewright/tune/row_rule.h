// The rule for reductions with no axis of the result along lanes: sums and maxima of rows.
#pragma once

#include <string>

#include "tilewright/hw/target.h"
#include "tilewright/tune/draft.h"

namespace tilewright::tune {

/// Computes everything between the reduction `name` and the output it ends in row by row (softmax,
/// layer norm): a row is read from cache after its first pass. False, with nothing changed, where
/// the blocks do not share rows.
bool fuse_rows(Draft& draft, const std::string& name, const hw::CpuTarget& target);

/// One result of `name` at a time, with its initial value and its readers beside it. False, with
/// some steps taken, where it does not apply.
bool reduce_rows(Draft& draft, const std::string& name);

}  // namespace tilewright::tune
